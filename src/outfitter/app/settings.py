"""The process settings: few, frozen, each with a default. Documented in docs/settings.md, which a test compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Where this process finds things."""

    catalog: Path = field(default=Path("outfitter"), metadata={"env": "OUTFITTER_CATALOG"})
    """The catalog folder."""
    secrets: Path = field(default=Path("outfitter/secrets"), metadata={"env": "OUTFITTER_SECRETS"})
    """The folder that ``file:`` secrets are read from; by default ``secrets`` inside the catalog folder."""

    @classmethod
    def read(cls, environment: Mapping[str, str], *, catalog: Path | None = None) -> Settings:
        """The settings that the environment gives; an explicit catalog folder wins."""
        folder = catalog or Path(environment.get("OUTFITTER_CATALOG") or "outfitter")
        secrets = environment.get("OUTFITTER_SECRETS")
        return cls(catalog=folder, secrets=Path(secrets) if secrets else folder / "secrets")
