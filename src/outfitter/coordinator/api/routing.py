"""One route: which request it answers, who may ask, what goes in and comes out.

A path names one thing in its second place, or nothing; those of the official registry API, which is not ours, may name
more, further on. Names are unquoted after the path is taken apart, so that a quoted slash stays part of one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal
from urllib.parse import unquote_to_bytes

from outfitter.coordinator.access.roles import Action
from outfitter.coordinator.api.asking import JSON, MOST_BYTES, Asked, Q
from outfitter.coordinator.api.models import NoQuery
from outfitter.coordinator.api.problems import Turned

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from outfitter.coordinator.api.office import Office

PREFIX = "/api/v1"
Handler = Callable[["Office", Asked[Q]], Awaitable["ASGIApp"]]
Concern = Literal["nobody", "path", "query", "content"]
"""Where the agent stands whom a request is about; ``content``: the handler looks and asks whether it may be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer: its status, its model (None: no content), the headers it has."""

    status: int = 200
    model: type[Any] | None = None
    headers: tuple[str, ...] = ()
    media: str = JSON
    other: type[Any] | None = None
    """Another model, which a parameter of the query asks for."""


@dataclass(frozen=True, slots=True)
class Route(Generic[Q]):
    """A method of a path."""

    method: str
    path: str
    summary: str
    handle: Handler[Q]
    answer: Answer
    action: Action | None = None
    """None: everyone may."""
    query: type[Q] = field(default=NoQuery)  # type: ignore[assignment]
    body: type[Any] | None = None
    is_versioned: bool = False
    """Whether If-Match must name the version that is changed."""
    concerns: Concern = "nobody"
    most_bytes: int = MOST_BYTES
    """How long a body may be."""
    problems: tuple[int, ...] = ()
    """Refusals besides those that every route of its kind has."""
    names_anything: bool = False
    """Whether the path may name what no entry is called; the handler looks."""

    @property
    def names(self) -> tuple[str, ...]:
        """What the path calls the things that it names."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


Methods = Mapping[str, Route[Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """The methods of a path, what it names, and what stood before it."""

    methods: Methods
    id: str
    prefix: str
    second: str = ""


class Table:
    """Routes by path."""

    __slots__ = ("_deep", "_paths")

    def __init__(self, routes: Iterable[Route[Any]]) -> None:
        """Sort them by the shape of their path."""
        self._paths: dict[tuple[str, ...], dict[str, Route[Any]]] = {}
        for route in routes:
            shape = tuple("" if part.startswith("{") else part for part in route.path[1:].split("/"))
            self._paths.setdefault(shape, {})[route.method] = route
        self._deep = [shape for shape in self._paths if shape[1:2] not in {(), ("",)}]

    def find(self, raw: bytes) -> Found:
        """What the path of a request leads to; Turned when that is nothing."""
        prefix = ""
        if raw.startswith(b"/api/v1/"):
            prefix, raw = PREFIX, raw[7:]
        try:
            first, *rest = [
                unquote_to_bytes(part).decode() if b"%" in part else part.decode() for part in raw[1:].split(b"/")
            ]
        except ValueError:
            raise lost() from None
        methods = self._paths.get((first, "", *rest[1:]) if rest else (first,))
        if methods is None:
            return self._find_deep((first, *rest), prefix)
        if rest and not rest[0]:
            raise lost()
        return Found(methods, rest[0] if rest else "", prefix)

    def _find_deep(self, parts: tuple[str, ...], prefix: str) -> Found:
        for shape in self._deep:
            if len(shape) == len(parts) and all(
                part and want in {"", part} for want, part in zip(shape, parts, strict=True)
            ):
                names = [part for want, part in zip(shape, parts, strict=True) if not want]
                first, second = (*names, "", "")[:2]
                return Found(self._paths[shape], first, prefix, second)
        raise lost()


def lost() -> Turned:
    """The answer to a path that leads nowhere."""
    return Turned(404, "not_found", "there is nothing here", hint="GET /openapi.json lists the paths")


def choose(methods: Methods, method: str) -> Route[Any]:
    """The route of a method; HEAD is GET without the content."""
    route = methods.get("GET" if method == "HEAD" else method)
    if route is None:
        allowed = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
        raise Turned(405, "method_not_allowed", f"only {allowed} is served here", headers=[("allow", allowed)])
    return route
