"""How a runner asks the coordinator: the routes of runs and runners, over HTTP and nothing else.

An answer that is a problem becomes the branch of the error tree that its status tells. ``patiently`` goes on asking
while there is no answer. Redirects are not followed: the token goes to the host that was named. Owner: whoever enters
it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import aiohttp
import anyio
import msgspec

from outfitter.basics import Secret
from outfitter.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NeedsToken,
    NotFound,
    OutfitterError,
    TooManyEvents,
    Unavailable,
)
from outfitter.runner.credentials import SignIn
from outfitter.runner.orders import Beat, Ended, News, RunnerShown, RunShown, WorkOrder
from outfitter.upstream import EventParser

_log = logging.getLogger(__name__)
T = TypeVar("T")
_PREFIX = "/api/v1"
_FIRST_WAIT, _MOST_WAIT = 0.1, 5.0
_PAGE, _MOST_PAGES = 100, 20
_BAD, _UNAUTHORIZED, _BUSY, _SERVER_FAULT = 300, 401, 429, 500
_BRANCHES: Mapping[int, type[OutfitterError]] = {401: NeedsToken, 403: Forbidden, 404: NotFound, 409: Conflict}
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ANSWER_SECONDS, _SILENCE_SECONDS = 30.0, 60.0


class _RunPage(msgspec.Struct, frozen=True):
    items: tuple[RunShown, ...]
    next_cursor: str | None = None


class _RunnerPage(msgspec.Struct, frozen=True):
    items: tuple[RunnerShown, ...]


class _EventPage(msgspec.Struct, frozen=True):
    events: tuple[dict[str, Any], ...]
    next: int | None = None


class _Told(msgspec.Struct, frozen=True):
    kind: str
    subject: str
    data: dict[str, Any]


@dataclass(slots=True)
class Desk:
    """Asks one coordinator as one runner. ``tokens`` says who; None for a coordinator that asks nobody."""

    url: str
    tokens: SignIn | None = field(default=None, repr=False)
    is_plain_allowed: bool = False
    """Whether the token may travel to another host without TLS."""
    _http: aiohttp.ClientSession | None = None

    def __post_init__(self) -> None:
        """Refuse what is no address, and one where a token would travel in clear."""
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise Invalid("the coordinator has no such address", hint="such as https://outfitter.example.com")
        if "@" in parts.netloc:
            raise Invalid("the address holds a name or a password", hint="put the token into OUTFITTER_TOKEN")
        if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not self.is_plain_allowed:
            hint = "use https, or say --plain-http if the network between is yours"
            raise Forbidden(f"tokens would go to {parts.hostname!a} in clear", hint=hint)
        self.url = self.url.rstrip("/")

    async def __aenter__(self) -> Self:
        """Open the connections."""
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS))
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        if self._http is not None:
            await self._http.close()

    # ── runs ──

    async def runs(self, state: str) -> list[RunShown]:
        """The runs in this state, the oldest first."""
        found: list[RunShown] = []
        cursor: str | None = ""
        for _ in range(_MOST_PAGES):
            asked = f"/runs?state={state}&order=oldest&limit={_PAGE}&cursor={quote(cursor or '')}"
            page = await self._read(asked, _RunPage)
            found += page.items
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    async def run(self, run_id: str) -> RunShown:
        """One run as it is now."""
        return await self._read(f"/runs/{quote(run_id, safe='')}", RunShown)

    async def begin(
        self, run_id: str, runner: str, values: Mapping[str, str], instead_of: str | None = None
    ) -> WorkOrder:
        """The order to execute a run; Conflict when it has ended, is about to, or is somebody else's."""
        body: dict[str, Any] = {"runner": runner, "values": values}
        if instead_of is not None:
            body["instead_of"] = instead_of
        return _decoded(await self._ask("POST", _path(run_id, "begin"), body), WorkOrder)

    async def send(self, run_id: str, attempt: int, first: int, events: Sequence[msgspec.Raw]) -> None:
        """Hand over events, the first with this number; Conflict when somebody else has taken over."""
        await self._ask("POST", _path(run_id, "events"), {"attempt": attempt, "first": first, "events": events})

    async def last_event(self, run_id: str) -> int:
        """The number of the last event that is stored; 0 without any."""
        last = 0
        while True:
            page = await self._read(f"{_path(run_id, 'events')}?after={last}&limit=500", _EventPage)
            last = int(page.events[-1]["seq"]) if page.events else last
            if page.next is None or not page.events:
                return last

    async def finish(self, run_id: str, ended: Ended) -> None:
        """Say how it ended; Conflict when somebody else has said something else."""
        body = {"attempt": ended.attempt, "state": ended.state, "result": ended.result, "error": ended.error}
        await self._ask("POST", _path(run_id, "finish"), body)

    # ── runners ──

    async def beat(self, runner: str, capacity: int, running: Sequence[str], executors: Sequence[str]) -> Beat:
        """Say that this runner lives, and hear which of its runs are to be stopped."""
        body = {"capacity": capacity, "running": running, "executors": executors}
        return _decoded(await self._ask("PUT", f"/runners/{quote(runner, safe='')}", body), Beat)

    async def runners(self) -> tuple[RunnerShown, ...]:
        """Every runner that the coordinator knows."""
        return (await self._read("/runners", _RunnerPage)).items

    async def news(self) -> AsyncGenerator[News]:
        """What happens to runs, as it happens, until the coordinator ends it; the first item says that it has begun."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_ANSWER_SECONDS, sock_read=_SILENCE_SECONDS)
        parser = EventParser()
        try:
            async with self._opened.get(
                f"{self.url}{_PREFIX}/events", headers=await self._headers(), timeout=limits, allow_redirects=False
            ) as answer:
                if answer.status != 200:  # noqa: PLR2004 - the one good status
                    raise _error_of(answer.status, await answer.read())
                yield News("begun")
                async for piece in answer.content.iter_any():
                    for event in parser.feed(piece):
                        if (told := _news_of(event.data)) is not None:
                            yield told
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._away(error) from None

    # ── asking ──

    @property
    def _opened(self) -> aiohttp.ClientSession:
        if self._http is None:
            raise Unavailable("the desk is not open")
        return self._http

    async def _headers(self) -> dict[str, str]:
        """Who asks: the token is revealed for the moment of sending."""
        if self.tokens is None:
            return {}
        return {"authorization": f"Bearer {(await self.tokens.token()).reveal()}"}

    async def _has_renewed(self, headers: Mapping[str, str]) -> bool:
        """Whether there is another token now than the one that was refused."""
        refused = Secret(headers.get("authorization", "").removeprefix("Bearer "))
        return self.tokens is not None and await self.tokens.renew(refused)

    async def _read(self, path: str, kind: type[T]) -> T:
        return _decoded(await self._ask("GET", path), kind)

    async def _ask(self, method: str, path: str, body: object = None) -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        headers = await self._headers()
        status, content = await self._send(method, path, data, headers)
        if status == _UNAUTHORIZED and await self._has_renewed(headers):
            status, content = await self._send(method, path, data, await self._headers())
        if status >= _BAD:
            raise _error_of(status, content)
        return content

    async def _send(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        if data is not None:
            headers["content-type"] = "application/json"
        try:
            async with self._opened.request(
                method, f"{self.url}{_PREFIX}{path}", data=data, headers=headers, allow_redirects=False
            ) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise self._away(error) from None

    def _away(self, error: Exception) -> Unavailable:
        why = (error.strerror if isinstance(error, OSError) else "") or type(error).__name__
        hint = "is the service running, and is --server right?"
        return Unavailable(f"the coordinator cannot be reached: {why}", where=self.url, hint=hint)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, however long the coordinator is away; any other error is raised. Cancel it to give up."""
    wait, is_told = _FIRST_WAIT, False
    while True:
        try:
            with anyio.CancelScope(shield=True):  # what was asked is heard: a run must not be begun unheard
                return await ask()
        except (Unavailable, NeedsToken) as error:  # a token may be renewed while the run goes on
            if not is_told:
                _log.warning("waiting for the coordinator: %s", error)
            is_told = True
        await anyio.sleep(wait)
        wait = min(wait * 2, _MOST_WAIT)


def _path(run_id: str, what: str) -> str:
    return f"/runs/{quote(run_id, safe='')}/{what}"


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "does --server name the registry's service, in this version?"
        raise Unavailable(f"the coordinator's answer cannot be read: {error}", hint=hint) from None


def _error_of(status: int, content: bytes) -> OutfitterError:
    told: dict[str, Any] = {}
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        told = msgspec.json.decode(content, type=dict[str, Any])
    kind = Unavailable if status >= _SERVER_FAULT or status == _BUSY else _BRANCHES.get(status, Invalid)
    if told.get("code") == TooManyEvents.code:
        kind = TooManyEvents
    message = str(told.get("detail") or f"the coordinator answered with status {status}")
    return kind(message, where=str(told.get("where", "")), hint=str(told.get("hint", "")))


def _news_of(data: bytes) -> News | None:
    """What an event says about a run, if it is about one."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        event = msgspec.json.decode(data, type=_Told)
        if event.kind.startswith("run.") and event.subject.startswith("runs/"):
            agent = str(event.data.get("agent", ""))
            session = str(event.data.get("session_id", ""))
            return News(event.kind.removeprefix("run."), event.subject.removeprefix("runs/"), agent, session)
    return None
