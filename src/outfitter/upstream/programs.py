"""Is it still the same program? The first start of a server's command records where it was found and what was in it.

A program that another of the same name now hides, or whose content changed, is refused until somebody approves it.
One small file per server and command; the content is hashed again only when size, time or inode differ. A command that
fetches whatever version of a package there is may have to be approved before its first start.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from outfitter.errors import CommandForbidden, StorageUnavailable


class ProgramChanged(CommandForbidden):
    """The command of a server now means another program than the one that was approved."""

    code = "exec_changed"


class PackageUnpinned(CommandForbidden):
    """The command of a server fetches a package of no fixed version, and somebody must approve that first."""

    code = "unpinned_package"


class ProgramRecord(msgspec.Struct, frozen=True):
    """What was approved: the program's place, its digest, and how to see cheaply that it is untouched."""

    server: str
    path: str
    digest: str
    stamp: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class ProgramRegister:
    """The records of one folder."""

    folder: Path

    def check(self, server: str, command: str, program: Path, package: str | None = None) -> None:
        """Record the program at its first start; ProgramChanged when it is not the recorded one any more.

        With a ``package`` the first start needs an approval, too: PackageUnpinned without one.
        """
        key = hashlib.sha256(f"{server}\x00{command}".encode()).hexdigest()[:32]
        file = self.folder / f"{key}.json"
        stat = program.stat()
        stamp = (stat.st_size, stat.st_mtime_ns, stat.st_ino)
        known = self._read(file)
        if known is not None and known.path == str(program) and known.stamp == stamp:
            return
        if known is None and package is not None and not self._mark(server).exists():
            hint = f"pin a version, or run 'outfitter approve {server}'"
            raise PackageUnpinned(f"'{package}' is not pinned, and nobody has approved that", hint=hint)
        digest = _digest(program)
        if known is not None and (known.path, known.digest) != (str(program), digest):
            what = (
                "was replaced" if known.path == str(program) else f"is now found at {program}, before at {known.path}"
            )
            hint = f"if that is right, run 'outfitter approve {server}'"
            raise ProgramChanged(f"the program of this server {what} since it was approved", hint=hint)
        self._write(file, ProgramRecord(server, str(program), digest, stamp))

    def approve(self, server: str) -> int:
        """Forget what was recorded for a server, so that its next start is recorded anew; how many records it had."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mark(server).touch(mode=0o600)
        found = [file for file in self.folder.glob("*.json") if (r := self._read(file)) and r.server == server]
        for file in found:
            file.unlink(missing_ok=True)
        return len(found)

    def _mark(self, server: str) -> Path:
        """A file that says that somebody has approved whatever the server starts."""
        return self.folder / f"{hashlib.sha256(server.encode()).hexdigest()[:32]}.approved"

    @staticmethod
    def _read(file: Path) -> ProgramRecord | None:
        try:
            return msgspec.json.decode(file.read_bytes(), type=ProgramRecord)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise StorageUnavailable(
                f"the record of an approved program cannot be read: {error}", where=str(file)
            ) from error

    def _write(self, file: Path, record: ProgramRecord) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        half = file.with_suffix(f".{os.getpid()}.half")
        half.write_bytes(msgspec.json.encode(record))
        half.replace(file)


def _digest(program: Path) -> str:
    with program.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
