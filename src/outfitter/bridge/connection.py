"""One connected server, as a handler or a program meets it: plain calls, each with an asynchronous twin.

Results are what the server wrote. Errors are McpConnectionError, McpTimeoutError, McpToolError and McpError. A call
through here is no tool call of the session: it asks no policy and leaves no event; bridged tools do (``calling``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from outfitter.basics import Secret
from outfitter.bridge.home import Home
from outfitter.catalog import MCPServer, TimeLimits
from outfitter.errors import (
    McpConnectionError,
    McpError,
    McpTimeoutError,
    McpToolError,
    OutfitterError,
    UpstreamError,
    UpstreamTimeout,
)
from outfitter.upstream import Connection, Link, Message, Pool, State

T = TypeVar("T")
LinkJob = Callable[[Link], Awaitable[T]]
OnMessage = Callable[[Message], None]


@dataclass(slots=True, eq=False)
class McpConnection:
    """A server that is connected, and connected again by itself when it was lost."""

    server: MCPServer
    upstream: Connection = field(repr=False)
    home: Home = field(repr=False)
    key: Secret = field(repr=False)
    holders: int = 1

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def state(self) -> State:
        """How the server is, as far as is known."""
        return self.upstream.health.state

    # ── anything a link can do; the errors are those of ``upstream`` ──

    def use(self, job: LinkJob[T]) -> T:
        """The job's result on a ready link; blocks."""
        return self.home.call(self._job(job))

    async def ause(self, job: LinkJob[T]) -> T:
        """The job's result on a ready link."""
        return await self.home.acall(self._job(job))

    def _job(self, job: LinkJob[T]) -> Callable[[Pool], Awaitable[T]]:
        return lambda _pool: self.upstream.use(job)

    # ── tools ──

    def list_tools(self) -> list[Message]:
        """Every tool as the server describes it."""
        return self._ask(_list_tools)

    async def alist_tools(self) -> list[Message]:
        """Every tool as the server describes it."""
        return await self._aask(_list_tools)

    def call_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, *, limits: TimeLimits | None = None,
        on_progress: OnMessage | None = None,
    ) -> Message:  # fmt: skip
        """The result of a tool by its own name."""
        return self._ask(self._calling(name, arguments, limits, on_progress), name)

    async def acall_tool(
        self, name: str, arguments: Mapping[str, object] | None = None, *, limits: TimeLimits | None = None,
        on_progress: OnMessage | None = None,
    ) -> Message:  # fmt: skip
        """The result of a tool by its own name; cancelling it reaches the server."""
        return await self._aask(self._calling(name, arguments, limits, on_progress), name)

    def _calling(
        self,
        name: str,
        arguments: Mapping[str, object] | None,
        limits: TimeLimits | None,
        on_progress: OnMessage | None,
    ) -> LinkJob[Message]:
        held = limits or self.server.limits
        return lambda link: link.call_tool(name, dict(arguments or {}), limits=held, on_progress=on_progress)

    # ── resources and prompts ──

    def list_resources(self) -> list[Message]:
        """Every resource as the server describes it."""
        return self._ask(_list_resources)

    async def alist_resources(self) -> list[Message]:
        """Every resource as the server describes it."""
        return await self._aask(_list_resources)

    def list_resource_templates(self) -> list[Message]:
        """Every template of resources."""
        return self._ask(_list_templates)

    async def alist_resource_templates(self) -> list[Message]:
        """Every template of resources."""
        return await self._aask(_list_templates)

    def read_resource(self, uri: str) -> Message:
        """What the resource holds."""
        return self._ask(_reading(uri))

    async def aread_resource(self, uri: str) -> Message:
        """What the resource holds."""
        return await self._aask(_reading(uri))

    def list_prompts(self) -> list[Message]:
        """Every prompt as the server describes it."""
        return self._ask(_list_prompts)

    async def alist_prompts(self) -> list[Message]:
        """Every prompt as the server describes it."""
        return await self._aask(_list_prompts)

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Message:
        """The messages of a prompt."""
        return self._ask(_prompting(name, arguments))

    async def aget_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> Message:
        """The messages of a prompt."""
        return await self._aask(_prompting(name, arguments))

    # ── errors ──

    def _ask(self, job: LinkJob[T], tool: str = "") -> T:
        try:
            return self.use(job)
        except OutfitterError as error:
            raise told(error, self.server, tool) from error

    async def _aask(self, job: LinkJob[T], tool: str = "") -> T:
        try:
            return await self.ause(job)
        except OutfitterError as error:
            raise told(error, self.server, tool) from error


async def _list_tools(link: Link) -> list[Message]:
    return await link.list_tools()


async def _list_resources(link: Link) -> list[Message]:
    return await link.list_all("resources/list", "resources")


async def _list_templates(link: Link) -> list[Message]:
    return await link.list_all("resources/templates/list", "resourceTemplates")


async def _list_prompts(link: Link) -> list[Message]:
    return await link.list_all("prompts/list", "prompts")


def _reading(uri: str) -> LinkJob[Message]:
    return lambda link: link.converse("resources/read", {"uri": uri})


def _prompting(name: str, arguments: Mapping[str, str] | None) -> LinkJob[Message]:
    return lambda link: link.converse("prompts/get", {"name": name, "arguments": dict(arguments or {})})


def told(error: OutfitterError, server: MCPServer, tool: str = "") -> McpError:
    """The error as the library's user meets it."""
    if isinstance(error, McpError):
        return error
    if isinstance(error, UpstreamTimeout):
        return McpTimeoutError(error.message, server_name=server.name, timeout=server.timeout)
    if isinstance(error, UpstreamError) and tool:
        said = {"code": error.rpc_code, "message": error.message, "data": error.data}
        return McpToolError(error.message, server_name=server.name, tool_name=tool, rpc_error=said)
    if isinstance(error, UpstreamError):
        return McpError(error.message, where=f"server '{server.name}'")
    return refused(error, server)


def refused(error: OutfitterError, server: MCPServer) -> McpConnectionError:
    """The error of a server that cannot be connected, without what its definition keeps secret."""
    if isinstance(error, McpConnectionError):
        return error
    transport = replace(server, env={}).without_headers().transport
    return McpConnectionError(error.message, server_name=server.name, transport=transport, hint=error.hint)
