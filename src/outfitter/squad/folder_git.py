"""What does git know of a team's files? Those on the branch ``squad-state``, and when a file or a line was written.

The git program is called with a list of arguments, for a bounded time, with bounded output, and without the network.
When it is missing or refuses, the answer is that nothing is known; why is in ``problem``. Nothing is ever written.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.squad.folder_files import MAX_BYTES, MAX_NAMES, MAX_TOTAL, Raw, Version
from outfitter.squad.markdown import heading_of

STATE_BRANCH = "squad-state"
_REFS = (f"refs/heads/{STATE_BRANCH}", f"refs/remotes/origin/{STATE_BRANCH}")
_SECONDS = 10.0
_QUIET = (
    "--no-optional-locks", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false",
    "-c", "core.quotePath=false",
)  # fmt: skip
_KEPT = ("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "TEMP", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
_MAX_PROBLEM = 200
_PIECE = 1 << 20
_BLAME = re.compile(rb"^(?:committer-time (\d{1,12})|\t#{1,6}[ \t]([^\n]*))$", re.MULTILINE)


@dataclass(slots=True)
class Git:
    """The repository that a folder is in. ``problem`` is what git said last when it could not answer."""

    top: Path
    problem: str = ""

    def run(self, *arguments: str, given: bytes = b"", limit: int = MAX_BYTES) -> bytes | None:
        """What git prints; None when it fails, is missing, takes too long or prints too much."""
        program = shutil.which("git")
        if program is None:
            self.problem = "git is not installed"
            return None
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
        }
        with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
            asked.write(given)
            asked.seek(0)
            try:
                process = subprocess.Popen(  # noqa: S603 - a list of arguments, the program from PATH, no shell
                    [program, *_QUIET, *arguments], cwd=self.top, env=environment,
                    stdin=asked, stdout=subprocess.PIPE, stderr=said,
                )  # fmt: skip
            except OSError as error:
                self.problem = f"git cannot be started: {error.strerror}"
                return None
            answer = _read_within(process, limit)
            if answer is not None and process.returncode == 0:
                return answer
            said.seek(0)
            words = said.read(_MAX_PROBLEM).decode("utf-8", "replace").strip().partition("\n")[0]
            self.problem = words or f"git {arguments[0]} took too long or said too much"
            return None

    def lines(self, *arguments: str) -> list[str]:
        """What git prints, by line; nothing when it fails."""
        return (self.run(*arguments) or b"").decode("utf-8", "replace").splitlines()

    def state_commit(self) -> tuple[str, bool] | None:
        """The commit of the state branch, and whether it is only the remote's; None when there is none."""
        for ref in _REFS:
            found = self.lines("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
            if found:
                return found[0], ref != _REFS[0]
        self.problem = self.problem or f"there is no branch {STATE_BRANCH}"
        return None

    def heading_times(self, key: str, revision: str = "HEAD") -> dict[str, float]:
        """When each heading of a committed file was written; nothing when git does not know the file.

        The working tree is left out: for it git would run the filters that the repository names.
        """
        said = self.run("blame", "--no-textconv", "--line-porcelain", revision, "--", key, limit=MAX_TOTAL * 2)
        times: dict[str, float] = {}
        now = 0.0
        for mark in _BLAME.finditer(said or b""):
            if mark[1] is not None:
                now = float(mark[1])
            else:
                times[heading_of(mark[2].decode("utf-8", "replace"))] = now
        return times

    def file_times(self, folder: str, revision: str = "HEAD") -> dict[str, float]:
        """When each file of a folder was first committed, by its path from the top; nothing when git does not know."""
        said = self.lines(
            "log", "--format=%x01%ct", "--name-only", "--diff-filter=A", "--no-renames", revision, "--", folder
        )
        times: dict[str, float] = {}
        now = 0.0
        for line in said:
            if line.startswith("\x01"):
                now = float(line[1:])
            elif line:
                times[line] = now
        return times

    def origin(self) -> str:
        """The address of the remote 'origin', without what stands before '@'; empty when there is none."""
        found = self.lines("config", "--get", "remote.origin.url")
        return found[0].strip() if found else ""


def _read_within(process: subprocess.Popen[bytes], limit: int) -> bytes | None:
    """What the process prints, if that is within the limit and in time; it has ended in any case."""
    timer = threading.Timer(_SECONDS, process.kill)
    timer.start()
    try:
        with process:
            answer = bytearray()
            while process.stdout is not None and (part := process.stdout.read(_PIECE)):
                answer += part
                if len(answer) > limit:
                    process.kill()
                    return None
        return bytes(answer)
    finally:
        timer.cancel()


def open_git(folder: Path) -> Git | None:
    """The repository that a folder is in; None without one or without git."""
    git = Git(folder)
    found = git.lines("rev-parse", "--show-toplevel")
    return Git(Path(found[0])) if found else None


@dataclass(slots=True)
class BranchShelf:
    """The files of one commit of the state branch; ``look`` follows the branch."""

    git: Git
    commit: str = ""
    is_remote: bool = False
    _blobs: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])

    def look(self) -> bool:
        """Go to where the branch is now; False when it cannot be read."""
        found = self.git.state_commit()
        if found is None:
            self.commit, self._blobs = "", {}
            return False
        if found[0] != self.commit:
            listed = self.git.run("ls-tree", "-r", "-l", "-z", found[0], limit=MAX_TOTAL)
            if listed is None:
                return False
            self.commit, self.is_remote = found
            self._blobs = dict(_blobs_in(listed))
        return True

    def version(self, key: str) -> Version | None:
        """The id of the file's content."""
        found = self._blobs.get(key)
        return None if found is None else (found[0],)

    def names(self, folder: str) -> Mapping[str, Version]:
        """The files of a folder."""
        start = f"{folder}/"
        found: dict[str, Version] = {}
        for key, blob in self._blobs.items():
            name = key.removeprefix(start)
            if name is not key and key.startswith(start) and "/" not in name and len(found) < MAX_NAMES:
                found[name] = (blob[0],)
        return found

    def folders(self, folder: str) -> Sequence[str]:
        """The folders in a folder."""
        start = f"{folder}/"
        inner = {key[len(start) :].partition("/") for key in self._blobs if key.startswith(start)}
        return sorted(name for name, mark, _ in inner if mark and not name.startswith((".", "_")))

    def read(self, keys: Iterable[str]) -> Mapping[str, Raw]:
        """What stands in these files, from one run of git."""
        found: dict[str, Raw] = {}
        wanted: list[tuple[str, str]] = []
        left = MAX_TOTAL
        for key in keys:
            blob, size = self._blobs.get(key, ("", 0))
            left -= size
            if not blob or size > MAX_BYTES or left < 0:
                found[key] = Raw(fault="it is too large to be read" if blob else "it is not on the branch")
            else:
                wanted.append((key, blob))
        asked = "".join(f"{blob}\n" for _, blob in wanted).encode()
        said = self.git.run("cat-file", "--batch", given=asked, limit=MAX_TOTAL * 2) if wanted else b""
        return {**found, **_read_batch(wanted, said)}


def _blobs_in(listed: bytes) -> Iterable[tuple[str, tuple[str, int]]]:
    for line in listed.split(b"\0"):
        head, _, path = line.partition(b"\t")
        parts = head.split()
        if len(parts) == 4 and parts[0].startswith(b"100") and parts[3].isdigit():  # noqa: PLR2004 - mode, kind, id, size
            yield path.decode("utf-8", "replace"), (parts[2].decode(), int(parts[3]))


def _read_batch(wanted: Sequence[tuple[str, str]], said: bytes | None) -> dict[str, Raw]:
    if said is None:
        return {key: Raw(fault="git could not read it from the branch") for key, _ in wanted}
    found: dict[str, Raw] = {}
    at = 0
    for key, _ in wanted:
        end = said.find(b"\n", at)
        head = said[at:end].split()
        if end < 0 or len(head) != 3:  # noqa: PLR2004 - id, kind, size
            found[key] = Raw(fault="git could not read it from the branch")
            at = end + 1 if end >= 0 else len(said)
            continue
        size = int(head[2])
        found[key] = Raw(said[end + 1 : end + 1 + size])
        at = end + 2 + size
    return found
