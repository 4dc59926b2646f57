"""One call of a bridged tool: typed arguments out, the server's answer in, within the time that is left.

The engine (``tools``) has checked the arguments before and settles the outcome after. Time-outs and lost connections
rise as errors, which the engine knows; what the server answered is read by ``results``.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from outfitter.bridge.connection import McpConnection
from outfitter.bridge.home import current_loop, deliver_on
from outfitter.bridge.results import DEFAULT_LIMITS, ResultLimits, read_answer, read_refusal
from outfitter.bridge.shelf import ResultShelf
from outfitter.calls import ToolResult
from outfitter.catalog import MCPServer, TimeLimits, ToolOverride, complete_arguments, hidden_given
from outfitter.errors import UpstreamError, UpstreamTimeout
from outfitter.schemas import Shape
from outfitter.tools import ToolContext
from outfitter.upstream import Link, Message, Pool

_log = logging.getLogger(__name__)
_SHORTEST = 0.001
_NUMBER = (int, float)


@dataclass(frozen=True, slots=True)
class BridgedCall:
    """How one tool of one server is called; the two handlers of the tool are its methods."""

    server: MCPServer
    tool: str
    connection: McpConnection = field(repr=False)
    arguments: Shape = field(repr=False)
    promise: Shape | None = field(default=None, repr=False)
    limits: ResultLimits = DEFAULT_LIMITS
    override: ToolOverride | None = None
    shelf: ResultShelf | None = None

    def call(self, params: object, *, context: ToolContext) -> ToolResult[Any]:
        """The result, for code without a loop."""
        arguments = self._arguments(params)
        if isinstance(arguments, ToolResult):
            return arguments
        try:
            answer = self.connection.home.call(self._request(arguments, context, None))
        except UpstreamError as error:
            return read_refusal(error)
        return self._result(answer)

    async def acall(self, params: object, *, context: ToolContext) -> ToolResult[Any]:
        """The result, awaited; cancelling it reaches the server."""
        arguments = self._arguments(params)
        if isinstance(arguments, ToolResult):
            return arguments
        try:
            answer = await self.connection.home.acall(self._request(arguments, context, current_loop()))
        except UpstreamError as error:
            return read_refusal(error)
        return self._result(answer)

    def _result(self, answer: Message) -> ToolResult[Any]:
        result = read_answer(answer, self.promise, self.limits)
        return result if self.shelf is None else self.shelf.shorten(answer, result)

    def _arguments(self, params: object) -> Message | ToolResult[Any]:
        """The arguments as they are sent; the refusal, when one is among them that the override hides."""
        given = cast("Message", self.arguments.dump(params)) if params is not None else {}
        if self.override is None:
            return given
        hidden = hidden_given(given, self.override)
        if hidden:
            text = f"'{self.tool}' has no argument '{hidden[0]}'"
            return ToolResult(text, None, success=False, code="unknown_argument")
        return complete_arguments(given, self.override)

    def _request(
        self, arguments: Message, context: ToolContext, loop: AbstractEventLoop | None
    ) -> Callable[[Pool], Coroutine[Any, Any, Message]]:
        """What is done on the loop of the connection."""
        limits = _limits(self.server.limits, context)
        on_progress = deliver_on(loop, _reporter(context))

        async def request(_pool: Pool) -> Message:
            start = anyio.current_time()
            with anyio.CancelScope(deadline=start + limits.call) as scope:

                async def job(link: Link) -> Message:
                    # It is ready: from here the link keeps the limits, and progress may move them up to the total.
                    scope.deadline = start + limits.total
                    return await link.call_tool(self.tool, arguments, limits=limits, on_progress=on_progress)

                return await self.connection.upstream.use(job)
            seconds = anyio.current_time() - start
            raise UpstreamTimeout(
                f"no answer from '{self.tool}' within {seconds:.1f} s", where=f"server '{self.server.name}'"
            )

        return request


def _limits(own: TimeLimits, context: ToolContext) -> TimeLimits:
    """The server's limits, none longer than the deadline allows."""
    if context.deadline is None:
        return own
    left = max(context.deadline.remaining(), _SHORTEST)
    total = min(own.total, left)
    return TimeLimits(own.connect, min(own.call, total), total)


def _reporter(context: ToolContext) -> Callable[[Message], None]:
    """Tells progress to whoever asked; one who fails to listen does not disturb the call."""

    def report(message: Message) -> None:
        progress, total = message.get("progress"), message.get("total")
        if not isinstance(progress, _NUMBER):
            return
        try:
            context.report(progress, total if isinstance(total, _NUMBER) else None, str(message.get("message") or ""))
        except Exception:  # noqa: BLE001 - foreign code on the loop of the wire: it must not end the link
            _log.exception("the report of progress failed")

    return report
