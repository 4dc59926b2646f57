"""Who carries the steps of exchanges out? One conversation per client, all of one server in a host.

The wire is a ``Stream``: it takes utterances. A conversation is made and closed by the server that accepted the
client; it owns one task per request that is being answered. What to answer is ``behaviour``, what faults do to it
``mischief``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import NoReturn, Protocol, TypeAlias

from outfitter.testing.behaviour import answer, is_modern
from outfitter.testing.exchange import (
    SUBSCRIPTION_KEY,
    Announce,
    Ask,
    Desk,
    Fetch,
    Ledger,
    Listen,
    Message,
    Pause,
    Peer,
    Request,
    Say,
    Step,
    Steps,
    Until,
    notification,
    part,
)
from outfitter.testing.faults import Crash, Hang, LateReply, ListStorm, RequestFault, SlowStart
from outfitter.testing.mischief import Utterance, is_reply, twist
from outfitter.testing.script import Script

_WANTED = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
Behaviour: TypeAlias = Callable[[Desk, Request], Steps]


class Stream(Protocol):
    """Where utterances go."""

    async def say(self, utterance: Utterance) -> None:
        """Send one."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """Someone who hears announcements: all of them (handshake era), or what a subscription wants."""

    stream: Stream
    peer: Peer
    wanted: Message | None = None
    subscription: str | int | None = None

    async def tell(self, method: str, params: Message) -> None:
        """Pass an announcement on if it is wanted here."""
        if not self._wants(method, params):
            return
        marked = params if self.wanted is None else {**params, "_meta": {SUBSCRIPTION_KEY: self.subscription}}
        with suppress(ConnectionError):
            await self.stream.say(notification(method, **marked))

    def _wants(self, method: str, params: Message) -> bool:
        if method in _WANTED:
            return self.wanted is None or bool(self.wanted.get(_WANTED[method]))
        uris = self.peer.watched if self.wanted is None else self.wanted.get("resourceSubscriptions") or ()
        return params.get("uri") in uris


@dataclass(slots=True)
class Host:
    """One running server: its script, its counts, who listens. Lives in one event loop."""

    script: Script
    crash: Callable[[Crash], NoReturn]
    behaviour: Behaviour = answer
    """What it answers; a script's own behaviour unless told otherwise."""
    ledger: Ledger = field(default_factory=Ledger)
    listeners: set[Listener] = field(default_factory=set[Listener])
    started: float = field(default_factory=lambda: asyncio.get_running_loop().time())
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def warm_up(self) -> None:
        """Wait as long as the script wants the server to be starting."""
        seconds = sum(fault.seconds for fault in self.script.faults if isinstance(fault, SlowStart))
        rest = self.started + seconds - asyncio.get_running_loop().time()
        if rest > 0:
            await asyncio.sleep(rest)

    async def announce(self, method: str, params: Message) -> None:
        """Tell everyone who listens."""
        for listener in tuple(self.listeners):
            await listener.tell(method, params)

    async def welcome(self, listener: Listener) -> None:
        """Take a listener in, with a storm if the script has one."""
        self.listeners.add(listener)
        self._note_listeners()
        storms = (fault.count for fault in self.script.faults if isinstance(fault, ListStorm))
        for _ in range(sum(storms)):
            await listener.tell("notifications/tools/list_changed", {})

    def dismiss(self, listener: Listener | None) -> None:
        """Forget a listener that is gone."""
        self.listeners -= {listener}
        self._note_listeners()

    def note_cancelled(self) -> None:
        """Count a cancelled request and wake those who wait for it."""
        self.ledger.cancelled += 1
        self._wake()

    async def wait_until(self, wanted: Until) -> None:
        """Wait until the counts are what is wanted."""
        while self.ledger.cancelled < wanted.cancelled or self.ledger.listeners < wanted.listeners:
            await self._changed.wait()

    def _note_listeners(self) -> None:
        self.ledger.listeners = len(self.listeners)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


