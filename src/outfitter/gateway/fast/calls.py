"""One call in the fast lane, from the request to the answer, by callbacks and without a task.

Anything unusual on the way (an error, a stream, a slow server, a lost connection) hands the call over to the full
lane, which goes on waiting for the same answer: nothing is sent twice, and there is one place where trouble is judged.
To uvicorn's protocol a call stands where its own request-response cycle stands.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from contextlib import AbstractContextManager, suppress
from typing import Any, NamedTuple, Protocol, cast

import anyio
import msgspec

from outfitter.errors import StorageUnavailable
from outfitter.gateway.fast.envelopes import is_error, is_question, read_answer, write_answer
from outfitter.gateway.fast.lane import Lane, Passage
from outfitter.gateway.fast.upstreams import Adopted, Upstream
from outfitter.gateway.faults import UPSTREAM_UNAVAILABLE, Rejected, rpc_error
from outfitter.gateway.records import CallRecord, measure
from outfitter.gateway.visits import Visit
from outfitter.upstream import Begun, Message

MOST_COLLECTED = 16 * 1024 * 1024
_OK = 200
_HANDED_SECONDS = 0.05
_UNRECORDED = Rejected("the call was not recorded", rpc_code=UPSTREAM_UNAVAILABLE, data={"code": "not_recorded"})
_encode = msgspec.json.Encoder().encode


class Head(NamedTuple):
    """The head of the request, for the full lane."""

    url: bytes
    headers: list[tuple[bytes, bytes]]


class Host(Protocol):
    """The client's connection, as a call sees it."""

    def answer(self, call: FastCall, body: bytes) -> None:
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

    message_event = _NoEvent()

    def __init__(self, lane: Lane, host: Host, passage: Passage, body: bytes, head: Head) -> None:
        """Nothing is sent yet."""
        self.lane, self.host, self.passage = lane, host, passage
        self.request, self.head = body, head
        self.body = bytearray()
        self.more_body = False
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False
        self.is_over = False
        self.started = 0.0
        self.started_at = 0.0
        self.request_id = 0
        self.upstream: Upstream | None = None
        self.piped: asyncio.Future[Message | None] | None = None
        self._known: AbstractContextManager[None] | None = None

    # ── sending ──

    def start(self, now: float) -> None:
        """Send the request, at once if a connection is free."""
        self.started, self.started_at = now, time.time()
        if self.passage.visit is not None:
            stop = _Stop(self, self.passage.visit, msgspec.json.decode(self.passage.envelope.id))
            self._known = self.passage.visit.working_on(stop.ident, cast("anyio.CancelScope", stop))
            self._known.__enter__()
        ticket = self.passage.ticket
        self.request_id = self.passage.link.next_id()
        self.lane.taken += 1
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
            kind = upstream.header(b"content-type") or b""
            is_usual = upstream.status == _OK and kind.lower().startswith(b"application/json")
            if upstream.is_lost or not is_usual or upstream.size > MOST_COLLECTED:
                self.hand_over()
            return
        pieces = upstream.pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        is_usual = upstream.status == _OK and upstream.header(b"content-encoding") is None
        result = read_answer(body, self.request_id) if is_usual else None
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
        if not isinstance(result, dict) or not self._finish(dict(cast("Message", result))):
            self.hand_over()

    def _finish(self, result: dict[str, Any]) -> bool:
        """Answer the client; False when the result is not for this lane."""
        passage = self.passage
        if self.is_over or is_question(result):
            return self.is_over
        failed = is_error(result)
        body = write_answer(passage.envelope.id, passage.era, result)
        if body is None:
            return False
        self._leave(is_good=True)
        self.lane.count_out(passage)
        try:
            self._note("tool_error" if failed else "done", "tool_error" if failed else "", len(body))
        except StorageUnavailable:
            body = _encode({"jsonrpc": "2.0", "id": passage.envelope.id, "error": rpc_error(_UNRECORDED)})
        self.host.answer(self, body)
        return True

    # ── ending ──

    def hand_over(self) -> None:
        """Let the full lane go on from here."""
        if self.is_over:
            return
        self._leave(is_good=False)
        self.lane.handed += 1
        answer: Awaitable[Any] | None = None
        if self.upstream is not None:
            answer = Adopted(self.upstream)
        elif self.piped is not None:
            answer = self.piped
        if answer is None:
            self.lane.count_out(self.passage)
            self.host.hand_over(self, None)
        else:
            self.host.hand_over(self, Begun(self.passage.link, self.request_id, self.started, answer))

    def cancel(self) -> None:
        """Nobody waits any more: the server is told."""
        if self.is_over:
            return
        self._leave(is_good=False)
        self.lane.count_out(self.passage)
        with suppress(StorageUnavailable):  # nobody waits for the answer any more
            self._note("cancelled", "cancelled", 0)
        if self.upstream is not None:
            self.upstream.on_change = None
            self.upstream.is_whole = False
            self.upstream.end()
        if self.upstream is not None or self.piped is not None:
            self.lane.later(self.passage.link.tell_cancelled(self.request_id))
        if self.piped is not None:
            self.piped.cancel()

    def _leave(self, *, is_good: bool) -> None:
        self.is_over = True
        if self._known is not None:
            self._known.__exit__(None, None, None)
        self.lane.leave(self.passage, is_good=is_good)

    def _note(self, outcome: Any, code: str, size: int) -> None:  # noqa: ANN401 - one of the record's words
        passage, item = self.passage, self.passage.ticket.item
        call_id = self.lane.call_id()
        bytes_in, digest = measure(passage.arguments)
        self.lane.note(
            CallRecord(
                call_id=call_id, trace_id=call_id, agent=passage.principal.agent, token_id=passage.principal.token_id,
                started_at=self.started_at, duration=asyncio.get_running_loop().time() - self.started,
                outcome=outcome, lane="fast", shown=passage.envelope.params.name, server=item.alias, tool=item.name,
                run_id=passage.principal.run_id, decision="allow", code=code,
                bytes_in=bytes_in, bytes_out=size, digest=digest,
            )
        )  # fmt: skip
