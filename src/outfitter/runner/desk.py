"""How a runner asks the coordinator: the routes of runs and runners, over HTTP and nothing else.

``patiently`` goes on asking while there is no answer; how one question is asked is ``rest``. Owner: whoever enters it.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlsplit

import anyio
import msgspec

from outfitter.errors import Forbidden, Invalid, NeedsToken, Unavailable
from outfitter.runner.credentials import SignIn
from outfitter.runner.orders import Beat, Ended, News, RunnerShown, RunShown, WorkOrder
from outfitter.runner.rest import RestClient
from outfitter.upstream import EventParser

_log = logging.getLogger(__name__)
T = TypeVar("T")
_FIRST_WAIT, _MOST_WAIT = 0.1, 5.0
_BEAT_SECONDS = 10.0
"""How long an answer to a heartbeat is waited for: after an outage the next one must not come late."""
_PAGE, _MOST_PAGES = 100, 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class _RunPage(msgspec.Struct, frozen=True):
    items: tuple[RunShown, ...]
    next_cursor: str | None = None


class _RunnerPage(msgspec.Struct, frozen=True):
    items: tuple[RunnerShown, ...]


class _Numbered(msgspec.Struct, frozen=True):
    seq: int


class _EventPage(msgspec.Struct, frozen=True):
    events: tuple[_Numbered, ...]


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
    _rest: RestClient = field(init=False, repr=False)

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
        self._rest = RestClient(self.url, self.tokens)

    async def __aenter__(self) -> Self:
        """Open the connections."""
        await self._rest.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._rest.__aexit__()

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
        return _decoded(await self._rest.ask("POST", _path(run_id, "begin"), body), WorkOrder)

    async def send(self, run_id: str, attempt: int, first: int, events: Sequence[msgspec.Raw]) -> None:
        """Hand over events, the first with this number; Conflict when somebody else has taken over."""
        await self._rest.ask("POST", _path(run_id, "events"), {"attempt": attempt, "first": first, "events": events})

    async def last_event(self, run_id: str) -> int:
        """The number of the last event that is stored; 0 without any."""
        page = await self._read(f"{_path(run_id, 'events')}?order=newest&limit=1", _EventPage)
        return page.events[0].seq if page.events else 0

    async def finish(self, run_id: str, ended: Ended) -> None:
        """Say how it ended; Conflict when somebody else has said something else."""
        body = {"attempt": ended.attempt, "state": ended.state, "result": ended.result, "error": ended.error}
        await self._rest.ask("POST", _path(run_id, "finish"), body)

    # ── runners ──

    async def beat(self, runner: str, capacity: int, running: Sequence[str], executors: Sequence[str]) -> Beat:
        """Say that this runner lives, and hear which of its runs are to be stopped."""
        body = {"capacity": capacity, "running": running, "executors": executors}
        with anyio.move_on_after(_BEAT_SECONDS):
            return _decoded(await self._rest.ask("PUT", f"/runners/{quote(runner, safe='')}", body), Beat)
        raise Unavailable("the coordinator does not answer a heartbeat", where=self.url)

    async def runners(self) -> tuple[RunnerShown, ...]:
        """Every runner that the coordinator knows."""
        return (await self._read("/runners", _RunnerPage)).items

    async def news(self) -> AsyncGenerator[News]:
        """What happens to runs, as it happens, until the coordinator ends it; the first item says that it has begun."""
        parser = EventParser()
        async with self._rest.stream("/events") as stream:
            yield News("begun")
            async for piece in stream.iter_any():
                for event in parser.feed(piece):
                    if (told := _news_of(event.data)) is not None:
                        yield told

    async def _read(self, path: str, kind: type[T]) -> T:
        return _decoded(await self._rest.ask("GET", path), kind)


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


def _news_of(data: bytes) -> News | None:
    """What an event says about a run, if it is about one."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        event = msgspec.json.decode(data, type=_Told)
        if event.kind.startswith("run.") and event.subject.startswith("runs/"):
            agent = str(event.data.get("agent", ""))
            session = str(event.data.get("session_id", ""))
            return News(event.kind.removeprefix("run."), event.subject.removeprefix("runs/"), agent, session)
    return None
