"""What a running gateway tells those who look from outside: where it listens, and what is wrong with a new catalog."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from outfitter.app.settings import Settings
from outfitter.storage import write_private

if TYPE_CHECKING:
    from outfitter.gateway import Address

NEWS = "gateway.json"


@dataclass(slots=True)
class News:
    """A small file in the state folder; it is there as long as the gateway runs."""

    path: Path
    pid: int = field(default_factory=os.getpid)
    """Whom to tell to stop."""
    catalog: str = ""
    """Which catalog it serves: by it the tools are remembered that were seen."""
    problem: str = ""
    """Why the newest catalog is not in use; empty when it is."""
    _address: Address | None = None

    def begin(self, address: Address) -> None:
        """The gateway listens."""
        self._address = address
        self._write()

    def tell(self, problem: str) -> None:
        """A changed catalog was looked at."""
        self.problem = problem
        self._write()

    def end(self) -> None:
        """The gateway has ended."""
        self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._address is None:
            return
        certificate = self._address.tls_cert
        told = {
            "pid": self.pid,
            "host": self._address.host,
            "port": self._address.port,
            "url": self._address.origin,
            "certificate": None if certificate is None else str(certificate.resolve()),
            "problem": self.problem,
            "catalog": self.catalog,
        }
        write_private(self.path, json.dumps(told))


def read_news(settings: Settings) -> dict[str, Any] | None:
    """What the gateway of this state folder tells; None when none runs, as far as the file knows."""
    try:
        return cast("dict[str, Any]", json.loads((settings.state / NEWS).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def as_served(settings: Settings) -> Settings:
    """The settings with the catalog that this machine's gateway serves; as they are, if none runs."""
    served = (read_news(settings) or {}).get("catalog")
    return replace(settings, catalog=Path(served)) if served else settings
