"""One call in the fast lane, from the request to the answer, by callbacks and without a task.

Anything unusual on the way (an error, a stream, a slow server, a lost connection) hands the call over to the full
lane, which goes on waiting for the same answer: nothing is sent twice, and there is one place where trouble is judged.
To uvicorn's protocol a call stands where its own request-response cycle stands.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

import anyio
import msgspec

from outfitter.errors import StorageUnavailable
from outfitter.gateway.fast.endings import Ending
from outfitter.gateway.fast.envelopes import Result, read_answer, read_result, size_of_result, write_answer
from outfitter.gateway.fast.lane import Lane, Passage, Way
from outfitter.gateway.fast.upstreams import Adopted, Upstream
from outfitter.gateway.records import PlainLine, canonical, measure
from outfitter.gateway.records import Result as Outcome
from outfitter.gateway.visits import Visit
from outfitter.upstream import Begun, Message

MOST_COLLECTED = 16 * 1024 * 1024
_HANDED_SECONDS = 0.05
_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class Host(Protocol):
    """The client's connection, as a call sees it."""

    def answer(self, call: FastCall, body: bytes, now: float) -> None:
        """Send the answer."""
        ...

    def hand_over(self, call: FastCall, begun: Begun | None) -> None:
        """Let the full lane go on, with what was begun."""
        ...


class _NoEvent:
    """Stands where the protocol wakes an application."""

    def set(self) -> None:
        """Nobody waits."""


class _Stop:
    """What a client of the handshake era cancels by the id of its request: the full lane sees to it."""

    def __init__(self, call: FastCall, visit: Visit, ident: object) -> None:
        self.call, self.visit, self.ident = call, visit, ident

    def cancel(self) -> None:
        """Hand the call over, and say it again once the full lane has it."""
        self.call.hand_over()
        note = {"method": "notifications/cancelled", "params": {"requestId": self.ident}}
        asyncio.get_running_loop().call_later(_HANDED_SECONDS, self.visit.hear, note)


