"""Where uvicorn meets the fast lane: its HTTP protocol, with calls taken off before an ASGI task is made.

uvicorn promises nothing about this class: ``fits`` says whether everything that is used here is as expected, and
``serving`` falls back to the plain protocol when it is not. Requests that come while one is being answered queue up as
uvicorn queues them.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import time
from functools import partial
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from outfitter.gateway.fast.calls import FastCall
from outfitter.gateway.fast.guarded import GuardedProtocol, Welcome
from outfitter.gateway.fast.lane import Lane, Way
from outfitter.gateway.fast.upstreams import Adopted
from outfitter.gateway.gate import MAX_BODY
from outfitter.upstream import BEGUN, Begun

_PATH = b"/mcp/"
_LOOK_SECONDS = 0.1
_USED_METHODS = (
    "on_message_begin", "on_header", "on_headers_complete", "on_body", "on_message_complete", "on_response_complete",
    "connection_made", "connection_lost", "shutdown", "timeout_keep_alive_handler",
)  # fmt: skip
_USED_FIELDS = (
    "self.cycle", "self.pipeline", "self.scope", "self.headers", "self.url", "self.parser", "self.transport",
    "self.flow", "self.loop", "self.tasks", "self.app", "self.logger", "self.access_logger", "self.access_log",
    "self.server_state", "self.root_path", "self.timeout_keep_alive", "self.timeout_keep_alive_task",
)  # fmt: skip
_CYCLE = {
    "scope", "transport", "flow", "logger", "access_logger", "access_log", "default_headers", "message_event",
    "expect_100_continue", "keep_alive", "on_response",
}  # fmt: skip
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n%b\r\n%b"
_CLOSE = b"connection: close\r\n"


def fits() -> bool:
    """Whether uvicorn's protocol is the one that this was written for."""
    if not all(callable(getattr(HttpToolsProtocol, name, None)) for name in _USED_METHODS):
        return False
    source = inspect.getsource(HttpToolsProtocol)
    parameters = set(inspect.signature(RequestResponseCycle.__init__).parameters) - {"self"}
    return all(name in source for name in _USED_FIELDS) and parameters == _CYCLE


