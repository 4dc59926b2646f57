"""How one call goes, for every tool alike.

validate → deadline → policies → a person, where they ask → budget → transaction → handler → restore on failure →
policies notified → event.
``execute`` blocks, ``aexecute`` awaits; between them only the way the handler is run differs. Every call leaves one
ToolInvoked, whatever came of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from outfitter.calls import Failed, TimedOut, ToolResult, result_of
from outfitter.tools.approving import ask_async, ask_sync
from outfitter.tools.context import ToolContext
from outfitter.tools.invocation import Invocation
from outfitter.tools.limits import Deadline
from outfitter.tools.running import run_async, run_sync
from outfitter.tools.tool import Tool

_SECONDS_TO_COMPENSATE = 30.0


def execute(tool: Tool[Any, Any], arguments: object = None, *, context: ToolContext | None = None) -> ToolResult[Any]:
    """The result of one call; a failure of any kind is a result too, never an exception."""
    call = _execute(tool, arguments, context or ToolContext())
    result = result_of(call.settled)
    undo = _compensation(call)
    if undo is None:
        return result
    return _told(result, undo, result_of(_execute(undo, call.arguments, _after(call)).settled))


async def aexecute(
    tool: Tool[Any, Any], arguments: object = None, *, context: ToolContext | None = None
) -> ToolResult[Any]:
    """The result of one call, awaited; cancelling it restores the session and leaves its event too."""
    call = await _aexecute(tool, arguments, context or ToolContext())
    result = result_of(call.settled)
    undo = _compensation(call)
    if undo is None:
        return result
    return _told(result, undo, result_of((await _aexecute(undo, call.arguments, _after(call))).settled))


def _execute(tool: Tool[Any, Any], arguments: object, context: ToolContext) -> Invocation:
    with Invocation(tool, arguments, context) as call:
        if call.may_begin() or _is_approved(call):
            with call.begin() as transaction:
                call.end(run_sync(tool, call.params, call.context, call.limit), transaction)
    return call


async def _aexecute(tool: Tool[Any, Any], arguments: object, context: ToolContext) -> Invocation:
    with Invocation(tool, arguments, context) as call:
        if call.may_begin() or await _ais_approved(call):
            with call.begin() as transaction:
                call.end(await run_async(tool, call.params, call.context, call.limit), transaction)
    return call


def _is_approved(call: Invocation) -> bool:
    """Whether a person was to be asked, and said yes."""
    if call.wish is None or call.approver is None:
        return False
    return call.hear(ask_sync(call.approver, call.wish, call.approval_seconds))


async def _ais_approved(call: Invocation) -> bool:
    if call.wish is None or call.approver is None:
        return False
    return call.hear(await ask_async(call.approver, call.wish, call.approval_seconds))


def _compensation(call: Invocation) -> Tool[Any, Any] | None:
    """What undoes a call that may have done something."""
    return call.tool.compensate if call.has_begun and isinstance(call.outcome, Failed | TimedOut) else None


def _after(call: Invocation) -> ToolContext:
    """The surroundings in which a call is undone: clearing up is not kept from its work by a limit that was reached."""
    deadline = None if call.context.deadline is None else Deadline.after(_SECONDS_TO_COMPENSATE)
    return replace(call.context, call_id="", deadline=deadline, budget=None)


def _told(result: ToolResult[Any], undo: Tool[Any, Any], undone: ToolResult[Any]) -> ToolResult[Any]:
    ending = f"undone by '{undo.name}'" if undone.success else f"'{undo.name}' could not undo it: {undone.message}"
    return replace(result, message=f"{result.message} ({ending})")
