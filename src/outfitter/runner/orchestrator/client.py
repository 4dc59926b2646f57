"""How the orchestrator asks the coordinator: its REST API with the runner's token, again and again while it is away.

Everything asked here may be asked twice: runs are made under an id of ours. This file reveals the token for the moment
of sending. What a problem says comes back as the error it was. Neighbour: ``credentials`` brings the token.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import aiohttp
import anyio
import msgspec

from outfitter import errors
from outfitter.basics import Secret
from outfitter.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    OutfitterError,
    ProtocolViolation,
    Refused,
    Unavailable,
)
from outfitter.runner.credentials import SignIn

PREFIX = "/api/v1"
_WHERE = "coordinator"
_MOST_BYTES = 32 * 1024 * 1024
_LONGEST_MESSAGE = 2000
_CONNECT_SECONDS, _SILENCE_SECONDS = 10.0, 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_UNAUTHORIZED, _BAD, _TOO_MANY, _SERVER_FAULT = 401, 300, 429, 500
_BRANCHES: Mapping[int, type[OutfitterError]] = {401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CoordinatorClient:
    """The coordinator at a URL. ``patience`` is for how many seconds an answer is tried for while it is away."""

    url: str
    tokens: SignIn | None = field(repr=False)
    """Who asks; None for a coordinator that asks nobody."""
    http: aiohttp.ClientSession = field(repr=False)
    patience: float = 30.0

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """What is at a path; NotFound when nothing is."""
        return await self._ask("GET", path, None, query)

    async def post(self, path: str, body: Mapping[str, object]) -> Json:
        """What came of a request that may be repeated."""
        return await self._ask("POST", path, msgspec.json.encode(body), None)

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncGenerator[aiohttp.StreamReader]:
        """An answer that goes on; Unavailable when it cannot be had now. It ends as connections end: with OSError."""
        headers = await self._headers()
        patience = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS)
        async with self.http.get(
            f"{self.url}{PREFIX}{path}", headers=headers, allow_redirects=False, timeout=patience
        ) as answer:
            if answer.status >= _BAD:
                if answer.status == _UNAUTHORIZED:
                    await self._renew(headers)
                raise Unavailable(f"it answered {answer.status}", where=_WHERE)
            yield answer.content

    async def _ask(self, method: str, path: str, body: bytes | None, query: Mapping[str, str] | None) -> Json:
        pause, ends = _FIRST_PAUSE, anyio.current_time() + self.patience
        while True:
            try:
                return await self._ask_once(method, path, body, query)
            except Unavailable:
                if anyio.current_time() + pause > ends:
                    raise
            await anyio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _ask_once(self, method: str, path: str, body: bytes | None, query: Mapping[str, str] | None) -> Json:
        headers = await self._headers()
        status, content = await self._send(method, path, body, query, headers)
        if status == _UNAUTHORIZED and await self._renew(headers):
            status, content = await self._send(method, path, body, query, await self._headers())
        if status >= _BAD:
            raise _problem(status, content)
        return _object(content)

    async def _send(
        self, method: str, path: str, body: bytes | None, query: Mapping[str, str] | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        try:
            async with self.http.request(
                method, f"{self.url}{PREFIX}{path}", data=body, params=query, headers=headers, allow_redirects=False
            ) as answer:
                return answer.status, await _read(answer)
        except (aiohttp.ClientError, OSError) as error:
            # Its own text would show the URL, which an operator may have written a secret into.
            raise Unavailable(f"it cannot be reached ({type(error).__name__})", where=_WHERE) from None

    async def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self.tokens is not None:
            headers["Authorization"] = f"Bearer {(await self.tokens.token()).reveal()}"
        return headers

    async def _renew(self, sent: Mapping[str, str]) -> bool:
        return self.tokens is not None and await self.tokens.renew(
            Secret(sent["Authorization"].removeprefix("Bearer "))
        )


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for piece in answer.content.iter_any():
        content += piece
        if len(content) > _MOST_BYTES:
            raise ProtocolViolation(f"an answer of more than {_MOST_BYTES} bytes", where=_WHERE)
    return bytes(content)


def _object(content: bytes) -> Json:
    try:
        found: Any = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProtocolViolation("it answered what is no JSON object", where=_WHERE)
    return cast("Json", found)


def _problem(status: int, content: bytes) -> OutfitterError:
    """The error that an answer tells; what may pass is Unavailable."""
    try:
        found: Any = msgspec.json.decode(content)
    except (ValueError, RecursionError):
        found = None
    problem: Json = cast("Json", found) if isinstance(found, dict) else {}
    if status >= _SERVER_FAULT or status == _TOO_MANY:
        return Unavailable(str(problem.get("detail") or f"it answered {status}")[:_LONGEST_MESSAGE], where=_WHERE)
    return _error(problem, status)


def _error(problem: Mapping[str, Any], status: int) -> OutfitterError:
    message = str(problem.get("detail") or f"it answered {status}")[:_LONGEST_MESSAGE]
    kind = _kinds().get(str(problem.get("code"))) or _BRANCHES.get(status, Invalid)
    if kind is Refused:
        return Refused(message, [_error(fault, status) for fault in problem.get("problems", ())])
    return kind(message, hint=str(problem.get("hint", ""))[:_LONGEST_MESSAGE])


@cache
def _kinds() -> Mapping[str, type[OutfitterError]]:
    """Every kind of error by its code; one that carries more than a text is read as the branch it is on."""
    found: dict[str, type[OutfitterError]] = {}
    for name in errors.__all__:
        kind: type[OutfitterError] = getattr(errors, name)
        plain = (one for one in kind.__mro__ if one is Refused or "__init__" not in vars(one) or one is OutfitterError)
        found[kind.code] = next(plain)
    return found
