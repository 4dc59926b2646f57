"""How one call goes, for every tool alike.

validate → budget and deadline → policies → transaction → handler → restore on failure → policies notified → event.
``execute`` blocks, ``aexecute`` awaits; between them only the way the handler is run differs. Every call leaves one
ToolInvoked, whatever came of it.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

from outfitter.calls import (
    Call,
    Done,
    Failed,
    Outcome,
    Refused,
    TimedOut,
    ToolInvoked,
    ToolResult,
    outcome_of_error,
    redact,
    result_of,
)
from outfitter.catalog import JsonValue
from outfitter.errors import OutfitterError
from outfitter.schemas import Shape
from outfitter.tools.context import ToolContext
from outfitter.tools.enforcement import judge_call, notify
from outfitter.tools.running import run_async, run_sync
from outfitter.tools.tool import Tool

_MOST_FAULTS = 8


@dataclass(slots=True)
class _Invocation:
    """One call from its beginning to its event."""

    tool: Tool[Any, Any]
    given: object
    context: ToolContext
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.perf_counter)
    params: object = None
    decision: str = "allow"
    call: Call = field(init=False)

    def __post_init__(self) -> None:
        """Give the call its id."""
        self.context = replace(self.context, call_id=self.context.call_id or uuid.uuid4().hex)
        self.call = self._call_with({})

    def _call_with(self, arguments: Mapping[str, JsonValue]) -> Call:
        tool, session = self.tool, self.context.session
        return Call(tool.name, tool.tool, arguments, tool.server, self.context.call_id, session.session_id)

    def refusal(self) -> Outcome | None:
        """Why the handler must not be run; None when it may be. Fills in ``params``."""
        try:
            unfit = self._validate()
        except OutfitterError as error:
            unfit = Refused(str(error), error.code)
        return unfit or self._afford() or self._permit()

    def _validate(self) -> Refused | None:
        shape = self.tool.params
        arguments = _as_json(self.given, shape)
        self.call = self._call_with(arguments)
        faults = shape.faults(cast("JsonValue", arguments))
        if faults:
            told = "; ".join(map(str, faults[:_MOST_FAULTS]))
            return Refused(f"invalid arguments for '{self.tool.name}': {told}", "invalid_arguments")
        self.params = shape.load(cast("JsonValue", arguments))
        return None

    def _afford(self) -> Outcome | None:
        deadline = self.context.deadline
        if deadline is not None and deadline.remaining() == 0.0:
            return TimedOut(f"the deadline has passed; '{self.tool.name}' was not begun")
        broke = self.context.budget.spend_call() if self.context.budget is not None else None
        return None if broke is None else Refused(broke, "budget_spent")

    def _permit(self) -> Refused | None:
        decision, policy = judge_call(self.tool, self.call, self.context)
        if decision.allowed:
            return None
        self.decision = "deny" if decision.rank == 0 else "ask"
        code = "denied" if decision.rank == 0 else "approval_required"
        told = decision.reason if decision.rank == 0 else f"{decision.reason}: a person must approve it first"
        return Refused(f"policy '{policy}': {told}", code)

    @property
    def limit(self) -> float | None:
        """The seconds the handler has; None without a limit."""
        limits = [self.tool.timeout, None if self.context.deadline is None else self.context.deadline.remaining()]
        return min((limit for limit in limits if limit is not None), default=None)

    def settle(self, outcome: Outcome) -> ToolResult[Any]:
        """Tell the policies, leave the event, and give the result."""
        notify(self.tool, self.call, outcome, self.context)
        server = self.tool.server
        self.context.session.dispatch(
            ToolInvoked(
                name=self.tool.name,
                adapter=self.context.adapter if server is None else f"mcp:{server}",
                params=redact(self.call.arguments),
                outcome=outcome,
                source=self.tool.source,
                created_at=self.created_at,
                duration=time.perf_counter() - self.started,
                call_id=self.call.call_id,
                mcp_server=server,
                session_id=self.context.session.session_id,
                decision=self.decision,
            )
        )
        return result_of(outcome)


def execute(tool: Tool[Any, Any], arguments: object = None, *, context: ToolContext | None = None) -> ToolResult[Any]:
    """The result of one call; a failure of any kind is a result too, never an exception."""
    call = _Invocation(tool, arguments, context or ToolContext())
    outcome = call.refusal()
    if outcome is None:
        with call.context.session.transaction() as transaction:
            try:
                outcome = _outcome(run_sync(tool, call.params, call.context, call.limit))
            except Exception as error:  # noqa: BLE001 - a handler is foreign code: whatever it raises is its outcome
                outcome = outcome_of_error(error)
            except BaseException:
                call.settle(_cancelled(transaction.rollback()))
                raise
            if not isinstance(outcome, Done):
                transaction.rollback()
    result = call.settle(outcome)
    undo = _compensation(tool, outcome)
    return result if undo is None else _told(result, undo, execute(undo, call.call.arguments, context=_again(call)))


async def aexecute(
    tool: Tool[Any, Any], arguments: object = None, *, context: ToolContext | None = None
) -> ToolResult[Any]:
    """The result of one call, awaited; cancelling it restores the session and leaves its event too."""
    call = _Invocation(tool, arguments, context or ToolContext())
    outcome = call.refusal()
    if outcome is None:
        with call.context.session.transaction() as transaction:
            try:
                outcome = _outcome(await run_async(tool, call.params, call.context, call.limit))
            except Exception as error:  # noqa: BLE001 - a handler is foreign code: whatever it raises is its outcome
                outcome = outcome_of_error(error)
            except BaseException:
                call.settle(_cancelled(transaction.rollback()))
                raise
            if not isinstance(outcome, Done):
                transaction.rollback()
    result = call.settle(outcome)
    undo = _compensation(tool, outcome)
    return (
        result if undo is None else _told(result, undo, await aexecute(undo, call.call.arguments, context=_again(call)))
    )


def _as_json(given: object, shape: Shape) -> Mapping[str, JsonValue]:
    if given is None:
        return {}
    return cast("Mapping[str, JsonValue]", given if isinstance(given, Mapping) else shape.dump(given))


def _outcome(returned: object) -> Outcome:
    if not isinstance(returned, ToolResult):
        return Done(ToolResult("" if returned is None else str(returned), returned))
    result = cast("ToolResult[Any]", returned)
    return Done(result) if result.success else Failed(result)


def _cancelled(_restored: None) -> Failed:
    return Failed(ToolResult("the call was cancelled", None, success=False, code="cancelled"))


def _compensation(tool: Tool[Any, Any], outcome: Outcome) -> Tool[Any, Any] | None:
    """What undoes a call that may have done something."""
    return tool.compensate if isinstance(outcome, Failed | TimedOut) else None


def _again(call: _Invocation) -> ToolContext:
    """The same surroundings for another call."""
    return replace(call.context, call_id="")


def _told(result: ToolResult[Any], undo: Tool[Any, Any], undone: ToolResult[Any]) -> ToolResult[Any]:
    ending = f"undone by '{undo.name}'" if undone.success else f"'{undo.name}' could not undo it: {undone.message}"
    return replace(result, message=f"{result.message} ({ending})")
