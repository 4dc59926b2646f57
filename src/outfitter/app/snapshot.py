"""The last good configuration of a registry, kept so that the gateway starts at once and without the database.

All of it is sealed with the registry's key, because it holds what the database keeps sealed. A snapshot that is
damaged, of another database or of a lost key counts as none. Whether an old one may be used is for ``service`` to say.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from outfitter.app.registry_place import KEYS, registry_mark
from outfitter.app.settings import Settings
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError
from outfitter.formats import read_agent, read_capability, read_entry, write_agent, write_capability, write_entry
from outfitter.storage import write_private

if TYPE_CHECKING:
    from outfitter.gateway import TokenRecord

_PLACE = b"catalog.snapshot"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A catalog and the tokens that let agents in, each with the number that the database had for it."""

    catalog: Catalog
    revision: int
    tokens: tuple[TokenRecord, ...] = ()
    generation: int = 0

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the agents."""
        return tuple(sorted(self.catalog.agents))


def snapshot_file(settings: Settings) -> Path:
    """Where the snapshot of this machine's registry is."""
    return settings.state / "catalog.snapshot"


def snapshot_age(settings: Settings) -> float:
    """For how many seconds the snapshot has not been written; endless when there is none."""
    try:
        return time.time() - snapshot_file(settings).stat().st_mtime
    except OSError:
        return math.inf


def write_snapshot(settings: Settings, snapshot: Snapshot) -> None:
    """Keep it; StorageUnavailable when it cannot be written."""
    from outfitter.storage import KeyRing

    catalog = snapshot.catalog
    told = {
        "revision": snapshot.revision,
        "generation": snapshot.generation,
        "servers": [[id_, write_entry(entry), entry.is_approved] for id_, entry in catalog.servers.items()],
        "capabilities": [[name, write_capability(one)] for name, one in catalog.capabilities.items()],
        "agents": [[name, write_agent(replace(one, system_prompt_file=None))] for name, one in catalog.agents.items()],
        "tokens": [asdict(record) for record in snapshot.tokens],
    }
    sealed = KeyRing(settings.state / KEYS).seal(json.dumps(told).encode(), _PLACE)
    write_private(snapshot_file(settings), json.dumps({"of": registry_mark(settings), "sealed": sealed}))


def read_snapshot(settings: Settings) -> Snapshot | None:
    """What was kept of this registry; None when there is nothing that can be used."""
    from outfitter.storage import KeyRing

    try:
        kept: Mapping[str, Any] = json.loads(snapshot_file(settings).read_bytes())
        if kept["of"] != registry_mark(settings):
            return None
        return _read(json.loads(KeyRing(settings.state / KEYS).open(kept["sealed"], _PLACE)))
    except (OSError, ValueError, KeyError, TypeError, OutfitterError):
        return None


def _read(told: Mapping[str, Any]) -> Snapshot:
    from outfitter.gateway import TokenRecord

    servers = [
        replace(read_entry(document, id_, f"mcp-servers/{id_}"), is_approved=cast("bool", is_approved))
        for id_, document, is_approved in told["servers"]
    ]
    capabilities = [read_capability(document, name, f"capabilities/{name}") for name, document in told["capabilities"]]
    agents = [read_agent(document, name, f"agents/{name}") for name, document in told["agents"]]
    tokens = tuple(TokenRecord(**record) for record in told["tokens"])
    return Snapshot(Catalog.of(servers, capabilities, agents), told["revision"], tokens, told["generation"])