class Watch:
    """Hands calls over that take long; one timer for all of them."""

    def __init__(self, patience: float) -> None:
        """Nothing to look at yet."""
        self._patience = patience
        self._calls: dict[FastCall, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, call: FastCall) -> None:
        """Look after a call until it is over."""
        self._calls[call] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look)

    def remove(self, call: FastCall) -> None:
        """It is over."""
        self._calls.pop(call, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(_LOOK_SECONDS, self._look) if self._calls else None
        limit = time.monotonic() - self._patience
        for call in tuple(self._calls):
            if call.started > limit:
                return
            call.hand_over()


def _drop_unused(begun: Begun, _task: object) -> None:
    """The full lane ended before it asked for the answer."""
    if not begun.is_taken:
        cast("Adopted", begun.answer).cancel()


class FastProtocol(GuardedProtocol):
    """One client's connection."""

    def __init__(self, lane: Lane, watch: Watch, welcome: Welcome, **given: Any) -> None:  # noqa: ANN401 - uvicorn's own arguments
        """Keep the lane; the rest is uvicorn's."""
        super().__init__(welcome, **given)
        self.url = b""
        self.headers = []
        self._lane = lane
        self._watch = watch
        self._held: list[bytes] | None = None
        self._size = 0
        self._call: FastCall | None = None
        self._idle_since = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._is_between = True
        """Whether the parser stands between two requests."""
        self._whole = b""
        """What came at once, when it began with a request."""
        self._is_looked_at = False
        """Whether the request in ``_whole`` was found not to be for the fast lane."""

    @property
    def _parser(self) -> httptools.HttpRequestParser:
        return cast("httptools.HttpRequestParser", self.parser)

    # ── what the loop calls ──

    def data_received(self, data: bytes) -> None:
        """Take a call at once whose head was read before; let the parser read anything else."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if self._is_between and (cycle is None or cycle.response_complete) and not self.pipeline:
            known = self._lane.ways.find(data)
            if known is not None and self._take(known[0], known[1]):
                self._unset_keepalive_if_required()
                self.is_reading = False
                self._stop_clock()
                return
            self._whole, self._is_looked_at = data, known is not None
        else:
            self._whole, self._is_looked_at = b"", False
        super().data_received(data)

    # ── what the parser calls ──

    def on_message_begin(self) -> None:
        """Begin a request; what only an application needs is made when one is needed."""
        self.is_reading = True
        self._is_between = False
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self.headers.append((name.lower(), value))

    def _begin_full(self) -> None:
        """Let uvicorn begin the request that was read so far."""
        url, headers = self.url, self.headers
        HttpToolsProtocol.on_message_begin(self)
        self.url = url
        for name, value in headers:
            super().on_header(name, value)
        super().on_headers_complete()

    def on_headers_complete(self) -> None:
        """Hold a request back that may take the fast lane until its body is there."""
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_idle = cycle is None or cycle.response_complete
        is_call = self.url.startswith(_PATH) and not self.root_path and self._parser.get_method() == b"POST"
        if is_idle and is_call and not self.pipeline and not self._expects():
            self._held, self._size = [], 0
        else:
            self._begin_full()

    def _expects(self) -> bool:
        """Whether the client waits for a word before it sends its body."""
        for pair in self.headers:  # noqa: SIM110 - half the time of any()
            if pair[0] == b"expect":
                return True
        return False

    def on_body(self, body: bytes) -> None:
        """Collect; a body that is too long is the full lane's to refuse."""
        if self._held is None:
            super().on_body(body)
            return
        self._held.append(body)
        self._size += len(body)
        if self._size > MAX_BODY:
            self._go_full()

    def on_message_complete(self) -> None:
        """Take the call, or let uvicorn go on as if it had not been held."""
        self.is_reading = False
        self._is_between = True
        held = self._held
        if held is None:
            super().on_message_complete()
            return
        body = held[0] if len(held) == 1 else b"".join(held)
        way = None if self._is_looked_at else self._way()
        if way is not None and self._take(way, body):
            self._held = None
            if self._whole:
                self._lane.ways.keep(self._whole, len(body), way)
            return
        self._go_full()
        super().on_message_complete()

    def _way(self) -> Way | None:
        parser = self._parser
        keep_alive = parser.get_http_version() != "1.0" and parser.should_keep_alive()
        return self._lane.way(self.url, self.headers, keep_alive=keep_alive)

    def _take(self, way: Way, body: bytes) -> bool:
        """Begin a call of the fast lane; False when it is not one."""
        now = time.monotonic()
        passage = self._lane.consider(way, body, now)
        if passage is None:
            return False
        call = self._call = FastCall(self._lane, self, passage, body, way)
        self.cycle = cast("Any", call)
        self._watch.add(call)
        call.start(now)
        return True

    def _go_full(self) -> None:
        held, self._held = self._held or [], None
        self._begin_full()
        for piece in held:
            super().on_body(piece)

    # ── what the call says ──

    def answer(self, call: FastCall, body: bytes, now: float) -> None:
        """Send the answer and go on with the connection."""
        self._forget(call)
        call.response_complete = True
        transport = self.transport
        if transport.is_closing():
            return
        transport.write(_HEAD % (len(body), b"" if call.keep_alive else _CLOSE, body))
        if not call.keep_alive:
            transport.close()
        if self.pipeline or transport.is_closing():
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._idle_since = now
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_if_idle)

    def _look_if_idle(self) -> None:
        """Close a connection on which nothing has come for a while; one timer for many requests."""
        self._idle_timer = None
        cycle = cast("RequestResponseCycle | None", self.cycle)
        is_busy = self._held is not None or (cycle is not None and not cycle.response_complete)
        if self.transport.is_closing() or is_busy or self.timeout_keep_alive_task is not None:
            return
        left = self._idle_since + self.timeout_keep_alive - time.monotonic()
        if left <= 0:
            self.timeout_keep_alive_handler()
        else:
            self._idle_timer = self.loop.call_later(left, self._look_if_idle)

    def hand_over(self, call: FastCall, begun: Begun | None) -> None:
        """Go on in the full lane, as a request whose body has come."""
        self._forget(call)
        cycle = RequestResponseCycle(
            scope=self._scope(call.way, len(call.request)),
            transport=self.transport, flow=self.flow, logger=self.logger,
            access_logger=self.access_logger, access_log=self.access_log,
            default_headers=self.server_state.default_headers, message_event=asyncio.Event(),
            expect_100_continue=False, keep_alive=call.keep_alive, on_response=self.on_response_complete,
        )  # fmt: skip
        cycle.body = bytearray(call.request)
        cycle.more_body = False
        cycle.message_event.set()
        if self.cycle is cast("Any", call):
            self.cycle = cycle
        context = contextvars.copy_context()
        context.run(BEGUN.set, begun)
        task = self.loop.create_task(cycle.run_asgi(cast("Any", self).app), context=context)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        if begun is not None:
            task.add_done_callback(partial(_drop_unused, begun))
            task.add_done_callback(lambda _: call.count_out())

    def _scope(self, way: Way, size: int) -> Any:  # noqa: ANN401 - ASGI's own shape
        """What uvicorn would have given to the application."""
        kept = self.url, self.headers, self.scope, self.expect_100_continue
        HttpToolsProtocol.on_message_begin(self)
        scope = cast("Any", self.scope)
        scope["headers"].extend(way.headers(size))
        self.url, self.headers, self.scope, self.expect_100_continue = kept
        url = way.door.url
        return {**scope, "method": "POST", "path": url.decode("ascii"), "raw_path": url, "query_string": b""}

    def _forget(self, call: FastCall) -> None:
        self._watch.remove(call)
        if self._call is call:
            self._call = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what the client waited for."""
        super().connection_lost(exc)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        call = self._call
        if call is not None:
            self._forget(call)
            call.cancel()
