"""How a call that Copilot makes goes the one path of all calls.

A tool of this process is called by Copilot and answered here. A tool of a server that Copilot has connected is a
*guest* of the outfit: the hook before the call begins it here, policies and limits included, and holds it open until
the hook after the call brings its result. A hook that fails forbids the call.
"""

from __future__ import annotations

import inspect
import json
import logging
import secrets
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from outfitter.adapters.conversation import ToolAnswer, ToolUse
from outfitter.adapters.copilot.config import Hook
from outfitter.adapters.forms import Json
from outfitter.adapters.outfit import Outfit
from outfitter.adapters.reading import read_arguments, text
from outfitter.adapters.rests import Rests
from outfitter.calls import ToolResult
from outfitter.errors import OutfitterError, Unavailable
from outfitter.tools import Tool, ToolContext

_log = logging.getLogger(__name__)
_BROKEN = "the check before the call failed"
_KNOWN_WORDS = frozenset({"permissionDecision", "permissionDecisionReason"})
_CONTEXT = "additionalContext"
_GONE = "' does not exist."
_BEFORE, _AFTER, _AFTER_FAILURE = "on_pre_tool_use", "on_post_tool_use", "on_post_tool_use_failure"


@dataclass(slots=True, eq=False)
class _Passing:
    """One call that Copilot makes, from the hook before it to the hook after it."""

    call_id: str = ""
    server: str = ""
    settled: anyio.Event = field(default_factory=anyio.Event)
    """It may be made, or it will not be."""
    came: anyio.Event = field(default_factory=anyio.Event)
    over: anyio.Event = field(default_factory=anyio.Event)
    result: ToolResult[Any] | OutfitterError | None = None
    answer: ToolAnswer | None = None

    def end(self, result: ToolResult[Any] | OutfitterError) -> None:
        """Say what came of it."""
        self.result = result
        self.came.set()


class Calls:
    """The calls of one evaluation. Owner of each: a task of one group, so that they end with the evaluation."""

    def __init__(self, outfit: Outfit[Any], *, give_up: Callable[[OutfitterError], None]) -> None:
        """``give_up`` is told what the evaluation cannot survive."""
        self.outfit = outfit
        self._give_up = give_up
        self._group: TaskGroup | None = None
        self._may_go_on: Callable[[], str | None] = lambda: "nothing was begun"
        self._guests: dict[str, Tool[Any, Any]] = {}
        self._rests = Rests()
        self._free: frozenset[str] = frozenset()
        self._ids: defaultdict[str, deque[str]] = defaultdict(deque)
        self._passing: dict[str, _Passing] = {}
        self._open: defaultdict[str, deque[_Passing]] = defaultdict(deque)

    def open(
        self,
        group: TaskGroup,
        guests: Mapping[str, Tool[Any, Any]],
        *,
        free: Iterable[str],
        may_go_on: Callable[[], str | None],
    ) -> None:
        """Take calls from now on: of these guests, by the names that the model sees, and of Copilot's own free tools.

        ``may_go_on`` says why nothing more may be begun.
        """
        self._group, self._may_go_on, self._free = group, may_go_on, frozenset(free)
        self._guests = dict(guests)
        self.outfit.guests = tuple(
            replace(tool, handler=self._hand_over, async_handler=None, value=None, is_bounded=False)
            for tool in guests.values()
        )

    def _start(self, passing: _Passing, use: ToolUse) -> None:
        if self._group is None:
            raise Unavailable("no call is taken yet")
        self._group.start_soon(self._carry, passing, use)

    # ── tools of this process ──

    async def call(self, use: ToolUse) -> ToolAnswer:
        """What the model is told about one call."""
        passing = _Passing()
        self._start(passing, use)
        await passing.over.wait()
        if passing.answer is None:
            raise Unavailable("the evaluation has ended")
        return passing.answer

    async def _carry(self, passing: _Passing, use: ToolUse) -> None:
        try:
            passing.answer = await self.outfit.call(use)
        except OutfitterError as fault:  # such as a server that an opened section must have
            self._give_up(fault)
        finally:
            passing.settled.set()
            passing.over.set()

    # ── tools of servers that Copilot has connected ──

    def begun(self, call_id: str, name: str, arguments: object) -> None:
        """Copilot tells the id of a call before it asks the hook, which is not told."""
        self._ids[_key(name, arguments)].append(call_id)

    def hooks(self, own: Mapping[str, Hook]) -> dict[str, Hook]:
        """The hooks for the SDK: ours, and then those of the user."""
        return {
            **own,
            _BEFORE: self._closed(own.get(_BEFORE)),
            _AFTER: _then(self._after, own.get(_AFTER)),
            _AFTER_FAILURE: _then(self._after, own.get(_AFTER_FAILURE)),
        }

    def _closed(self, own: Hook | None) -> Hook:
        async def before(data: Json, invocation: object) -> Json | None:
            try:
                return await self._before(data, None if own is None else await _refusal(own, data, invocation))
            except Exception:  # noqa: BLE001 - the SDK would let the call through
                _log.exception("the check before a call failed; the call is refused")
                return _denial(_BROKEN)

        return before

    async def _before(self, data: Json, refusal: str | None) -> Json | None:
        name, arguments = text(data.get("toolName")), data.get("toolArgs")
        key = _key(name, arguments)
        known = self._ids[key]
        call_id = known.popleft() if known else f"copilot-{secrets.token_hex(8)}"
        if name not in self._guests:
            is_ours = name in self._free or any(tool.name == name for tool in self.outfit.tools())
            refusal = refusal or (None if is_ours else f"there is no tool '{name}'")
            return None if refusal is None else _denial(refusal)
        if (why := self._may_go_on()) is not None:
            return _denial(why)
        guest = self._guests[name]
        passing = self._passing[call_id] = _Passing(call_id, guest.server or "")
        ending = self._rests.refusal(passing.server) if refusal is None else ToolResult.error(refusal, code="denied")
        if ending is not None:
            passing.end(ending)
        self._start(passing, ToolUse(call_id, guest.name, read_arguments(arguments)))
        await (passing.settled if ending is None else passing.over).wait()
        if passing.over.is_set():
            told = passing.answer.text if passing.answer is not None else "the evaluation has ended"
            return _denial(told)
        self._open[key].append(passing)
        return {"permissionDecision": "allow"}

    async def _hand_over(self, params: object, *, context: ToolContext) -> ToolResult[Any]:  # noqa: ARG002 - Copilot has them
        """The handler of every guest: from here Copilot makes the call."""
        passing = self._passing.pop(context.call_id)
        passing.settled.set()
        await passing.came.wait()
        if isinstance(passing.result, OutfitterError):
            raise passing.result
        return passing.result or ToolResult.error("no result came")

    async def _after(self, data: Json) -> Json | None:
        waiting = self._open[_key(text(data.get("toolName")), data.get("toolArgs"))]
        if not waiting:
            return None
        passing, result = waiting.popleft(), _result(data)
        fault = self._rests.note(passing.server, None if result.success else result.message)
        passing.end(result if fault is None else fault)
        # What the call left behind stands before the model goes on.
        await passing.over.wait()
        return None if fault is None or passing.answer is None else {_CONTEXT: passing.answer.text}

    def ended(self, call_id: str, told: str) -> None:
        """Copilot has no more to do with a call; one whose hook did not come ends here."""
        for waiting in self._open.values():
            for passing in [each for each in waiting if each.call_id == call_id]:
                waiting.remove(passing)
                fault = self._rests.note(passing.server, told)
                passing.end(fault or ToolResult.error(told or "the call was given up"))


