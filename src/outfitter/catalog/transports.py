"""How a server is reached: one type per transport, so that a definition cannot mix them.

Texts may hold placeholders; they are filled when a plan is armed. Connecting is ``upstream``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from outfitter.basics import quote
from outfitter.catalog.headers import HeaderSettings, check_settings
from outfitter.errors import InvalidServer

_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<rest>.*)", re.DOTALL)
_AUTHORITY = re.compile(r"//(?P<authority>[^/?#]*)")
_SHELL = re.compile(r"[;|&<>`\n\r]|\$\(")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def url_fault(url: str) -> str | None:
    """Why this URL cannot be an MCP endpoint; None when it can. A leading placeholder is judged when it is filled."""
    if any(ch <= " " or ch in "\x7f\\" for ch in url):
        return "it holds a space, a control character or a backslash"
    if url.startswith("${"):
        return None
    scheme = _URL.fullmatch(url)
    if scheme is None or scheme["scheme"].lower() not in {"http", "https"}:
        return "it must start with http:// or https://"
    authority = _AUTHORITY.match(scheme["rest"])
    if authority is None or not authority["authority"].rpartition("@")[2]:
        return "it has no host"
    if "@" in authority["authority"]:
        return "it holds a user name or password; put credentials into headers, as references"
    return "it has a fragment ('#…')" if "#" in url else None


def _check_url(url: str) -> None:
    fault = url_fault(url)
    if fault is not None:
        raise InvalidServer(f"invalid URL: {fault}", hint="for example http://localhost:9501/mcp")


def check_env(env: Mapping[str, object]) -> None:
    """Refuse names that no process environment can hold."""
    for name in env:
        if _ENV_NAME.fullmatch(name) is None:
            raise InvalidServer(f"invalid environment variable name {quote(name)}", hint="letters, digits and '_'")


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A subprocess that speaks on stdin and stdout."""

    command: str
    args: tuple[str, ...] = ()
    cwd: str | None = None

    def __post_init__(self) -> None:
        """Refuse what only a shell would understand: none is used."""
        object.__setattr__(self, "args", tuple(self.args))
        if not self.command or self.command.strip() != self.command:
            raise InvalidServer("stdio transport requires 'command'", hint="name the program; arguments go into args")
        if _SHELL.search(self.command):
            raise InvalidServer("the command holds shell syntax", hint="no shell is used; put each argument into args")
        if any("\0" in text for text in (self.command, *self.args, self.cwd or "")):
            raise InvalidServer("the command, an argument or cwd holds a NUL character")


@dataclass(frozen=True, slots=True)
class SseTransport:
    """HTTP with server-sent events, the older remote transport."""

    url: str
    headers: HeaderSettings = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        """Refuse URLs and headers that could never be used."""
        if not self.url:
            raise InvalidServer("sse transport requires 'url'")
        _check_url(self.url)
        check_settings(self.headers, "headers")


@dataclass(frozen=True, slots=True)
class StreamableHttpTransport:
    """Streamable HTTP, the transport for remote servers."""

    url: str
    headers: HeaderSettings = field(default_factory=dict[str, str], repr=False)
    method: Literal["GET", "POST"] = "POST"

    def __post_init__(self) -> None:
        """Refuse URLs, headers and methods that could never be used."""
        if not self.url:
            raise InvalidServer("http transport requires 'url'")
        if self.method != "POST":
            raise InvalidServer("streamable HTTP sends every message by POST", hint="leave 'method' out")
        _check_url(self.url)
        check_settings(self.headers, "headers")


Transport: TypeAlias = StdioTransport | SseTransport | StreamableHttpTransport
RemoteTransport: TypeAlias = SseTransport | StreamableHttpTransport
