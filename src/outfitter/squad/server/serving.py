"""How the squad server is reached: on stdin and stdout, as an ASGI application, or on a loopback port of its own.

On stdin and stdout the viewer is fixed. Over HTTP whoever knows the key says in a header which agent asks, and a visit
of the handshake era belongs to the agent that opened it. On stdout stands nothing but messages: the SDK sends whatever
is printed to stderr. Neighbour: ``server`` answers.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from outfitter.basics import Secret, the_one_in
from outfitter.squad.server.addresses import is_name
from outfitter.squad.server.library import Library
from outfitter.squad.server.notices import Caps, Notices
from outfitter.squad.server.opening import serve_on_stdio
from outfitter.squad.server.server import VISIT_HEADER, Context, TeamDesk, make_server
from outfitter.squad.server.viewers import AGENT_HEADER, Viewer
from outfitter.squad.team import TeamState

_HOST = "127.0.0.1"
_PATH = "/mcp"
_MOST_BYTES = 512 * 1024
_DRAIN_SECONDS = 1
_BEARER = "bearer "
Scope: TypeAlias = MutableMapping[str, Any]
Application: TypeAlias = Callable[[Scope, Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class TeamPlace:
    """Where a squad server is reached in this process, and the key that lets in."""

    url: str
    key: Secret
    authorization: Secret
    """The key as a header says it."""


async def serve_stdio(state: TeamState, viewer: Viewer, told: str = "", caps: Caps | None = None) -> None:
    """Answer on stdin and stdout until stdin ends; ``told`` says in the instructions where the state is read."""
    desk = TeamDesk(Library(state), Notices(state, caps or Caps()), lambda _context: viewer)
    server = make_server(desk, told)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(desk.notices.run)
            await serve_on_stdio(server)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


@asynccontextmanager
async def open_team_app(
    state: TeamState, key: Secret, told: str = "", caps: Caps | None = None
) -> AsyncGenerator[Application]:
    """An ASGI application (streamable HTTP in both eras) that answers as long as the block lasts.

    Requests need the key as bearer token, and one header ``X-Outfitter-Agent`` with the agent that asks.
    """
    desk = TeamDesk(Library(state), Notices(state, caps or Caps()), _viewer_of)
    hosts = [f"{host}:*" for host in (_HOST, "localhost", "[::1]")]
    rules = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    manager = StreamableHTTPSessionManager(
        make_server(desk, told),
        security_settings=rules,
        max_request_body_size=_MOST_BYTES,
        max_sessions=desk.notices.caps.visits,
    )
    async with anyio.create_task_group() as group:
        group.start_soon(desk.notices.run)
        async with manager.run():
            yield TeamDoor(manager.handle_request, desk.notices, key)
        group.cancel_scope.cancel()


@asynccontextmanager
async def serving_team(state: TeamState, told: str = "", caps: Caps | None = None) -> AsyncGenerator[TeamPlace]:
    """The squad server on a free loopback port as long as the block lasts, with a key that only this process has."""
    from outfitter.gateway import Listener, answering, bind_loopback

    key = secrets.token_urlsafe(32)
    with closing(bind_loopback("the squad server")) as bound:
        url = f"http://{_HOST}:{bound.getsockname()[1]}{_PATH}"
        async with (
            open_team_app(state, Secret(key), told, caps) as app,
            answering(Listener(app, bound, _DRAIN_SECONDS)),
        ):
            yield TeamPlace(url, Secret(key), Secret(f"Bearer {key}"))


@dataclass(frozen=True, slots=True)
class TeamDoor:
    """Lets in who has the key and says which agent asks. ``app`` answers them."""

    app: Application
    notices: Notices
    key: Secret = field(repr=False)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        """Answer, or say what is missing."""
        if scope["type"] != "http":
            return
        agents = _headers(scope, AGENT_HEADER)
        if not self._has_key(_headers(scope, "authorization")):
            await _refuse(send, 401, b"the key is missing or wrong")
        elif scope["path"] != _PATH:
            await _refuse(send, 404, b"nothing is here")
        elif len(agents) != 1 or not is_name(agents[0]):
            await _refuse(send, 400, b"one header X-Outfitter-Agent says which agent asks")
        else:
            await self._let_in(agents[0], scope, receive, send)

    async def _let_in(self, agent: str, scope: Scope, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        # The SDK binds a visit to this user, and answers 404 to all others.
        user = AuthenticatedUser(AccessToken(token="", client_id=agent, scopes=[]))
        await self.app({**scope, "user": user}, receive, send)
        if scope["method"] == "DELETE":
            for visit in _headers(scope, VISIT_HEADER):
                self.notices.depart((Viewer(agent), visit))

    def _has_key(self, given: list[str]) -> bool:
        if len(given) != 1 or given[0][: len(_BEARER)].lower() != _BEARER:
            return False
        return Secret(given[0][len(_BEARER) :]) == self.key


def _viewer_of(context: Context) -> Viewer:
    """Who asks, by the header that the door has checked."""
    return Viewer(context.request.headers[AGENT_HEADER]) if context.request is not None else Viewer("")


def _headers(scope: Scope, wanted: str) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == wanted.encode()]


async def _refuse(send: Any, status: int, text: bytes) -> None:  # noqa: ANN401 - as ASGI has it
    headers = [(b"content-type", b"text/plain")]
    if status == 401:  # noqa: PLR2004 - the one that says what is missing
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text})
