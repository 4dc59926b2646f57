"""What each server last said of itself, for whoever wants to know it without starting it.

One small file per server and way of asking, for its owner only, written whole: workers and the command line share it,
and the last one who saw a server is right. What cannot be read was never seen. Who asks is ``gateway.last_seen``.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from outfitter.errors import StorageUnavailable
from outfitter.resolution import SeenServer
from outfitter.storage.files import write_private

_log = logging.getLogger(__name__)
_MOST_WAYS = 16
"""So many ways of asking one server are kept, the newest."""
_Stamp: TypeAlias = "tuple[int, int, int] | None"


class _Sheet(msgspec.Struct, frozen=True):
    tools: tuple[dict[str, Any], ...]
    capabilities: dict[str, Any] = {}
    instructions: str = ""
    version: int = 1


@dataclass(slots=True)
class LastSeenFolder:
    """The sightings in one folder."""

    folder: Path
    _known: dict[str, tuple[_Stamp, SeenServer | None]] = field(
        default_factory=dict[str, "tuple[_Stamp, SeenServer | None]"], repr=False
    )
    """What was last read or written, and the stamp of its file then."""
    _has_told: bool = False

    def recall(self, key: str) -> SeenServer | None:
        """What was last seen; None when nothing is known."""
        stamp, known = self._stamp(key), self._known.get(key)
        if known is None or known[0] != stamp:
            known = self._known[key] = stamp, self._read(key)
        return known[1]

    def keep(self, key: str, seen: SeenServer) -> None:
        """Remember what was seen; what cannot be written is remembered until this process ends."""
        if self.recall(key) == seen:
            return
        sheet = _Sheet(seen.tools, dict(seen.capabilities), seen.instructions)
        try:
            write_private(self._file(key), msgspec.json.encode(sheet).decode())
            self._prune(key)
        except StorageUnavailable as error:
            if not self._has_told:
                self._has_told = True
                _log.warning("what servers say of themselves is not remembered: %s", error)
        self._known[key] = self._stamp(key), seen

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.json"

    def _stamp(self, key: str) -> _Stamp:
        try:
            stat = self._file(key).stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _read(self, key: str) -> SeenServer | None:
        try:
            sheet = msgspec.json.decode(self._file(key).read_bytes(), type=_Sheet)
        except (OSError, msgspec.MsgspecError):
            return None
        return SeenServer(sheet.tools, sheet.capabilities, sheet.instructions)

    def _prune(self, key: str) -> None:
        """Forget the ways of asking a server that were written longest ago."""
        server = key.rpartition(".")[0]
        with suppress(OSError):
            files = [file for file in self.folder.glob("*.json") if file.stem.rpartition(".")[0] == server]
            files.sort(key=lambda file: file.stat().st_mtime_ns)
            for file in files[:-_MOST_WAYS]:
                file.unlink(missing_ok=True)
