"""Tools that are not, or not yet, what somebody approved: hidden from lists, and a call of one says so.

Definitions are compared where a list is made, and a call finds its tool in that list: nothing is asked a second time.
What is approved is decided for a server; what appears later under an exclude rule, which gives everything that nobody
thought of, waits for each agent. Where pins are kept is ``storage``; what counts as a change is ``policy``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from outfitter.catalog import PinMode
from outfitter.policy import Definition, Held, Why
from outfitter.resolution import PlannedServer, pin_key

CODE = "pin_mismatch"
LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
"""What a server would say if its tools had changed."""


class Pins(Protocol):
    """Who remembers what was approved, by the key of a server (``pin_key``)."""

    def look(self, server: str, mode: PinMode, listed: Sequence[Definition]) -> Mapping[str, Held]:
        """The definitions that are held back, by name; what is new is written down."""
        ...

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """Those of the tools that are let in which appeared later and wait for this agent."""
        ...

    def pin_of(self, server: str, tool: str) -> str:
        """The digest of the approved definition of a tool; empty when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class _Unpinned:
    """Nothing is remembered, so nothing waits."""

    def look(self, server: str, mode: PinMode, listed: Sequence[Definition]) -> Mapping[str, Held]:
        """None."""
        del server, mode, listed
        return {}

    def sift(self, server: str, agent: str, listed: Collection[str], let_in: Collection[str]) -> Collection[str]:
        """None."""
        del server, agent, listed, let_in
        return ()

    def pin_of(self, server: str, tool: str) -> str:
        """None."""
        del server, tool
        return ""


UNPINNED: Pins = _Unpinned()


def held_back(
    planned: PlannedServer, agent: str, definitions: Callable[[], Sequence[Definition]], pins: Pins
) -> Mapping[str, Held]:
    """The tools of a list that the gates let in and that wait for a person, by name."""
    mode = planned.definition.value.pins
    if pins is UNPINNED or mode is PinMode.OFF:
        return {}
    listed, key = definitions(), pin_key(planned, agent)
    held = {name: one for name, one in pins.look(key, mode, listed).items() if planned.allows(name)}
    if any(gate.filter.exclude for gate in planned.gates):
        named = {name for gate in planned.gates for name in gate.filter.include or ()}
        names = list(dict.fromkeys(one.name for one in listed))
        let_in = [tool for tool in names if tool not in named and planned.allows(tool)]
        late = pins.sift(key, agent, names, let_in)
        held = {tool: Held(tool, Why.LATE) for tool in late} | held
    return held


def said_by(planned: PlannedServer, agent: str, instructions: str, pins: Pins) -> str:
    """What a server says of itself, where that is what somebody approved; nothing otherwise."""
    mode = planned.definition.value.pins
    if pins is UNPINNED or mode is PinMode.OFF:
        return instructions
    held = pins.look(pin_key(planned, agent), mode, (Definition.of_instructions(instructions),))
    return "" if held else instructions
