"""What a connectable MCP server is: one type for the three names the documents use.

``MCPServer`` takes the spellings of all three documents and holds one shape: a name, one transport, an environment,
a tool filter and time limits. A row of the registry is ``entries.ServerEntry``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypedDict, Unpack

from outfitter.basics import Secret, SecretRef, check_server_name
from outfitter.catalog.headers import HeaderSettings
from outfitter.catalog.limits import TimeLimits
from outfitter.catalog.presence import PinMode
from outfitter.catalog.tools import ToolFilter
from outfitter.catalog.transports import (
    RemoteTransport,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    Transport,
    check_env,
)
from outfitter.errors import InvalidServer

EnvValue = str | SecretRef | Secret
Sandbox = Literal["none", "isolated"]
TransportName = Literal["stdio", "local", "sse", "http", "streamable-http"]
ArgsFactory = Callable[[Any], Sequence[str]]
_LONGEST_FALLBACK = 500


class ServerPolicy(Protocol):
    """What ``policy.ToolPolicy`` is, as far as a definition has to know it."""

    @property
    def name(self) -> str:
        """How its refusals are told."""
        ...


class ServerOptions(TypedDict, total=False):
    """The options every way of making an MCPServer takes."""

    env: Mapping[str, EnvValue] | None
    description: str | None
    tool_prefix: str | None
    tools: ToolFilter
    enabled_tools: Sequence[str] | None
    disabled_tools: Sequence[str]
    timeout: float | None
    limits: TimeLimits
    required: bool
    shareable: bool
    sandbox: Sandbox
    fallback: str | None
    pins: PinMode
    trusted: bool
    args_factory: ArgsFactory | None
    policies: Sequence[ServerPolicy]


class ServerSpelling(ServerOptions, total=False):
    """The options, and the parts of a transport spelled out as fields."""

    command: str | None
    args: Sequence[str]
    cwd: str | None
    url: str | None
    headers: HeaderSettings | None


@dataclass(frozen=True, slots=True, init=False)
class MCPServer:
    """A connectable definition: where a server is, what it is given, which of its tools are meant."""

    name: str
    transport: Transport
    env: Mapping[str, EnvValue] = field(repr=False)
    tools: ToolFilter
    limits: TimeLimits
    tool_prefix: str | None
    description: str
    required: bool
    shareable: bool
    sandbox: Sandbox
    fallback: str
    """What a model is told to do instead while the server is not available; plain text, nothing in it is filled in."""
    pins: PinMode
    """When the definition of one of its tools counts as approved."""
    trusted: bool
    """Whether what it says of its own tools, such as ``readOnlyHint``, is believed."""
    args_factory: ArgsFactory | None = field(repr=False)
    """Makes the arguments of the program from the parameters of the section that declares the server."""
    policies: tuple[ServerPolicy, ...] = field(repr=False)

    def __init__(
        self, name: str, transport: Transport | TransportName | None = None, **spelled: Unpack[ServerSpelling]
    ) -> None:
        """Read any of the documents' spellings; refuse what could never be connected."""
        _refuse_unknown(spelled, ServerSpelling)
        values: dict[str, object] = {
            "name": check_server_name(name),
            "transport": _read_transport(transport, spelled),
            "env": dict(spelled.get("env") or {}),
            "tools": _read_filter(spelled),
            "limits": _read_limits(spelled),
            "tool_prefix": spelled.get("tool_prefix"),
            "description": spelled.get("description") or "",
            "required": spelled.get("required", False),
            "shareable": spelled.get("shareable", True),
            "sandbox": _read_sandbox(spelled),
            "fallback": _read_fallback(spelled),
            "pins": PinMode(spelled.get("pins", PinMode.FIRST_USE)),
            "trusted": spelled.get("trusted", False),
            "args_factory": spelled.get("args_factory"),
            "policies": tuple(spelled.get("policies", ())),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)
        check_env(self.env)
        if self.args_factory is not None and not isinstance(self.transport, StdioTransport):
            raise InvalidServer("'args_factory' belongs to stdio servers")

    def with_policies(self, *policies: ServerPolicy) -> MCPServer:
        """The same server with these policies on every call of its tools."""
        return replace(self, policies=(*self.policies, *policies))

    def with_args(self, args: Sequence[str]) -> MCPServer:
        """The same stdio server with these arguments, settled: its factory has done its work."""
        if not isinstance(self.transport, StdioTransport):
            raise InvalidServer("a remote server has no arguments")
        return replace(self, transport=replace(self.transport, args=tuple(args)), args_factory=None)

    @classmethod
    def stdio(
        cls,
        name: str,
        command: str,
        args: Sequence[str] = (),
        *,
        cwd: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> MCPServer:
        """A server that is started as a subprocess."""
        return cls(name, StdioTransport(command, tuple(args), cwd), **options)

    @classmethod
    def sse(
        cls, name: str, url: str, *, headers: HeaderSettings | None = None, **options: Unpack[ServerOptions]
    ) -> MCPServer:
        """A remote server on HTTP with server-sent events."""
        return cls(name, SseTransport(url, headers or {}), **options)

    @classmethod
    def http(
        cls, name: str, url: str, *, headers: HeaderSettings | None = None, **options: Unpack[ServerOptions]
    ) -> MCPServer:
        """A remote server on streamable HTTP."""
        return cls(name, StreamableHttpTransport(url, headers or {}), **options)

    @classmethod
    def npm(cls, name: str, package: str, args: Sequence[str] = (), **options: Unpack[ServerOptions]) -> MCPServer:
        """A server from an npm package, started by npx."""
        options.setdefault("description", f"MCP server: {package}")
        return cls(name, StdioTransport("npx", ("-y", package, *args)), **options)

    @classmethod
    def uvx(cls, name: str, package: str, args: Sequence[str] = (), **options: Unpack[ServerOptions]) -> MCPServer:
        """A server from a Python package, started by uvx."""
        options.setdefault("description", f"MCP server: {package}")
        return cls(name, StdioTransport("uvx", (package, *args)), **options)

    @property
    def prefix(self) -> str:
        """What stands before the names of its tools."""
        return self.name if self.tool_prefix is None else self.tool_prefix

    @property
    def timeout(self) -> float:
        """Seconds for one call, as documents 1 and 3 name it."""
        return self.limits.call

    @property
    def command(self) -> str | None:
        """The program of a stdio server; None for a remote one."""
        return self.transport.command if isinstance(self.transport, StdioTransport) else None

    @property
    def args(self) -> tuple[str, ...]:
        """The program's arguments; empty for a remote server."""
        return self.transport.args if isinstance(self.transport, StdioTransport) else ()

    @property
    def cwd(self) -> str | None:
        """The program's working directory, if one is set."""
        return self.transport.cwd if isinstance(self.transport, StdioTransport) else None

    @property
    def url(self) -> str | None:
        """The endpoint of a remote server; None for a stdio one."""
        return None if isinstance(self.transport, StdioTransport) else self.transport.url

    def without_headers(self) -> MCPServer:
        """The same definition with the headers left out of its transport."""
        transport = self.transport
        if isinstance(transport, StdioTransport) or not transport.headers:
            return self
        return replace(self, transport=replace(transport, headers={}))

    @property
    def remote(self) -> RemoteTransport | None:
        """The transport if it carries headers; None for stdio."""
        return None if isinstance(self.transport, StdioTransport) else self.transport


def _refuse_unknown(given: Mapping[str, object], known: type) -> None:
    unknown = given.keys() - known.__annotations__.keys()
    if unknown:
        raise TypeError(f"MCPServer got unknown arguments: {', '.join(sorted(unknown))}")


def _read_transport(transport: Transport | TransportName | None, spelled: ServerSpelling) -> Transport:
    command, url = spelled.get("command"), spelled.get("url")
    if isinstance(transport, StdioTransport | SseTransport | StreamableHttpTransport):
        if command is not None or url is not None or spelled.get("headers"):
            raise InvalidServer("'command', 'url' and 'headers' belong inside the transport that is given")
        return transport
    if command is not None and url is not None:
        raise InvalidServer("a server has 'command' or 'url', not both")
    kind = transport or ("stdio" if command is not None else "http")
    return _spell_stdio(spelled) if kind in {"stdio", "local"} else _spell_remote(kind, spelled)


def _spell_stdio(spelled: ServerSpelling) -> StdioTransport:
    if spelled.get("headers") or spelled.get("url") is not None:
        raise InvalidServer("a stdio server takes no url and no headers", hint="pass values in env")
    return StdioTransport(spelled.get("command") or "", tuple(spelled.get("args", ())), spelled.get("cwd"))


def _spell_remote(kind: str, spelled: ServerSpelling) -> RemoteTransport:
    if spelled.get("args") or spelled.get("command") is not None or spelled.get("cwd") is not None:
        raise InvalidServer(f"'command', 'args' and 'cwd' belong to stdio servers, not to '{kind}'")
    url, headers = spelled.get("url") or "", spelled.get("headers") or {}
    if kind == "sse":
        return SseTransport(url, headers)
    if kind in {"http", "streamable-http"}:
        return StreamableHttpTransport(url, headers)
    raise InvalidServer(f"unknown transport '{kind}'", hint="use stdio, sse or http")


def _read_sandbox(spelled: ServerSpelling) -> Sandbox:
    sandbox = spelled.get("sandbox", "none")
    if sandbox not in {"none", "isolated"}:
        raise InvalidServer("the sandbox must be 'none' or 'isolated'")
    return sandbox


def _read_fallback(spelled: ServerSpelling) -> str:
    fallback = (spelled.get("fallback") or "").strip()
    if len(fallback) > _LONGEST_FALLBACK or not fallback.isprintable():
        message = f"the fallback must be one line of at most {_LONGEST_FALLBACK} printable characters"
        raise InvalidServer(message, hint="say what to do instead, such as: use the gh CLI").under("fallback")
    return fallback


def _read_filter(spelled: ServerSpelling) -> ToolFilter:
    enabled, disabled = spelled.get("enabled_tools"), tuple(spelled.get("disabled_tools", ()))
    if "tools" not in spelled:
        return ToolFilter(None if enabled is None else tuple(enabled), disabled)
    if enabled is not None or disabled:
        raise InvalidServer("give 'tools', or 'enabled_tools' and 'disabled_tools', not both")
    return spelled["tools"]


def _read_limits(spelled: ServerSpelling) -> TimeLimits:
    timeout = spelled.get("timeout")
    if "limits" not in spelled:
        return TimeLimits.of(call=timeout)
    limits = spelled["limits"]
    return limits if timeout is None else TimeLimits.of(timeout, limits.connect, max(limits.total, timeout))
