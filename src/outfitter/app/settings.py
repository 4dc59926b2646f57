"""The process settings: few, frozen, each with a default. Documented in docs/settings.md, which a test compares."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.basics import Secret
from outfitter.errors import Invalid
from outfitter.upstream import secrets_folder

_MOST_SILENCE = 24 * 3600.0
_LONGEST_APPROVAL = 24 * 3600.0
_OFFICIAL_REGISTRY = "https://registry.modelcontextprotocol.io"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where this process finds things."""

    catalog: Path = field(default=Path("outfitter"), metadata={"env": "OUTFITTER_CATALOG"})
    """The catalog folder."""
    secrets: Path = field(default=Path("outfitter/secrets"), metadata={"env": "OUTFITTER_SECRETS"})
    """The folder that ``file:`` secrets are read from; by default ``secrets`` inside the catalog folder."""

    state: Path = field(default=Path("~/.local/state/outfitter"), metadata={"env": "OUTFITTER_STATE"})
    """The folder for what Outfitter remembers between starts: running processes, approved programs."""
    database: Secret | None = field(default=None, metadata={"env": "OUTFITTER_DATABASE"})
    """The PostgreSQL that keeps the registry and the records of calls; without it they are in the state folder."""
    keep_days: float | None = field(default=None, metadata={"env": "OUTFITTER_KEEP_DAYS"})
    """After how many days the gateway removes records, and what ended runs have told; never, if not said."""
    runner_silence: float = field(default=90.0, metadata={"env": "OUTFITTER_RUNNER_SILENCE"})
    """After how many seconds without a word a runner is taken for dead."""
    official_registry: str = field(default=_OFFICIAL_REGISTRY, metadata={"env": "OUTFITTER_OFFICIAL_REGISTRY"})
    """The registry of MCP servers that ``outfitter registry`` asks."""
    approval_wait: float = field(default=120.0, metadata={"env": "OUTFITTER_APPROVAL_WAIT"})
    """How many seconds a call waits for a person; never longer than its server's limit for a whole call."""
    approval_valid: float = field(default=900.0, metadata={"env": "OUTFITTER_APPROVAL_VALID"})
    """For how many seconds a call can be approved after it was asked for, and an answer counts."""

    def of_catalog(self, kind: str) -> Path:
        """Where something of this kind is kept for this catalog; another catalog's names are others."""
        return self.state / kind / hashlib.sha256(str(self.catalog.resolve()).encode()).hexdigest()[:16]

    @classmethod
    def read(cls, environment: Mapping[str, str], *, catalog: Path | None = None) -> Settings:
        """The settings that the environment gives; an explicit catalog folder wins."""
        folder = catalog or Path(environment.get("OUTFITTER_CATALOG") or "outfitter")
        state = Path(environment.get("OUTFITTER_STATE") or "~/.local/state/outfitter").expanduser()
        database = environment.get("OUTFITTER_DATABASE")
        return cls(
            folder,
            secrets_folder(environment, folder),
            state,
            Secret(database) if database else None,
            _read_days(environment.get("OUTFITTER_KEEP_DAYS")),
            _read_silence(environment.get("OUTFITTER_RUNNER_SILENCE")),
            environment.get("OUTFITTER_OFFICIAL_REGISTRY") or _OFFICIAL_REGISTRY,
            approval_wait=_read_seconds(environment, "OUTFITTER_APPROVAL_WAIT", 120.0, least=0.0),
            approval_valid=_read_seconds(environment, "OUTFITTER_APPROVAL_VALID", 900.0, least=1.0),
        )


def _read_silence(text: str | None) -> float:
    try:
        seconds = float(text) if text else 90.0
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= _MOST_SILENCE:
        hint = "leave it out for 90; runners say that they live six times as often"
        raise Invalid("OUTFITTER_RUNNER_SILENCE is a number of seconds, from 1 to 86400", hint=hint)
    return seconds


def _read_seconds(environment: Mapping[str, str], name: str, usual: float, *, least: float) -> float:
    text = environment.get(name)
    try:
        seconds = float(text) if text else usual
    except ValueError:
        seconds = -1.0
    if not least <= seconds <= _LONGEST_APPROVAL:
        told = f"{name} is a number of seconds, from {least:g} to {_LONGEST_APPROVAL:g}"
        raise Invalid(told, hint=f"leave it out for {usual:g}")
    return seconds


def _read_days(text: str | None) -> float | None:
    try:
        days = float(text) if text else None
    except ValueError:
        days = 0.0
    if days is not None and not 0 < days < float("inf"):
        raise Invalid("OUTFITTER_KEEP_DAYS is a number of days, more than 0", hint="leave it out to keep all records")
    return days