def _key(name: str, arguments: object) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"


def _denial(reason: str) -> Json:
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def _result(data: Json) -> ToolResult[Any]:
    found: Json = data.get("toolResult") or {}
    if "error" in data or found.get("resultType") != "success":
        told = text(data.get("error")) or text(found.get("textResultForLlm")) or "the call failed"
        # Copilot takes the tools of a server away that it has lost.
        return ToolResult.error("Copilot is not connected to it any more" if told.endswith(_GONE) else told)
    return ToolResult(text(found.get("textResultForLlm")), found.get("structuredContent"))


def _then(first: Callable[[Json], Any], own: Hook | None) -> Hook:
    async def after(data: Json, invocation: object) -> Any:  # noqa: ANN401 - whatever the user's hook says
        ours: Json | None = await first(data)
        said = None if own is None else await _answer(own(data, invocation))
        if ours is None or said is None:
            return said if ours is None else ours
        return {**said, _CONTEXT: "\n\n".join(filter(None, (ours[_CONTEXT], text(said.get(_CONTEXT)))))}

    return after


async def _refusal(own: Hook, data: Json, invocation: object) -> str | None:
    """Why the user's hook forbids the call; one that fails, or wants more than that, forbids it too."""
    try:
        said: Json = await _answer(own(data, invocation)) or {}
    except Exception:  # noqa: BLE001 - a hook is foreign code
        _log.exception("the hook before a call failed; the call is refused")
        return _BROKEN
    if said.keys() - _KNOWN_WORDS:
        _log.error("a hook before a call can only forbid it, not say %s", ", ".join(sorted(said.keys() - _KNOWN_WORDS)))
        return _BROKEN
    if said.get("permissionDecision", "allow") == "allow":
        return None
    return text(said.get("permissionDecisionReason")) or "a hook forbids it"


async def _answer(said: Any) -> Any:  # noqa: ANN401 - a hook may be a plain function
    return await said if inspect.isawaitable(said) else said
