"""Results that were too large for a model, kept in files of the state folder until they are old or too many.

Each stands in a folder of its owner, under an unguessable id: who is not the owner does not find it. Only the owner of
the files can read them. Workers and restarts share the folder; a file is whole or not there. The oldest go first.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.errors import StorageUnavailable

_IDENT = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_MOST_BYTES, _MOST_SECONDS = 256 * 1024 * 1024, 24 * 3600.0
_LOOK_SECONDS = 30.0
_SHARE = 16
_TEMPORARY = "."


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A kept result: what it is of, and until when it is kept. Moments are seconds since 1970."""

    id: str
    agent: str
    run: str
    server: str
    tool: str
    type: str
    size: int
    kept_at: float
    until: float
    path: Path = field(repr=False)


@dataclass(slots=True)
class ResultFolder:
    """The kept results of one state folder."""

    folder: Path
    most_bytes: int = _MOST_BYTES
    seconds: float = _MOST_SECONDS
    clock: Callable[[], float] = time.time
    _looked: float = float("-inf")
    _since: int = 0
    """How many bytes were kept here since the folder was last looked through."""

    def put(self, owner: tuple[str, str], text: bytes, **about: str) -> str:
        """Keep a text for an agent and its run; the id under which they find it. StorageUnavailable when it cannot."""
        ident = secrets.token_urlsafe(16)
        head = json.dumps({"agent": owner[0], "run": owner[1], **about, "size": len(text)}).encode()
        place = self._place(owner) / ident
        try:
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(prefix=_TEMPORARY, dir=place.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(b"%b\n%b" % (head, text))
                os.utime(name, (self.clock(), self.clock()))  # finer than the clock of many file systems
                Path(name).replace(place)
            except BaseException:
                Path(name).unlink(missing_ok=True)
                raise
            self._tidy(len(text))
        except OSError as error:
            raise StorageUnavailable(f"a result cannot be kept: {error.strerror or error}") from error
        return ident

    def read(self, owner: tuple[str, str], ident: str) -> tuple[bytes, str] | None:
        """A kept text and its type; None when there is none for this owner."""
        place = self._place(owner) / ident
        try:
            if _IDENT.fullmatch(ident) is None or place.stat().st_mtime + self.seconds <= self.clock():
                return None
            head, _, text = place.read_bytes().partition(b"\n")
        except OSError:
            return None
        return text, str(json.loads(head).get("type", "text/plain"))

    def all(self) -> tuple[KeptResult, ...]:
        """Every result that is kept, the newest first."""
        now = self.clock()
        found = (one for path in self._files() if (one := self._described(path)) is not None and one.until > now)
        return tuple(sorted(found, key=lambda one: one.kept_at, reverse=True))

    def find(self, ident: str) -> KeptResult | None:
        """A kept result, whoever it is of: for people who look after the machine."""
        return next((one for one in self.all() if one.id == ident), None)

    def clear(self) -> int:
        """Forget all of them; how many there were."""
        return sum(_remove(path) for path in self._files())

    def _place(self, owner: tuple[str, str]) -> Path:
        return self.folder / hashlib.sha256("\n".join(owner).encode()).hexdigest()[:32]

    def _files(self) -> Iterator[Path]:
        with suppress(OSError):
            for owner in self.folder.iterdir():
                with suppress(OSError):
                    yield from owner.iterdir()

    def _described(self, path: Path) -> KeptResult | None:
        with suppress(OSError, ValueError, KeyError):
            kept_at = path.stat().st_mtime
            with path.open("rb") as file:
                head: Mapping[str, str] = json.loads(file.readline(64 * 1024))
            words = {name: str(head[name]) for name in ("agent", "run", "server", "tool", "type")}
            until = kept_at + self.seconds
            return KeptResult(path.name, **words, size=int(head["size"]), kept_at=kept_at, until=until, path=path)
        return None

    def _tidy(self, more: int) -> None:
        """Take away what is old, and the oldest while there is too much; looked for now and then only."""
        now = self.clock()
        self._since += more
        if now - self._looked < _LOOK_SECONDS and self._since < self.most_bytes // _SHARE:
            return
        self._looked, self._since = now, 0
        found: list[tuple[float, int, Path]] = []
        for path in self._files():
            with suppress(OSError):
                known = path.stat()
                found.append((known.st_mtime, known.st_size, path))
        total = sum(size for _, size, _ in found)
        for kept_at, size, path in sorted(found):
            if total <= self.most_bytes and kept_at + self.seconds > now:
                break
            total -= size if _remove(path) else 0


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    with suppress(OSError):
        path.parent.rmdir()  # only when it is empty
    return True
