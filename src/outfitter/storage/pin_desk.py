"""Pins as people see them: rows for commands, the API and pages, found and decided by an id.

An id names one definition of one tool: whoever approves it approves what they have looked at, and nothing that came
after. Tools that wait for one agent stand in the same list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from outfitter.errors import Conflict, NotFound
from outfitter.policy import Held, Pin, PinState, Why, compare, reveal_hidden
from outfitter.resolution import RunPlan, pin_key
from outfitter.storage.late_tools import WaitingTool
from outfitter.storage.pins import PinBook

Row: TypeAlias = dict[str, Any]
"""A pin as JSON has it."""


@dataclass(frozen=True, slots=True)
class PinDesk:
    """Looks pins up, and decides about them, for a person."""

    book: PinBook

    def rows(self, server: str | None = None, state: str | None = None) -> list[Row]:
        """Every definition that is kept, and every tool that waits for an agent; those that wait come first."""
        rows = [_row(pin) for pin in self.book.pins(server)]
        rows += [_late(one) for one in self.book.late.waiting() if server in {None, one.server}]
        chosen = [row for row in rows if state in {None, row["state"]}]
        return sorted(chosen, key=lambda row: row["state"] != PinState.PENDING.value)

    def one(self, id_: str) -> Row:
        """One of them with what it was before, side by side; NotFound."""
        found = self._find(id_)
        if isinstance(found, WaitingTool):
            pins = [pin for pin in self.book.pins(found.server) if (pin.kind, pin.name) == ("tool", found.tool)]
            return {**_late(found), "before": None, "rows": _diff(None, pins[-1]) if pins else []}
        before = self._before(found)
        shown = None if before is None else _row(before)
        return {**_row(found), "before": shown, "rows": _diff(before, found)}

    def approve(self, id_: str, by: str) -> Row:
        """Approve it; it as it is then."""
        found = self._find(id_)
        if isinstance(found, WaitingTool):
            self.book.late.approve(found.server, [found.tool], agent=found.agent)
            return {**_late(found), "state": PinState.PINNED.value, "by": by}
        self.book.approve(found.server, [found.name], digest=found.digest, by=by)
        return self.one(id_)

    def reject(self, id_: str, by: str) -> Row:
        """Reject it; it as it is then. One that only waits for an agent stays hidden by itself: Conflict."""
        found = self._find(id_)
        if isinstance(found, WaitingTool):
            raise Conflict("a tool that appeared later stays hidden as long as nobody approves it")
        self.book.reject(found.server, [found.name], digest=found.digest, by=by)
        return self.one(id_)

    def waiting_of(self, plan: RunPlan) -> Mapping[str, Mapping[str, Held]]:
        """The tools of a plan that are held back, by alias; under no name, what a server says of itself."""
        agent, found = plan.agent.name, dict[str, Mapping[str, Held]]()
        late = [one for one in self.book.late.waiting() if one.agent == agent]
        for alias, planned in plan.servers.items():
            key = pin_key(planned, agent)
            held = {one.tool: Held(one.tool, Why.LATE) for one in late if one.server == key}
            for pin in self.book.pins(key):
                if pin.state is not PinState.PINNED:
                    held[pin.name] = Held(pin.name, pin.why, pin.was, pin.state is PinState.REJECTED)
            found[alias] = {name: one for name, one in held.items() if not name or planned.allows(name)}
        return {alias: held for alias, held in found.items() if held}

    def _find(self, id_: str) -> Pin | WaitingTool:
        pins = {_id(pin): pin for pin in self.book.pins()}
        late = {_late_id(one): one for one in self.book.late.waiting()}
        found = pins.get(id_) or late.get(id_)
        if found is None:
            raise NotFound(f"there is no pin '{id_}'", hint="outfitter pins list shows them all")
        return found

    def _before(self, pin: Pin) -> Pin | None:
        """What was approved last in the place of this one."""
        name = pin.was or pin.name
        pinned = [
            one
            for one in self.book.pins(pin.server)
            if (one.kind, one.name, one.state) == (pin.kind, name, PinState.PINNED) and one.digest != pin.digest
        ]
        return max(pinned, key=lambda one: one.decided) if pinned else None


def _id(pin: Pin) -> str:
    return _digest(pin.server, pin.kind, pin.name, pin.digest)


def _late_id(one: WaitingTool) -> str:
    return _digest(one.server, "late", one.agent, one.tool)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:20]


def _row(pin: Pin) -> Row:
    held = Held(pin.name, pin.why, pin.was, pin.state is PinState.REJECTED)
    return {
        "id": _id(pin), "server": pin.server, "kind": pin.kind, "name": pin.name, "agent": "",
        "state": pin.state.value, "why": pin.why.value, "reason": held.reason, "was": pin.was, "digest": pin.digest,
        "since": pin.since, "decided": pin.decided, "by": pin.by, "hidden": [str(one) for one in pin.hidden],
    }  # fmt: skip


def _late(one: WaitingTool) -> Row:
    return {
        "id": _late_id(one), "server": one.server, "kind": "tool", "name": one.tool, "agent": one.agent,
        "state": PinState.PENDING.value, "why": Why.LATE.value, "reason": Held(one.tool, Why.LATE).reason, "was": "",
        "digest": "", "since": one.since, "decided": "", "by": "", "hidden": [],
    }  # fmt: skip


def _diff(before: Pin | None, after: Pin) -> list[Row]:
    rows = compare(None if before is None else before.definition, after.definition)
    return [{"part": row.part, "mark": row.mark, "before": row.before, "after": row.after} for row in rows]


def shown_name(row: Row) -> str:
    """What a row is about, for a person."""
    return "(instructions)" if row["kind"] == "instructions" else reveal_hidden(str(row["name"]))
