"""The coordinator's REST API with the runner's token: one question, one answer, for all of this room.

A problem comes back as the error it was; what may pass by itself is Unavailable. A token that is refused is renewed
once. Redirects are not followed: the token goes to the host that was named. This file reveals it for the moment of
sending. How often is asked again is for those who ask: ``desk`` and the orchestrator's ``client``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import aiohttp
import msgspec

from outfitter.basics import Secret
from outfitter.errors import OutfitterError, ProtocolViolation, Unavailable
from outfitter.formats import read_problem
from outfitter.runner.credentials import SignIn

_PREFIX = "/api/v1"
_BAD, _UNAUTHORIZED, _BUSY, _SERVER_FAULT = 300, 401, 429, 500
_CONNECT_SECONDS, _ANSWER_SECONDS, _SILENCE_SECONDS = 10.0, 30.0, 60.0
_MOST_BYTES = 32 * 1024 * 1024
_AWAY = (aiohttp.ClientError, OSError, TimeoutError)
Query = Mapping[str, str]


@dataclass(slots=True)
class RestClient:
    """Asks one coordinator as long as the block lasts. ``tokens`` says who; None for one that asks nobody."""

    url: str
    tokens: SignIn | None = field(default=None, repr=False)
    _http: aiohttp.ClientSession | None = field(default=None, repr=False)

    async def __aenter__(self) -> Self:
        """Open the connections."""
        limits = aiohttp.ClientTimeout(total=_ANSWER_SECONDS, sock_connect=_CONNECT_SECONDS)
        self._http = aiohttp.ClientSession(timeout=limits, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        if self._http is not None:
            await self._http.close()

    async def ask(self, method: str, path: str, body: object = None, query: Query | None = None) -> bytes:
        """The content of a good answer; the error that any other tells."""
        data = None if body is None else msgspec.json.encode(body)
        headers = await self._headers()
        status, content = await self._send(method, path, data, query, headers)
        if status == _UNAUTHORIZED and await self._has_renewed(headers):
            status, content = await self._send(method, path, data, query, await self._headers())
        if status >= _BAD:
            raise _error(status, content)
        return content

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncGenerator[aiohttp.StreamReader]:
        """An answer that goes on; Unavailable when it breaks, also in the middle of the block."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
        headers = await self._headers()
        try:
            async with self._opened.get(
                self._place(path), headers=headers, timeout=limits, allow_redirects=False
            ) as got:
                if got.status >= _BAD:
                    if got.status == _UNAUTHORIZED:
                        await self._has_renewed(headers)
                    raise _error(got.status, await _read(got))
                yield got.content
        except _AWAY as error:
            raise self._away(error) from None

    @property
    def _opened(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise Unavailable("the coordinator's client is not open")
        return self._http

    def _place(self, path: str) -> str:
        return f"{self.url}{_PREFIX}{path}"

    async def _headers(self) -> dict[str, str]:
        if self.tokens is None:
            return {}
        return {"authorization": f"Bearer {(await self.tokens.token()).reveal()}"}

    async def _has_renewed(self, headers: Mapping[str, str]) -> bool:
        """Whether there is another token now than the one that was refused."""
        refused = Secret(headers.get("authorization", "").removeprefix("Bearer "))
        return self.tokens is not None and await self.tokens.renew(refused)

    async def _send(
        self, method: str, path: str, data: bytes | None, query: Query | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        kind = {} if data is None else {"content-type": "application/json"}
        try:
            async with self._opened.request(
                method, self._place(path), data=data, params=query, headers={**headers, **kind}, allow_redirects=False
            ) as answer:
                return answer.status, await _read(answer)
        except _AWAY as error:
            raise self._away(error) from None

    def _away(self, error: Exception) -> Unavailable:
        """What is told; the library's own text would show the whole URL."""
        why = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        hint = "is the service running, and is --server right?"
        return Unavailable(f"the coordinator cannot be reached: {why}", where=self.url, hint=hint)


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for piece in answer.content.iter_any():
        content += piece
        if len(content) > _MOST_BYTES:
            raise ProtocolViolation(f"the coordinator's answer is more than {_MOST_BYTES} bytes")
    return bytes(content)


def _error(status: int, content: bytes) -> OutfitterError:
    """The error that an answer tells; one that may be another later is Unavailable, whatever it says of itself."""
    error = read_problem(status, content)
    if status >= _SERVER_FAULT or status == _BUSY:
        return Unavailable(error.message, where=error.where, hint=error.hint)
    return error
