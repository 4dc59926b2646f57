"""How a handler is run: inline, in a thread of its own when a time limit must hold, or awaited.

A thread cannot be ended from outside: one that overruns its limit goes on, but its transaction was undone, so nothing
it still writes to the session counts.
"""

from __future__ import annotations

import contextvars
import dataclasses
import inspect
import json
import queue
import threading
from collections.abc import Callable
from typing import Any, cast

from outfitter.calls import Done, Failed, Outcome, ToolResult, outcome_of_error
from outfitter.errors import InvalidTool
from outfitter.tools.context import ToolContext
from outfitter.tools.tool import Tool


def run_sync(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> Outcome:
    """What came of the handler, run from code without a loop."""
    handler = tool.runner
    try:
        if handler.is_async:
            return _run_loop(tool, params, context, limit)
        if limit is None or tool.is_bounded:
            return _understood(tool, handler.run(params, context))
        return _understood(tool, _run_in_thread(tool, lambda: handler.run(params, context), limit))
    except Exception as error:  # noqa: BLE001 - a handler is foreign code: whatever it raises is its outcome
        return outcome_of_error(error, server=tool.server, fallback=tool.fallback)


async def run_async(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> Outcome:
    """What came of the handler, awaited; a blocking handler runs in a worker thread."""
    try:
        return _understood(tool, await _await(tool, params, context, None if tool.is_bounded else limit))
    except Exception as error:  # noqa: BLE001 - a handler is foreign code: whatever it raises is its outcome
        return outcome_of_error(error, server=tool.server, fallback=tool.fallback)


async def _await(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> object:
    import anyio
    import anyio.to_thread

    handler = tool.async_runner or tool.runner
    if limit is None and handler.is_async:
        return await handler.run(params, context)
    with anyio.move_on_after(limit):
        if handler.is_async:
            return await handler.run(params, context)
        return await anyio.to_thread.run_sync(handler.run, params, context, abandon_on_cancel=True)
    raise _overrun(tool, limit)


def _understood(tool: Tool[Any, Any], returned: object) -> Outcome:
    """The outcome of a handler that returned a ToolResult, or just a value."""
    if isinstance(returned, ToolResult):
        result = cast("ToolResult[Any]", returned)
        return Done(result) if result.success else Failed(result)
    if inspect.iscoroutine(returned):
        returned.close()
        raise InvalidTool(f"tool '{tool.name}' returned a coroutine", hint="write its handler as 'async def'")
    return Done(ToolResult(_text(returned), returned))


def _text(value: object) -> str:
    """A plain value for the model: a text as it is, anything else as JSON where that is possible."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False, default=_as_json)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _as_json(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _run_loop(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> Outcome:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Not by anyio: where sniffio is installed, a thread with a copied context looks to it like one with a loop.
        return asyncio.run(run_async(tool, params, context, limit))
    raise InvalidTool(
        f"tool '{tool.name}' is asynchronous and was called from a running loop", hint="await aexecute(…)"
    )


def _run_in_thread(tool: Tool[Any, Any], job: Callable[[], Any], limit: float) -> object:
    answers: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((job(), None))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            answers.put((None, error))

    threading.Thread(target=contextvars.copy_context().run, args=(work,), name=f"tool {tool.name}", daemon=True).start()
    try:
        value, error = answers.get(timeout=limit)
    except queue.Empty:
        raise _overrun(tool, limit) from None
    if error is not None:
        raise error
    return value


def _overrun(tool: Tool[Any, Any], limit: float | None) -> TimeoutError:
    return TimeoutError(f"'{tool.name}' did not answer within {limit or 0.0:g} s")
