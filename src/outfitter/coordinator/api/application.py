"""The API as one ASGI application: the doorway, the route, who asks, the answer.

Every path is served bare and under ``/api/v1``. What goes wrong becomes a problem, here and nowhere else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from outfitter.basics import check_agent_name
from outfitter.coordinator.api.asking import Asked, read_body, read_query, refuse_body
from outfitter.coordinator.api.doorway import EVERY_ANSWER, Doorway
from outfitter.coordinator.api.office import Office
from outfitter.coordinator.api.openapi import describe
from outfitter.coordinator.api.problems import Turned, of_content, problem_of, respond
from outfitter.coordinator.api.routing import Route, Table, choose, lost
from outfitter.coordinator.api.table import ROUTES
from outfitter.errors import NeedsToken, OutfitterError, Unavailable

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from outfitter.coordinator.access.identity import Identity

_log = logging.getLogger(__name__)
_IDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)
_CHALLENGE = {"www-authenticate": 'Bearer realm="outfitter"'}


class Api:
    """An ASGI application."""

    __slots__ = ("_doorway", "_office", "_table")

    def __init__(self, office: Office, doorway: Doorway) -> None:
        """Answer from this office to those who come by this doorway."""
        self._office = office
        self._doorway = doorway
        self._table = Table(ROUTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        answer = await self._answer(scope, receive)
        if isinstance(answer, Response):
            answer.raw_headers.extend(EVERY_ANSWER)
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> ASGIApp:
        body = b""
        route: Route[Any] | None = None
        try:
            headers = self._doorway.check(scope["headers"])
            found = self._table.find(scope["raw_path"])
            route = choose(found.methods, scope["method"])
            query = read_query(scope["query_string"], route.query)
            who, agent = await self._admit(route, found.id, query, headers.get(b"authorization"))
            _check_name(route, found.id)
            if route.body is not None:
                body = await read_body(headers, receive, route.most_bytes)
            elif route.method == "POST":
                await refuse_body(receive)
            asked = Asked(scope["method"], found.id, query, headers, who, found.prefix, agent, body, found.second)
            return await route.handle(self._office, asked)
        except Turned as turned:
            return turned.response()
        except OutfitterError as error:
            return _refusal(error, body, route)
        except Exception:  # noqa: BLE001 - the edge of a request: whatever goes wrong is an answer, and a line in the log
            _log.exception("a request could not be answered")
            return Turned(500, "error", "something went wrong here", hint="the log of the service says what").response()

    async def _admit(
        self,
        route: Route[Any],
        name: str,
        query: Any,  # noqa: ANN401 - the route's own model
        given: bytes | None,
    ) -> tuple[Identity | None, str | None]:
        """Who asks, and about which agent; refused when they may not."""
        if route.action is None or route.action in self._office.free:
            return None, None
        who = await self._office.access.identify(None if given is None else given.decode("latin-1"))
        agent = name if route.concerns == "path" else None
        if route.concerns == "query":
            agent = query.agent or who.agent
        # What the content says is looked at by the handler; until then a bound token counts as its own agent's.
        self._office.access.need(who, route.action, agent=who.agent if route.concerns == "content" else agent)
        return who, agent


def _check_name(route: Route[Any], name: str) -> None:
    """Nothing can have such a name; who wants to give it is told why."""
    if name and not route.names_anything and _IDENT.fullmatch(name) is None:
        if route.method == "PUT":
            check_agent_name(name, what="name")
        raise lost()


def _refusal(error: OutfitterError, body: bytes, route: Route[Any] | None) -> ASGIApp:
    problem = problem_of(error, body)
    if route is not None and route.method == "POST" and not route.names:
        problem = of_content(problem, error)
    headers = _CHALLENGE if isinstance(error, NeedsToken) else {}
    if isinstance(error, Unavailable):
        headers = {"retry-after": "1"}
        _log.warning("a request could not be answered: %s", error)
    return respond(problem, headers)


@cache
def _described() -> bytes:
    return msgspec.json.encode(describe(ROUTES))


def make_api(office: Office, *, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> Api:
    """The REST API of a coordinator, as an ASGI application.

    ``hosts`` and ``origins`` are those of the gateway's gate: names besides loopback under which it may be called, and
    web pages that may call it.
    """
    return Api(replace(office, description=_described), Doorway(hosts, origins))
