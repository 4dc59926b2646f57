"""Which tools each server has shown to each agent, and which of them wait for a person's approval.

What the first listing shows is trusted. What comes later waits, where the gateway asks at all: under an exclude rule,
which says nothing about tools that nobody knew. One small file per server, for its owner only, changed under a lock:
workers, endpoints on stdio and the command line share it. A sighting is a value of its own so that it can hold more of
a definition than its name. Who asks is ``gateway.sightings``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import msgspec

from outfitter.basics import check_server_name, quote, suggest
from outfitter.errors import NotFound, StorageUnavailable
from outfitter.storage.files import write_private

_log = logging.getLogger(__name__)
_MOST_NAMED = 20
_Stamp: TypeAlias = "tuple[int, int, int] | None"


class Sighting(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a tool was first listed, and whether it still waits."""

    since: str
    waits: bool = False


class _Sheet(msgspec.Struct, frozen=True):
    """What one server has shown, to whom."""

    server: str
    agents: dict[str, dict[str, Sighting]] = {}
    version: int = 1


@dataclass(frozen=True, slots=True)
class WaitingTool:
    """A tool that appeared later, and is hidden from an agent until somebody approves it."""

    server: str
    agent: str
    tool: str
    since: str


@dataclass(slots=True)
class ToolSightings:
    """The sightings in one folder."""

    folder: Path
    _sheets: dict[str, tuple[_Stamp, _Sheet]] = field(default_factory=dict[str, "tuple[_Stamp, _Sheet]"])
    """What was last read or written, and the stamp of its file then."""
    _looked: dict[str, _Stamp] = field(default_factory=dict[str, "_Stamp"])
    """The stamps that ``changed`` has told of."""
    _told: set[str] = field(default_factory=set[str])

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """Those of the tools that are let in which wait; new ones are written down.

        Where nothing can be read, all wait: nobody can say which were there before.
        """
        if not listed:
            return ()
        try:
            known = self._read(server).agents.get(agent)
        except StorageUnavailable as error:
            self._tell(server, f"the tools of server '{server}' are hidden from agent '{agent}': {error}")
            return let_in
        if known is None or not known.keys() >= set(let_in):
            known = self._see(server, agent, listed, let_in)
        return [tool for tool in let_in if known[tool].waits]

    def _see(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Mapping[str, Sighting]:
        """Write down what is new; the agent's sightings with it, even where they cannot be written."""
        now = datetime.now(UTC).isoformat(timespec="seconds")

        def add(sheet: _Sheet) -> _Sheet:
            known = sheet.agents.get(agent)
            new = listed if known is None else [tool for tool in let_in if tool not in known]
            seen = {tool: Sighting(now, waits=known is not None) for tool in new}
            return msgspec.structs.replace(sheet, agents={**sheet.agents, agent: {**(known or {}), **seen}})

        try:
            sheet = self._change(server, add)
        except StorageUnavailable as error:
            self._tell(server, f"what server '{server}' shows is remembered until this process ends only: {error}")
            stamp, before = self._sheets.get(server, (None, _Sheet(server)))
            sheet = add(before)
            self._sheets[server] = stamp, sheet
        late = [tool for tool, sighting in sheet.agents[agent].items() if sighting.waits and sighting.since == now]
        if late:
            named = ", ".join(quote(tool) for tool in late[:_MOST_NAMED]) + (", ..." if late[_MOST_NAMED:] else "")
            _log.warning("server '%s' has new tools, hidden from agent '%s' until they are approved: %s "
                         "(outfitter squad approve-tools %s)", server, agent, named, server)  # fmt: skip
        return sheet.agents[agent]

    def _tell(self, server: str, text: str) -> None:
        if server not in self._told:
            self._told.add(server)
            _log.warning("%s", text)

    # ── for people ──

    def waiting(self) -> tuple[WaitingTool, ...]:
        """Every tool that waits, by server and agent."""
        found = (self._read(file.stem) for file in sorted(self.folder.glob("*.json")))
        return tuple(one for sheet in found for one in _waiting_in(sheet))

    def approve(self, server: str, tools: Iterable[str] = (), *, agent: str | None = None) -> tuple[WaitingTool, ...]:
        """Let these tools in, or all that wait; those that were let in. NotFound for one that does not wait."""
        waits = [one for one in _waiting_in(self._read(check_server_name(server))) if agent in {None, one.agent}]
        wanted, names = tuple(tools), {one.tool for one in waits}
        for tool in wanted:
            if tool not in names:
                whose = "" if agent is None else f" for agent '{agent}'"
                raise NotFound(f"no tool '{tool}' of server '{server}' waits{whose}", hint=suggest(tool, names))
        chosen = tuple(one for one in waits if not wanted or one.tool in wanted)
        keys = {(one.agent, one.tool) for one in chosen}

        def let_in(sheet: _Sheet) -> _Sheet:
            agents = {
                name: {
                    tool: msgspec.structs.replace(sighting, waits=sighting.waits and (name, tool) not in keys)
                    for tool, sighting in known.items()
                }
                for name, known in sheet.agents.items()
            }
            return msgspec.structs.replace(sheet, agents=agents)

        if chosen:
            self._change(server, let_in)
        return chosen

    def changed(self) -> tuple[str, ...]:
        """The servers of which another process has written something since this was last asked."""
        now = {server: self._stamp(server) for server in self._looked}
        found = tuple(server for server, stamp in now.items() if self._looked[server] != stamp)
        self._looked.update(now)
        return found

    # ── the files ──

    def _file(self, server: str) -> Path:
        return self.folder / f"{server}.json"

    def _stamp(self, server: str) -> _Stamp:
        try:
            stat = self._file(server).stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino

    def _read(self, server: str) -> _Sheet:
        stamp = self._stamp(server)
        kept = self._sheets.get(server)
        self._looked.setdefault(server, stamp)
        if kept is None or kept[0] != stamp:
            kept = self._sheets[server] = stamp, self._decoded(server)
        return kept[1]

    def _decoded(self, server: str) -> _Sheet:
        try:
            return msgspec.json.decode(self._file(server).read_bytes(), type=_Sheet)
        except (FileNotFoundError, NotADirectoryError):
            return _Sheet(server)
        except (OSError, msgspec.MsgspecError) as error:
            hint = "remove it, and what the server shows next is trusted"
            raise StorageUnavailable(
                f"the tools seen so far cannot be read: {error}", where=str(self._file(server)), hint=hint
            ) from None

    def _change(self, server: str, change: Callable[[_Sheet], _Sheet]) -> _Sheet:
        with self._locked():
            sheet = change(self._decoded(server))
            write_private(self._file(server), msgspec.json.encode(sheet).decode())
            stamp = self._looked[server] = self._stamp(server)
            self._sheets[server] = stamp, sheet
        return sheet

    @contextmanager
    def _locked(self) -> Generator[None]:
        import fcntl

        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise StorageUnavailable(f"cannot write: {error.strerror}", where=str(self.folder)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def _waiting_in(sheet: _Sheet) -> list[WaitingTool]:
    return [
        WaitingTool(sheet.server, agent, tool, sighting.since)
        for agent, known in sorted(sheet.agents.items())
        for tool, sighting in sorted(known.items())
        if sighting.waits
    ]
