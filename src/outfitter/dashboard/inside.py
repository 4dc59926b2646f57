"""The API, asked from within the process: pages show what it says, and can do no more than their visitor's token.

The token travels as it would over the network, and so do Host and Origin: whoever is refused there is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import anyio
import msgspec

from outfitter.basics import Secret
from outfitter.formats import read_problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_BAD = 300
_PASSED_ON = frozenset({b"host", b"origin", b"last-event-id"})


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API answered."""

    status: int
    headers: Mapping[bytes, bytes]
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Inside:
    """Asks the API as somebody: whoever holds the token, or nobody in particular."""

    api: ASGIApp
    headers: tuple[tuple[bytes, bytes], ...] = ()
    """Those of the page's own request that the API judges."""
    token: Secret | None = field(default=None, repr=False)

    def for_request(self, scope: Scope, token: Secret | None) -> Inside:
        """The same for one request of a page."""
        passed = tuple((name, value) for name, value in scope["headers"] if name in _PASSED_ON)
        return replace(self, headers=passed, token=token)

    async def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 - JSON
        """What a GET of the API says; what is None is not asked for."""
        asked = {name: _text(value) for name, value in query.items() if value is not None}
        return msgspec.json.decode((await self.ask("GET", path, asked)).content)

    async def send(self, method: str, path: str, body: object = None, version: int | None = None) -> Any:  # noqa: ANN401 - JSON
        """What the API says to a change; ``version`` is the one that was seen."""
        data = b"" if body is None else msgspec.json.encode(body)
        more = () if version is None else ((b"if-match", f'"{version}"'.encode()),)
        answer = await self.ask(method, path, {}, data, more)
        return msgspec.json.decode(answer.content) if answer.content else None

    async def ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes = b"",
        more: tuple[tuple[bytes, bytes], ...] = (),
        *,
        is_checked: bool = True,
    ) -> Answer:
        """The answer; unless told otherwise, a refusal is raised as the error it tells."""
        said: dict[str, Any] = {"content": bytearray()}

        async def receive() -> MutableMapping[str, Any]:
            if said.setdefault("is_read", False):
                await anyio.sleep_forever()  # nobody goes away in here
            said["is_read"] = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                said["status"], said["headers"] = message["status"], dict(message.get("headers", ()))
            else:
                said["content"] += message.get("body", b"")

        if body:
            more = (*more, (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()))
        await self.api(self._scope(method, path, urlencode(query).encode(), more), receive, send)
        answer = Answer(said["status"], said["headers"], bytes(said["content"]))
        if is_checked and answer.status >= _BAD:
            raise read_problem(answer.status, answer.content)
        return answer

    async def stream(self, path: str, query: bytes, receive: Receive, send: Send) -> None:
        """Let the API answer whoever asked, as long as it takes."""
        await self.api(self._scope("GET", path, query), receive, send)

    def _scope(self, method: str, path: str, query: bytes, more: tuple[tuple[bytes, bytes], ...] = ()) -> Scope:
        headers = [*self.headers, *more]
        if self.token is not None:
            headers.append((b"authorization", f"Bearer {self.token.reveal()}".encode()))
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query,
            "root_path": "",
            "headers": headers,
        }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
