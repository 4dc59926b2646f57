"""A request of the modern era over HTTP: checked against its headers, answered, parked while its client is asked."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from outfitter.errors import OutfitterError
from outfitter.gateway import modern
from outfitter.gateway.desk import Desk
from outfitter.gateway.faults import (
    CAPABILITY_MISSING,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    VERSION_UNSUPPORTED,
    Rejected,
    rpc_error,
)
from outfitter.gateway.gate import Arrival, Turned
from outfitter.gateway.lines import Line
from outfitter.gateway.listening import Ear, Wanted
from outfitter.gateway.parking import Parked, owner_of
from outfitter.gateway.views import View, as_object
from outfitter.gateway.visitors import Principal, Visitor
from outfitter.gateway.words import Final, Teller
from outfitter.upstream import Message

STATUS = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    CAPABILITY_MISSING: 400,
    VERSION_UNSUPPORTED: 400,
    METHOD_NOT_FOUND: 404,
}
MOST_SUBSCRIPTIONS = 100
_GONE = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "initialize"})


@dataclass(frozen=True, slots=True)
class _Channel:
    """Says things on the response's stream; questions park the call."""

    words: Teller
    parked: Parked

    def tell(self, message: Message) -> None:
        """Send a notification."""
        self.words.say(message)

    async def ask(self, method: str, params: Message) -> Message:
        """Park the call until the client comes back."""
        return await self.parked.ask(method, params)


@dataclass(frozen=True, slots=True)
class ModernFront:
    """Answers one message of the modern era."""

    desk: Desk
    has_headers: bool = True
    """False where a message is all there is."""

    async def answer(self, arrival: Arrival, principal: Principal, message: Message, words: Teller) -> None:
        """Say the answer, and what comes before it, on ``words``."""
        ident, method = message.get("id"), str(message.get("method"))
        try:
            with self.desk.witness(principal, message):
                version = modern.check(message, self._headers(arrival))
            view = await self.desk.open_view(self.desk.seats.name_of(principal), arrival.server)
            if method == "subscriptions/listen":
                await self._listen(arrival, principal, message, words)
                return
            result = await self._result(view, version, arrival, principal, message, words)
            words.say(Final({"jsonrpc": "2.0", "id": ident, "result": modern.dress(method, result)}))
        except OutfitterError as error:
            shown = rpc_error(error)
            words.say(Final({"jsonrpc": "2.0", "id": ident, "error": shown}, STATUS.get(shown["code"], 200)))

    async def _result(
        self, view: View, version: str, arrival: Arrival, principal: Principal, message: Message, words: Teller
    ) -> Message:
        method, params = str(message.get("method")), as_object(message.get("params"))
        if method in _GONE:
            raise Rejected(f"Method not found: {method}", rpc_code=METHOD_NOT_FOUND)
        owner = owner_of(principal, method, params)
        with self.desk.witness(principal, message):
            parked = self.desk.lot.find(params.get("requestState"), owner)
        if parked is None:

            async def job(parked: Parked) -> Message:
                visitor = modern.visitor_of(message, version, principal, _Channel(words, parked))
                return await self._work(view, visitor, arrival, method, params)

            parked = self.desk.lot.start(owner, job)
        else:
            parked.answer(as_object(params.get("inputResponses")))
        return await self._await(parked)

    async def _work(self, view: View, visitor: Visitor, arrival: Arrival, method: str, params: Message) -> Message:
        if method == "server/discover":
            return modern.discovery(*await self.desk.introduce(view, visitor))
        return await self.desk.answer(view, visitor, method, params, self._headers(arrival))

    def _headers(self, arrival: Arrival) -> tuple[tuple[str, str], ...] | None:
        return arrival.headers if self.has_headers else None

    async def _await(self, parked: Parked) -> Message:
        """The result of a call, or the question it stopped at; a client that goes away ends the call."""
        try:
            await parked.next_word()
        except BaseException:
            parked.scope.cancel()
            raise
        if isinstance(parked.outcome, Exception):
            raise parked.outcome
        if parked.outcome is not None:
            return parked.outcome
        method, params = parked.question or ("", {})
        return {
            "resultType": "input_required",
            "inputRequests": {"question": {"method": method, "params": params}},
            "requestState": self.desk.lot.park(parked),
        }

    async def _listen(self, arrival: Arrival, principal: Principal, message: Message, words: Teller) -> None:
        """Acknowledge, then pass on what was asked for, until the client goes or the gateway ends."""
        ident = message.get("id")
        wanted = Wanted.read(as_object(message.get("params")).get("notifications"))
        tag = {f"{modern.META}subscriptionId": ident}

        def say(note: Message) -> None:
            words.say({**note, "params": {**as_object(note.get("params")), "_meta": tag}})

        visitor = modern.visitor_of(message, modern.VERSIONS[-1], principal, _Channel(words, Parked("")))
        held: dict[str, Line] = {}
        name = self.desk.seats.name_of(principal)
        ear = Ear(lambda: self.desk.open_view(name, arrival.server), visitor, say, wanted.fits)
        try:
            await self._subscribe(await ear.start(), visitor, wanted, held)
            granted = Wanted(wanted.flags, frozenset(held))
            params = {"notifications": granted.as_json()}
            say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
            async with anyio.create_task_group() as group:
                group.start_soon(ear.follow)
                await self.desk.closing.wait()
                group.cancel_scope.cancel()
            result = modern.dress("subscriptions/listen", {"_meta": tag})
            words.say(Final({"jsonrpc": "2.0", "id": ident, "result": result}))
        finally:
            ear.stop()
            self.desk.subscriptions.drop_all(held)

    async def _subscribe(self, view: View, visitor: Visitor, wanted: Wanted, held: dict[str, Line]) -> None:
        """Hold what can be held; what nobody has, or what a server refuses, is not granted."""
        for uri in sorted(wanted.uris)[:MOST_SUBSCRIPTIONS]:
            item = await view.owner_of(uri, visitor)
            if item is None:
                continue
            try:
                await self.desk.subscriptions.add(item.line, uri)
            except OutfitterError:
                continue
            held[uri] = item.line


def refuse_listening_without_stream(arrival: Arrival, method: str) -> None:
    """A listen response is a stream and nothing else."""
    if method == "subscriptions/listen" and not arrival.accepts("text/event-stream"):
        raise Turned(406, "subscriptions/listen is answered by a stream of events")
