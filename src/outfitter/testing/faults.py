"""How may a scripted server misbehave? One small value per fault.

A fault that strikes requests has a ``When``: which requests, after how many good ones, how often. The others hold from
the start. What a fault does to a reply is ``mischief``; that a process dies or a connection is reset is done by the
servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypeVar

from outfitter.errors import Invalid

ANY = "*"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class When:
    """Which requests are struck: a method (``*`` = any), a tool, prompt or resource, after so many, so often.

    Over HTTP, ``GET`` and ``DELETE`` name the requests without a message.
    """

    method: str = "tools/call"
    name: str | None = None
    after: int = 0
    times: int | None = None

    def fits(self, method: str, name: str | None) -> bool:
        """Whether a request is one of those that are counted."""
        return self.method in {ANY, method} and self.name in {None, name}

    def strikes(self, count: int) -> bool:
        """Whether the fault strikes the request that is the ``count``-th of those, counted from one."""
        return count > self.after and (self.times is None or count <= self.after + self.times)


ALWAYS = When()


@dataclass(frozen=True, slots=True)
class Crash:
    """The process dies by a signal, or exits with a code, before it answers. In a process of its own only."""

    when: When = ALWAYS
    signal: int = 9
    code: int | None = None
    stderr: str = ""


@dataclass(frozen=True, slots=True)
class Hang:
    """The request is never answered."""

    when: When = ALWAYS


@dataclass(frozen=True, slots=True)
class LateReply:
    """The reply comes after ``seconds``, also when the request was cancelled meanwhile."""

    when: When = ALWAYS
    seconds: float = 0.2


@dataclass(frozen=True, slots=True)
class Garbage:
    """This text comes instead of the reply. Lone surrogates stand for bytes that are not UTF-8."""

    when: When = ALWAYS
    text: str = "this is not JSON"


@dataclass(frozen=True, slots=True)
class Slow:
    """The reply dribbles: so many bytes, then a pause."""

    when: When = ALWAYS
    bytes_per_interval: int = 1
    interval: float = 0.05


@dataclass(frozen=True, slots=True)
class Huge:
    """The reply is a result with ``size`` bytes of text; unframed, the bytes come without any message around them."""

    when: When = ALWAYS
    size: int = 1 << 24
    framed: bool = True


@dataclass(frozen=True, slots=True)
class WrongId:
    """The reply carries an id that nobody used."""

    when: When = ALWAYS


@dataclass(frozen=True, slots=True)
class DuplicateReply:
    """The reply comes twice."""

    when: When = ALWAYS


@dataclass(frozen=True, slots=True)
class Status:
    """HTTP: a bare status instead of an answer."""

    when: When = ALWAYS
    code: int = 500
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Redirect:
    """HTTP: the client is sent to another URL."""

    when: When = ALWAYS
    to: str = "http://127.0.0.1:9/mcp"
    code: int = 307


@dataclass(frozen=True, slots=True)
class Reset:
    """HTTP: the connection is reset, before the headers, after them, or in the middle of the reply.

    With server-sent events, ``request`` resets the connection of the request, the others that of the lasting stream.
    """

    when: When = ALWAYS
    at: Literal["request", "headers", "body"] = "headers"


@dataclass(frozen=True, slots=True)
class SessionLoss:
    """HTTP, handshake era: the server forgets every session id, so this request and later ones get 404."""

    when: When = ALWAYS


@dataclass(frozen=True, slots=True)
class Banner:
    """stdio: text on stdout before the first message."""

    text: str = "Server ready."


@dataclass(frozen=True, slots=True)
class StderrFlood:
    """stdio: so many bytes on stderr at the start."""

    size: int = 1 << 20


@dataclass(frozen=True, slots=True)
class DeadOnArrival:
    """stdio: the process says something on stderr and exits before it reads anything."""

    code: int = 1
    stderr: str = "cannot start"


@dataclass(frozen=True, slots=True)
class SlowStart:
    """Nothing is answered during the first seconds."""

    seconds: float = 0.5


@dataclass(frozen=True, slots=True)
class IgnoreTermination:
    """stdio: the end of stdin and SIGTERM are ignored."""


@dataclass(frozen=True, slots=True)
class EndlessCursor:
    """Lists never end: each page has a next one, with a new cursor or always the same."""

    loop: bool = False


@dataclass(frozen=True, slots=True)
class ListStorm:
    """So many list-changed notifications as soon as a client listens."""

    count: int = 1000


RequestFault: TypeAlias = (
    Crash
    | Hang
    | LateReply
    | Garbage
    | Slow
    | Huge
    | WrongId
    | DuplicateReply
    | Status
    | Redirect
    | Reset
    | SessionLoss
)
StandingFault: TypeAlias = (
    Banner | StderrFlood | DeadOnArrival | SlowStart | IgnoreTermination | EndlessCursor | ListStorm
)
Fault: TypeAlias = RequestFault | StandingFault

_KINDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (*RequestFault.__args__, *StandingFault.__args__)}


def write_fault(fault: Fault) -> dict[str, Any]:
    """A fault as a JSON object."""
    values = {item.name: getattr(fault, item.name) for item in fields(fault)}
    if isinstance(when := values.get("when"), When):
        values["when"] = {item.name: getattr(when, item.name) for item in fields(when)}
    if "headers" in values:
        values["headers"] = dict(values["headers"])
    return {"fault": type(fault).__name__, **values}


def read_fault(data: Mapping[str, Any]) -> Fault:
    """A fault from its JSON object."""
    values = dict(data)
    kind = _KINDS.get(str(values.pop("fault", "")))
    if kind is None:
        raise Invalid(f"there is no such fault: {data.get('fault')!r}", hint=f"one of {', '.join(sorted(_KINDS))}")
    if "when" in values:
        values["when"] = made(When, values["when"])
    return made(kind, values)


def made(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """A value from its fields; unknown and missing ones are refused."""
    try:
        return kind(**values)
    except TypeError as error:
        raise Invalid(f"this is no {kind.__name__}: {error}") from error
