"""The dashboard beside the API: made when somebody first looks, so that a start does not wait for templates.

Where there are several workers, the one that has let somebody in answers all their requests: its mark is in the cookie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outfitter.coordinator import Office
    from outfitter.dashboard import Dashboard
    from outfitter.gateway import Relay

_MOST_BODY = 4 * 1024 * 1024


@dataclass(slots=True)
class Pages:
    """An ASGI application."""

    office: Office
    api: Any
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()
    relay: Relay | None = None
    _made: Dashboard | None = field(default=None, repr=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        """Answer one request."""
        from outfitter.dashboard import make_dashboard

        if self._made is None:
            mark = "" if self.relay is None else self.relay.mark
            self._made = make_dashboard(self.office, self.api, hosts=self.hosts, origins=self.origins, mark=mark)
        if not await self._is_answered_elsewhere(scope, receive, send):
            await self._made(scope, receive, send)

    async def _is_answered_elsewhere(self, scope: Any, receive: Any, send: Any) -> bool:  # noqa: ANN401 - ASGI
        """Whether the worker that knows the cookie has answered."""
        from outfitter.gateway import Passed

        cookie = None if self.relay is None else _cookie(scope)
        if self.relay is None or self.relay.owner_of(cookie) is None:
            return False
        body = await _read(receive)
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        query = scope["query_string"].decode("latin-1")
        path = scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
        return await self.relay.forward(cookie, Passed(scope["method"], path, headers, body), receive, send)


def _cookie(scope: Any) -> str | None:  # noqa: ANN401 - ASGI
    from outfitter.dashboard import COOKIE

    given = b"; ".join(value for name, value in scope["headers"] if name == b"cookie").decode("latin-1")
    try:
        found = SimpleCookie(given).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


async def _read(receive: Any) -> bytes:  # noqa: ANN401 - ASGI
    """The whole content of a request; no form of ours is larger than the most that is read."""
    content = bytearray()
    while len(content) <= _MOST_BODY:
        message = await receive()
        content += message.get("body", b"")
        if not message.get("more_body"):
            break
    return bytes(content)
