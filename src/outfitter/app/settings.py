"""The process settings: few, frozen, each with a default. Documented in docs/settings.md, which a test compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.upstream import secrets_folder


@dataclass(frozen=True, slots=True)
class Settings:
    """Where this process finds things."""

    catalog: Path = field(default=Path("outfitter"), metadata={"env": "OUTFITTER_CATALOG"})
    """The catalog folder."""
    secrets: Path = field(default=Path("outfitter/secrets"), metadata={"env": "OUTFITTER_SECRETS"})
    """The folder that ``file:`` secrets are read from; by default ``secrets`` inside the catalog folder."""

    state: Path = field(default=Path("~/.local/state/outfitter"), metadata={"env": "OUTFITTER_STATE"})
    """The folder for what Outfitter remembers between starts: running processes, approved programs."""

    @classmethod
    def read(cls, environment: Mapping[str, str], *, catalog: Path | None = None) -> Settings:
        """The settings that the environment gives; an explicit catalog folder wins."""
        folder = catalog or Path(environment.get("OUTFITTER_CATALOG") or "outfitter")
        state = Path(environment.get("OUTFITTER_STATE") or "~/.local/state/outfitter").expanduser()
        return cls(folder, secrets_folder(environment, folder), state)