class FastCall:
    """One call. The names that uvicorn uses of its own cycles are here too."""

    __slots__ = (
        "_host",
        "_known",
        "_text",
        "body",
        "disconnected",
        "has_departed",
        "is_over",
        "keep_alive",
        "lane",
        "meter",
        "more_body",
        "passage",
        "piped",
        "request",
        "request_id",
        "response_complete",
        "started",
        "upstream",
        "way",
    )  # fmt: skip
    message_event = _NoEvent()

    def __init__(self, lane: Lane, host: Host, passage: Passage, body: bytes, way: Way) -> None:
        """Nothing is sent yet."""
        self.lane, self.passage, self.way = lane, passage, way
        self.meter = passage.ticket.meter
        self.request = body
        self.keep_alive = way.keep_alive
        self.more_body = self.disconnected = self.response_complete = self.is_over = self.has_departed = False
        self.started = 0.0
        self.upstream: Upstream | None = None
        self.piped: asyncio.Future[Message | None] | None = None
        self._host = host
        self._known: AbstractContextManager[None] | None = None
        self._text = b""

    # ── sending ──

    def start(self, now: float) -> None:
        """Begin. ``now`` is monotonic."""
        self.started = now
        passage, lane = self.passage, self.lane
        if passage.visit is not None:
            stop = _Stop(self, passage.visit, msgspec.json.decode(passage.envelope.id))
            self._known = passage.visit.working_on(stop.ident, cast("anyio.CancelScope", stop))
            self._known.__enter__()
        self.request_id = passage.ticket.link.next_id()
        lane.taken += 1
        lane.under_way += 1
        lane.departures.add(self, is_alone=lane.under_way == 1)

    def canonical(self) -> bytes:
        """The arguments as JSON with sorted keys."""
        if not self._text:
            self._text = canonical(self.passage.arguments)
        return self._text

    def depart(self, now: float) -> None:
        """Send the request, at once if a connection is free; it has been counted."""
        self.has_departed = True
        ticket = self.passage.ticket
        if ticket.pipe is not None:
            data = ticket.write(self.request_id, bytes(self.passage.envelope.params.arguments))
            self.piped = ticket.pipe.begin(self.request_id, data)
            if self.piped is None:
                self.hand_over()
            else:
                self.piped.add_done_callback(self._piped)
            return
        upstream = None if ticket.home is None else ticket.home.take(now)
        if upstream is not None:
            self._send(upstream)
        else:
            self.lane.later(self._dial())

    async def _dial(self) -> None:
        home = self.passage.ticket.home
        upstream = None if home is None or home.is_full else await home.dial()
        if upstream is None:
            self.hand_over()
        elif self.is_over:
            upstream.is_whole = upstream.may_stay = True
            upstream.end()
        else:
            self._send(upstream)

    def _send(self, upstream: Upstream) -> None:
        self.upstream = upstream
        arguments = bytes(self.passage.envelope.params.arguments)
        upstream.send(self.passage.ticket.write(self.request_id, arguments), self._changed)

    # ── hearing ──

    def _changed(self, upstream: Upstream) -> None:
        if not upstream.is_whole:
            if upstream.is_lost or not upstream.is_plain or upstream.size > MOST_COLLECTED:
                self.hand_over()
            return
        result = read_answer(upstream.body(), self.request_id) if upstream.is_plain else None
        if result is None or not self._finish(result):
            self.hand_over()
            return
        self.upstream = None
        upstream.end()

    def _piped(self, answer: asyncio.Future[Message | None]) -> None:
        if self.is_over or answer.cancelled():
            return
        message = answer.result()
        result: object = None if message is None or "error" in message else message.get("result")
        if not isinstance(result, dict) or not self._finish(read_result(_encode(result))):
            self.hand_over()

    def _finish(self, result: Result) -> bool:
        """Answer the client; False when the result is not for this lane."""
        if self.is_over or result.is_question:
            return self.is_over
        ident = self.passage.envelope.id
        body = write_answer(ident, self.way.door.era, result)
        if body is None:
            return False
        now = time.monotonic()
        self._leave(now, is_good=True)
        lane = self.lane
        line = self._line(now, "tool_error" if result.has_failed else "done", size_of_result(ident, body))
        meter = self.meter
        if meter is not None and meter.is_charged:
            lane.endings.owe(meter, len(self.canonical()) + len(result.raw))
        lane.endings.add(Ending(self, ident, body, line, now), is_last=not lane.under_way)
        return True

    def answer(self, body: bytes, now: float) -> None:
        """Send the answer, now that it is written down."""
        self._host.answer(self, body, now)

    # ── ending ──

    def hand_over(self) -> None:
        """Let the full lane go on from here."""
        if self.is_over:
            return
        self._leave(time.monotonic(), is_good=False)
        self.lane.handed += 1
        answer: Awaitable[Any] | None = None
        if self.upstream is not None:
            answer = Adopted(self.upstream)
        elif self.piped is not None:
            answer = self.piped
        if answer is None:
            self._take_back()
            self._host.hand_over(self, None)
        else:
            # It is still under way, and the full lane does not count again what was begun.
            self.passage.ticket.use.under_way += 1
            link = self.passage.ticket.link
            self._host.hand_over(
                self, Begun(link, self.request_id, asyncio.get_running_loop().time() - self.age, answer)
            )

    @property
    def age(self) -> float:
        """Seconds since it was sent."""
        return time.monotonic() - self.started

    def count_out(self) -> None:
        """A call that was handed over has ended."""
        self.passage.ticket.use.under_way -= 1

    def cancel(self) -> None:
        """Nobody waits any more: the server is told."""
        if self.is_over:
            return
        now = time.monotonic()
        self._leave(now, is_good=False)
        self._give_up()
        self.lane.desk.recorder.record_plain([self._line(now, "cancelled", 0)])
        if self.upstream is not None:
            self.upstream.on_change = None
            self.upstream.is_whole = False
            self.upstream.end()
        if self.upstream is not None or self.piped is not None:
            self.lane.later(self.passage.ticket.link.tell_cancelled(self.request_id))
        if self.piped is not None:
            self.piped.cancel()

    def _leave(self, now: float, *, is_good: bool) -> None:
        """Give the link back and count the call out."""
        self.is_over = True
        self.lane.under_way -= 1
        if self._known is not None:
            self._known.__exit__(None, None, None)
        ticket = self.passage.ticket
        ticket.use.under_way -= 1
        ticket.connection.give_back(now, is_good=is_good)

    def _give_up(self) -> None:
        """Count what was sent of a call whose answer nobody waits for."""
        meter = self.meter
        if meter is None or not self.has_departed:
            return
        try:
            meter.charge(len(self.canonical()))
        except StorageUnavailable as error:
            _log.error("a call was not counted whole: %s", error)

    def _take_back(self) -> None:
        """Nothing was sent: the full lane counts it, if it gets there."""
        meter = self.meter
        if meter is None or not self.has_departed:
            return
        try:
            meter.take_back()
        except StorageUnavailable as error:
            _log.error("a call was counted twice: %s", error)

    def _line(self, now: float, outcome: Outcome, size: int) -> PlainLine:
        passage, duration = self.passage, now - self.started
        bytes_in, digest = measure(self.canonical())
        lines = passage.ticket.lines_of(passage.principal)
        return lines.write(self.lane.call_id(), (time.time() - duration, duration), outcome, (bytes_in, size), digest)
