"""What happens while one request is answered? Steps, and what the server knows meanwhile.

An exchange is a generator of steps: it says what is to be sent, waited for or asked, and does none of it. The
``conversation`` carries the steps out. ``behaviour`` and ``tools`` write exchanges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from outfitter.testing.script import Script

Message: TypeAlias = dict[str, Any]

META: Final = "io.modelcontextprotocol/"
VERSION_KEY: Final = f"{META}protocolVersion"
CAPABILITIES_KEY: Final = f"{META}clientCapabilities"
LOG_LEVEL_KEY: Final = f"{META}logLevel"
SERVER_KEY: Final = f"{META}serverInfo"
SUBSCRIPTION_KEY: Final = f"{META}subscriptionId"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
NO_SESSION: Final = -32001
NO_RESOURCE: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022
NOT_RECORDED: Final = -32090


@dataclass(frozen=True, slots=True)
class Say:
    """Send this message to the client that asked."""

    message: Message


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait so many seconds; None waits until the request is cancelled."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Ask:
    """Send this request to the client; its response message comes back into the exchange."""

    method: str
    params: Message


@dataclass(frozen=True, slots=True)
class Announce:
    """Send this notification to every client that listens for it."""

    method: str
    params: Message = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Listen:
    """Keep this exchange open: what is announced and wanted goes to it."""

    wanted: Message


@dataclass(frozen=True, slots=True)
class Until:
    """Wait until so many requests were cancelled and so many clients listen for changes."""

    cancelled: int = 0
    listeners: int = 0


@dataclass(frozen=True, slots=True)
class Fetch:
    """Have something done elsewhere; the message it ends in comes back into the exchange."""

    job: Callable[[], Awaitable[Message]]


Step: TypeAlias = Say | Pause | Ask | Announce | Listen | Until | Fetch
Steps: TypeAlias = Generator[Step, Message, None]
Work: TypeAlias = Generator[Step, Message, Message]
"""Steps that end in a result."""


class Refusal(Exception):
    """The request is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """Keep the parts of the error."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def reply(self, id_: object) -> Message:
        """The error as the response to a request."""
        error: Message = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": id_, "error": error}


@dataclass(slots=True)
class Ledger:
    """What happened since the server started. One per server; it changes as requests come in."""

    connections: int = 0
    hits: int = 0
    cancelled: int = 0
    listeners: int = 0
    requests: Counter[str] = field(default_factory=Counter[str])
    strikes: Counter[int] = field(default_factory=Counter[int])
    touched: set[str] = field(default_factory=set[str])
    states: dict[str, list[Any]] = field(default_factory=dict[str, "list[Any]"])

    def snapshot(self) -> Message:
        """The counts as a JSON object."""
        counts = {name: getattr(self, name) for name in ("connections", "hits", "cancelled", "listeners")}
        return {**counts, "requests": dict(self.requests)}


@dataclass(slots=True)
class Peer:
    """What the server knows of one client. Changes with the handshake and with what the client sets."""

    surroundings: Message = field(default_factory=dict[str, Any])
    version: str | None = None
    capabilities: Message = field(default_factory=dict[str, Any])
    log_level: str | None = None
    watched: set[str] = field(default_factory=set[str])


@dataclass(frozen=True, slots=True)
class Desk:
    """Where an exchange is written: the script, the counts, the client."""

    script: Script
    ledger: Ledger
    peer: Peer


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client, and what came with it."""

    id: str | int
    method: str
    params: Message
    modern: bool
    surroundings: Message = field(default_factory=dict[str, Any])

    @property
    def meta(self) -> Mapping[str, Any]:
        """The request's ``_meta``."""
        return part(self.params, "_meta")

    @property
    def target(self) -> str | None:
        """The tool, prompt or resource it names."""
        name = self.params.get("uri" if self.method.startswith("resources/") else "name")
        return name if isinstance(name, str) else None


def part(message: Mapping[str, Any], key: str) -> Message:
    """The object under a key; an empty one if there is none, or something else."""
    value: Any = message.get(key)
    return cast("Message", value) if isinstance(value, dict) else {}


def notification(method: str, **params: Any) -> Message:  # noqa: ANN401 - any JSON value
    """A notification message."""
    return {"jsonrpc": "2.0", "method": method, "params": params}
