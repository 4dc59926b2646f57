"""Which tools each agent has been shown, and which appeared later and wait for a person's approval.

What an agent's first listing of a server shows is trusted. What comes later waits, where the gateway asks at all: under
an exclude rule, which says nothing about tools that nobody knew. Definitions themselves are ``pins``.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from outfitter.basics import quote, suggest
from outfitter.errors import NotFound, StorageUnavailable
from outfitter.storage.pin_base import PinBase, moment

_log = logging.getLogger(__name__)
_MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class WaitingTool:
    """A tool that appeared later, and is hidden from an agent until somebody approves it."""

    server: str
    agent: str
    tool: str
    since: str


@dataclass(slots=True)
class LateTools:
    """The tools that agents have seen, in the file of pins."""

    base: PinBase
    _seen: dict[tuple[str, str], Mapping[str, bool]] = field(
        default_factory=dict[tuple[str, str], "Mapping[str, bool]"]
    )
    """Whether a tool waits, by server and agent, as it was last read."""
    _unwritten: dict[tuple[str, str], Mapping[str, bool]] = field(
        default_factory=dict[tuple[str, str], "Mapping[str, bool]"]
    )
    """What could not be written: it is remembered until this process ends."""
    _told: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        """What was read is read again when somebody has written."""
        self.base.on_change.append(self._seen.clear)

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """Those of the tools that are let in which wait; new ones are written down.

        Where nothing can be read, all wait: nobody can say which were there before.
        """
        if not listed:
            return ()
        with self.base.lock:
            try:
                known = self._of(server, agent)
                if not known or not known.keys() >= set(let_in):
                    known = self._see(server, agent, listed, let_in)
            except StorageUnavailable as error:
                self._tell(server, f"the tools of server '{server}' are hidden from agent '{agent}': {error}")
                return let_in
            return [tool for tool in let_in if known[tool]]

    def _see(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Mapping[str, bool]:
        """Write down what is new; the agent's tools with it, even where they cannot be written."""
        try:
            with self.base.writing(server) as base:
                known = self._read(server, agent)
                new = _new(known, listed, let_in)
                rows = [(server, agent, tool, moment(), waits) for tool, waits in new.items()]
                base.executemany("INSERT OR IGNORE INTO seen VALUES (?, ?, ?, ?, ?)", rows)
        except StorageUnavailable as error:
            known = self._of(server, agent)
            new = _new(known, listed, let_in)
            self._tell(server, f"what server '{server}' shows is remembered until this process ends only: {error}")
            self._unwritten[server, agent] = {**self._unwritten.get((server, agent), {}), **new}
        late = [tool for tool, waits in new.items() if waits]
        if late:
            named = ", ".join(quote(tool) for tool in late[:_MOST_NAMED]) + (", ..." if late[_MOST_NAMED:] else "")
            _log.warning("server '%s' has new tools, hidden from agent '%s' until they are approved: %s "
                         "(outfitter squad approve-tools %s)", server, agent, named, server)  # fmt: skip
        return {**known, **new}

    def _of(self, server: str, agent: str) -> Mapping[str, bool]:
        self.base.refresh(server)
        if (server, agent) not in self._seen:
            self._seen[server, agent] = self._read(server, agent)
        return {**self._seen[server, agent], **self._unwritten.get((server, agent), {})}

    def _read(self, server: str, agent: str) -> Mapping[str, bool]:
        rows = self.base.query("SELECT tool, waits FROM seen WHERE server = ? AND agent = ?", server, agent)
        return {tool: bool(waits) for tool, waits in rows}

    def _tell(self, server: str, text: str) -> None:
        if server not in self._told:
            self._told.add(server)
            _log.warning("%s", text)

    # ── for people ──

    def waiting(self) -> tuple[WaitingTool, ...]:
        """Every tool that waits, by server and agent."""
        with self.base.lock:
            rows = self.base.query(
                "SELECT server, agent, tool, since FROM seen WHERE waits ORDER BY server, agent, tool"
            )
        return tuple(WaitingTool(*row) for row in rows)

    def approve(self, server: str, tools: Iterable[str] = (), *, agent: str | None = None) -> tuple[WaitingTool, ...]:
        """Let these tools in, or all that wait; those that were let in. NotFound for one that does not wait."""
        waits = [one for one in self.waiting() if one.server == server and agent in {None, one.agent}]
        wanted, names = tuple(tools), {one.tool for one in waits}
        for tool in wanted:
            if tool not in names:
                whose = "" if agent is None else f" for agent '{agent}'"
                raise NotFound(f"no tool '{tool}' of server '{server}' waits{whose}", hint=suggest(tool, names))
        chosen = tuple(one for one in waits if not wanted or one.tool in wanted)
        if chosen:
            with self.base.lock, self.base.writing(server, is_told=True) as base:
                base.executemany(
                    "UPDATE seen SET waits = 0 WHERE server = ? AND agent = ? AND tool = ?",
                    [(one.server, one.agent, one.tool) for one in chosen],
                )
        return chosen


def _new(known: Mapping[str, bool], listed: Collection[str], let_in: Collection[str]) -> dict[str, bool]:
    """What is not known yet: all of a first listing is trusted, later only what is let in counts, and waits."""
    if not known:
        return dict.fromkeys(listed, False)
    return {tool: True for tool in let_in if tool not in known}
