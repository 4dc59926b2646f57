"""How a handler is run: inline, in a thread of its own when a time limit must hold, or awaited.

A thread cannot be ended from outside: one that overruns its limit goes on, but its transaction is over, so nothing it
still writes to the session counts.
"""

from __future__ import annotations

import contextvars
import inspect
import queue
import threading
from collections.abc import Callable
from typing import Any

from outfitter.errors import InvalidTool
from outfitter.tools.context import ToolContext
from outfitter.tools.handlers import takes_context
from outfitter.tools.tool import Tool


def run_sync(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> object:
    """What the handler returns, run from code without a loop."""
    job = _job(tool.handler, params, context)
    if inspect.iscoroutinefunction(tool.handler):
        return _run_loop(tool, params, context, limit)
    if limit is None or tool.is_bounded:
        return job()
    return _run_in_thread(tool, job, limit)


async def run_async(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> object:
    """What the handler returns, awaited; a blocking handler runs in a worker thread."""
    import anyio
    import anyio.to_thread

    handler = tool.async_handler or tool.handler
    job = _job(handler, params, context)
    seconds = None if tool.is_bounded else limit
    with anyio.move_on_after(seconds):
        if inspect.iscoroutinefunction(handler):
            return await job()
        return await anyio.to_thread.run_sync(job, abandon_on_cancel=True)
    raise _overrun(tool, seconds)


def _job(handler: Callable[..., Any], params: object, context: ToolContext) -> Callable[[], Any]:
    if not inspect.signature(handler).parameters:
        return handler
    return lambda: handler(params, context=context) if takes_context(handler) else handler(params)


def _run_loop(tool: Tool[Any, Any], params: object, context: ToolContext, limit: float | None) -> object:
    import asyncio

    import anyio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(run_async, tool, params, context, limit)
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