@dataclass(slots=True)
class Conversation:
    """One client: what is being answered to it, and what it is being asked."""

    host: Host
    peer: Peer = field(default_factory=Peer)
    _running: dict[str | int, asyncio.Task[None]] = field(default_factory=dict[str | int, "asyncio.Task[None]"])
    _stubborn: set[str | int] = field(default_factory=set[str | int])
    _standing: set[str | int] = field(default_factory=set[str | int])
    _asked: dict[str, asyncio.Future[Message]] = field(default_factory=dict[str, "asyncio.Future[Message]"])
    _numbers: count[int] = field(default_factory=lambda: count(1))
    _listener: Listener | None = None

    async def hear(
        self, message: Message, stream: Stream, fault: RequestFault | None, surroundings: Message | None = None
    ) -> None:
        """Take any message from a client with which all messages share one stream."""
        if "method" not in message:
            self.hear_response(message)
        elif "id" in message:
            self.start(self.read(message, surroundings), stream, fault)
        elif self.hear_notice(message):
            self._listener = Listener(stream, self.peer)
            await self.host.welcome(self._listener)

    def read(self, message: Message, surroundings: Message | None = None) -> Request:
        """A message as a request of the era it belongs to."""
        modern = "modern" in self.host.script.eras and is_modern(message)
        around = self.peer.surroundings if surroundings is None else surroundings
        return Request(message["id"], str(message["method"]), part(message, "params"), modern, around)

    def hear_response(self, message: Message) -> None:
        """Take the client's answer to a question."""
        future = self._asked.pop(str(message.get("id")), None)
        if future is not None and not future.done():
            future.set_result(message)

    def hear_notice(self, message: Message) -> bool:
        """Take a notification; true when it says that the handshake is done."""
        self.host.ledger.requests[message["method"]] += 1
        if message["method"] == "notifications/cancelled":
            self.cancel(part(message, "params").get("requestId"))
        return message["method"] == "notifications/initialized"

    def start(self, request: Request, stream: Stream, fault: RequestFault | None) -> asyncio.Task[None]:
        """Begin to answer a request."""
        self.host.ledger.requests[request.method] += 1
        task = asyncio.create_task(self._exchange(request, stream, fault))
        self._running[request.id] = task
        if isinstance(fault, LateReply):
            self._stubborn.add(request.id)
        task.add_done_callback(lambda _: self._forget(request.id))
        return task

    def _forget(self, id_: str | int) -> None:
        self._running.pop(id_, None)
        self._stubborn.discard(id_)
        self._standing.discard(id_)

    def cancel(self, id_: str | int | None, *, counted: bool = True) -> None:
        """Give up answering a request, because the client said so."""
        task = self._running.get(id_) if id_ is not None else None
        if task is None or task.done():
            return
        if counted:
            self.host.note_cancelled()
        if id_ not in self._stubborn:
            task.cancel()

    async def drain(self, seconds: float) -> None:
        """Let what is being answered end, for a while; a subscription goes on for as long as there is somebody."""
        ending = [task for id_, task in self._running.items() if id_ not in self._standing]
        if ending:
            await asyncio.wait(ending, timeout=seconds)

    async def close(self) -> None:
        """Give everything up, because the client is gone."""
        self.host.dismiss(self._listener)
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _exchange(self, request: Request, stream: Stream, fault: RequestFault | None) -> None:
        await self.host.warm_up()
        if isinstance(fault, Crash):
            self.host.crash(fault)
        if isinstance(fault, Hang):
            await asyncio.Event().wait()
        steps = self.host.behaviour(Desk(self.host.script, self.host.ledger, self.peer), request)
        try:
            step = next(steps)
            while True:
                step = steps.send(await self._carry_out(step, request, stream, fault))
        except StopIteration:
            return

    async def _carry_out(self, step: Step, request: Request, stream: Stream, fault: RequestFault | None) -> Message:
        match step:
            case Say(message):
                await self._say(message, stream, fault)
            case Pause(seconds):
                await (asyncio.Event().wait() if seconds is None else asyncio.sleep(seconds))
            case Ask():
                return await self._ask(step, stream)
            case Announce(method, params):
                await self.host.announce(method, params)
            case Listen(wanted):
                self._standing.add(request.id)
                await self._listen(Listener(stream, self.peer, wanted, request.id))
            case Until():
                await self.host.wait_until(step)
            case Fetch(job):
                return await job()
        return {}

    async def _say(self, message: Message, stream: Stream, fault: RequestFault | None) -> None:
        if not is_reply(message):
            await stream.say(message)
            return
        if isinstance(fault, LateReply):
            await asyncio.sleep(fault.seconds)
        for utterance in twist(fault, message):
            await stream.say(utterance)

    async def _ask(self, step: Ask, stream: Stream) -> Message:
        id_ = f"ask-{next(self._numbers)}"
        self._asked[id_] = asyncio.get_running_loop().create_future()
        future = self._asked[id_]
        try:
            await stream.say({"jsonrpc": "2.0", "id": id_, "method": step.method, "params": step.params})
            return await future
        finally:
            self._asked.pop(id_, None)

    async def _listen(self, listener: Listener) -> None:
        try:
            await self.host.welcome(listener)
            await asyncio.Event().wait()
        finally:
            self.host.dismiss(listener)
