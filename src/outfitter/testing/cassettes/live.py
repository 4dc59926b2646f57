"""How is the real server reached, as its client would reach it? A definition, opened as a wire, with the client's era.

The program gets the whole environment of this process: whoever typed its command line gave both. The client settles
the era itself, so there is no link here; over HTTP each message gets the headers that the client could not send.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, OutfitterError
from outfitter.resolution import ArmedRemote, ArmedServer, ArmedStdio
from outfitter.testing.exchange import VERSION_KEY, Message, part
from outfitter.upstream import (
    HttpClient,
    HttpWire,
    Inbox,
    SpawnRules,
    Wire,
    arm_servers,
    mirrored_parameters,
    open_http_wire,
    open_sse_wire,
    open_stdio_wire,
    parameter_headers,
    routing_headers,
)

_NAME = "live"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")


def command_server(command: Sequence[str], environment: Mapping[str, str] | None = None) -> MCPServer:
    """The server that this command line starts, with every variable of the environment."""
    if not command:
        raise Invalid("there is no command to start", hint="write it behind --, or give --url or --agent")
    variables = os.environ if environment is None else environment
    env = {name: "${" + name + ":-}" for name in variables if _VARIABLE.fullmatch(name)}
    args = tuple(arg.replace("${", "$${") for arg in command[1:])
    return MCPServer.stdio(_NAME, command[0].replace("${", "$${"), args, env=env)


def url_server(url: str, headers: Mapping[str, str]) -> MCPServer:
    """The server at this address; one that ends in ``/sse`` is an SSE server."""
    make = MCPServer.sse if url.rstrip("/").endswith("/sse") else MCPServer.http
    return make(_NAME, url, headers=dict(headers))


def agent_server(agent: str, python: str) -> MCPServer:
    """An agent's endpoint of the gateway, in a process of its own."""
    return command_server((python, "-m", "outfitter", "gateway", "--stdio", "--agent", agent))


def words_of_headers(headers: Mapping[str, str], environment: Mapping[str, str]) -> set[str]:
    """Every value that the headers carry, in whole and in the part that a variable gives."""
    words: set[str] = set()
    for value in headers.values():
        given = {environment.get(name, "") for name in _REFERENCE.findall(value)}
        filled = _REFERENCE.sub(lambda match: environment.get(match[1], ""), value)
        words |= given | {filled, filled.rpartition(" ")[2]}
    return words - {""}


def armed(server: MCPServer) -> ArmedServer:
    """The server with this process's variables."""
    found = arm_servers([server])[server.name]
    if isinstance(found, OutfitterError):
        raise found
    return found


@asynccontextmanager
async def open_wire(server: ArmedServer, inbox: Inbox) -> AsyncGenerator[Wire]:
    """A wire to the server, whatever its transport."""
    async with HttpClient() as client, _opened(server, inbox, client) as wire:
        yield wire


def _opened(server: ArmedServer, inbox: Inbox, client: HttpClient) -> AbstractAsyncContextManager[Wire]:
    if isinstance(server.transport, ArmedStdio):
        rules = SpawnRules(allowed_env=frozenset(server.transport.env), inline_code=True, secret_args=True)
        return open_stdio_wire(server, inbox, rules=rules)
    if server.transport.is_sse:
        return open_sse_wire(server, inbox, client)
    return open_http_wire(server, inbox, client)


@dataclass(slots=True)
class Live:
    """The server behind a wire: it answers a client's messages as they are."""

    server: ArmedServer
    wire: Wire
    _version: str = ""
    _mirrored: dict[str, dict[tuple[str, ...], str]] = field(default_factory=dict[str, dict[tuple[str, ...], str]])

    @property
    def is_http(self) -> bool:
        """Whether messages need headers of their own."""
        return isinstance(self.server.transport, ArmedRemote) and not self.server.transport.is_sse

    async def ask(self, message: Message) -> Message:
        """The whole response to a request."""
        response = await self.wire.ask(message, self._headers(message))
        result = response.get("result")
        if self.is_http and isinstance(result, dict):
            self._learn(str(message.get("method")), cast("Message", result))
        return response

    async def tell(self, message: Message) -> None:
        """Pass a notification of the client on."""
        await self.wire.tell(message, self._headers(message))
        if message.get("method") == "notifications/initialized" and isinstance(self.wire, HttpWire):
            await self.wire.listen(self._legacy_headers())

    def hears_cancelling(self, message: Message) -> bool:
        """Whether a request is given up by telling so; over HTTP the modern era closes the stream instead."""
        return not (self.is_http and _version_of(message))

    async def leave(self) -> None:
        """End the visit of the handshake era, where there is one."""
        if isinstance(self.wire, HttpWire) and self.wire.session_id is not None:
            await self.wire.end_session(self._legacy_headers())

    def _headers(self, message: Message) -> dict[str, str]:
        if not self.is_http:
            return {}
        version = _version_of(message)
        if not version:
            return self._legacy_headers()
        method, params = str(message.get("method")), part(message, "params")
        headers = routing_headers(method, params, version)
        mirrored = self._mirrored.get(str(params.get("name")), {}) if method == "tools/call" else {}
        return headers | parameter_headers(mirrored, part(params, "arguments"))

    def _legacy_headers(self) -> dict[str, str]:
        session = self.wire.session_id if isinstance(self.wire, HttpWire) else None
        version = {"MCP-Protocol-Version": self._version} if self._version else {}
        return {**version, "Mcp-Session-Id": session} if session else version

    def _learn(self, method: str, result: Message) -> None:
        """The version of a handshake, and which arguments of which tools are repeated in headers."""
        if method == "initialize":
            self._version = str(result.get("protocolVersion", ""))
        tools: Any = result.get("tools") if method == "tools/list" else ()
        for tool in tools if isinstance(tools, list) else ():  # pyright: ignore[reportUnknownVariableType] - JSON
            told = cast("Message", tool)
            try:
                self._mirrored[str(told.get("name"))] = mirrored_parameters(told.get("inputSchema"))
            except ValueError:
                continue


def _version_of(message: Message) -> str:
    """The version that a message of the modern era names."""
    return str(part(part(message, "params"), "_meta").get(VERSION_KEY, ""))
