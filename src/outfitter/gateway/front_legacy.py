"""Messages of the handshake era over HTTP: the handshake, requests within a visit, the standing stream, the end."""

from __future__ import annotations

from dataclasses import dataclass

import anyio

from outfitter.errors import OutfitterError
from outfitter.gateway.desk import Desk
from outfitter.gateway.faults import INVALID_PARAMS, METHOD_NOT_FOUND, NOT_FOUND_LEGACY, Rejected, rpc_error
from outfitter.gateway.gate import Arrival, Turned
from outfitter.gateway.modern import SERVER_INFO, check_capabilities
from outfitter.gateway.views import View, as_object
from outfitter.gateway.visitors import Principal, Visitor
from outfitter.gateway.visits import Visit
from outfitter.gateway.words import Final, Replay, Teller
from outfitter.upstream import Message

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
GRACE_SECONDS = 10.0
"""How long a client that left a stream may take to come back for the rest."""
MOST_SUBSCRIPTIONS = 100
RESUMABLE_SINCE = "2025-11-25"
SESSION = "mcp-session-id"
_MODERN_ONLY = frozenset({"server/discover", "subscriptions/listen"})
_MODERN_KEYS = frozenset({"resultType", "ttlMs", "cacheScope"})


@dataclass(frozen=True, slots=True)
class _Channel:
    """Says and asks things on the response's stream."""

    words: Teller
    visit: Visit

    def tell(self, message: Message) -> None:
        """Send a notification."""
        self.words.say(message)

    async def ask(self, method: str, params: Message) -> Message:
        """Ask on the stream and wait for the client's own request that brings the answer."""
        return await self.visit.ask(method, params, self.tell)

    def pause(self) -> None:
        """Let the client go for now, if it can come back."""
        if isinstance(self.words, Replay):
            self.words.pause()


@dataclass(frozen=True, slots=True)
class LegacyFront:
    """Answers messages of the handshake era."""

    desk: Desk

    def find(self, arrival: Arrival, principal: Principal) -> Visit:
        """The visit that a request belongs to; Turned when it names none, or one that is not its own."""
        ident = arrival.header(SESSION)
        if ident is None:
            raise Turned(400, "an Mcp-Session-Id header is needed; send initialize first")
        visit = self.desk.visits.find(ident, principal, arrival.server)
        if visit is None:
            raise Turned(404, "this session is not known here")
        return visit

    async def initialize(self, arrival: Arrival, principal: Principal, message: Message) -> tuple[Message, Visit]:
        """The handshake: an answer and a new visit."""
        params = as_object(message.get("params"))
        check_capabilities(params.get("capabilities"))
        asked = params.get("protocolVersion")
        version = asked if isinstance(asked, str) and asked in VERSIONS else VERSIONS[0]
        view = await self.desk.open_view(self.desk.seats.name_of(principal), arrival.server)
        visit = self.desk.visits.open(principal, arrival.server, version, as_object(params.get("capabilities")))
        capabilities, instructions = await self.desk.introduce(view, visit.visitor(visit))
        result: Message = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": SERVER_INFO}
        if instructions:
            result["instructions"] = instructions
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}, visit

    async def answer(self, view: View, visit: Visit, message: Message, words: Teller) -> None:
        """Say the answer, and what comes before it, on ``words``."""
        ident, method = message.get("id"), str(message.get("method"))
        params = as_object(message.get("params"))
        try:
            if method in _MODERN_ONLY:
                raise Rejected(f"Method not found: {method}", rpc_code=METHOD_NOT_FOUND)
            visitor = visit.visitor(_Channel(words, visit))
            if method in {"resources/subscribe", "resources/unsubscribe"}:
                result = await self._subscribe(
                    view, visit, visitor, is_on=method == "resources/subscribe", params=params
                )
            else:
                result = await self.desk.answer(view, visitor, method, params)
            if method == "logging/setLevel":
                visit.log_level = str(params.get("level"))
            plain = {key: value for key, value in result.items() if key not in _MODERN_KEYS}
            words.say(Final({"jsonrpc": "2.0", "id": ident, "result": plain}))
        except OutfitterError as error:
            words.say(Final({"jsonrpc": "2.0", "id": ident, "error": rpc_error(error)}))

    async def work(self, view: View, visit: Visit, message: Message, stream: Replay) -> None:
        """The same on a stream that its client may leave and take up again."""
        try:
            with stream.scope, visit.working_on(message["id"], stream.scope):
                await self.answer(view, visit, message, stream)
        finally:
            stream.close()

    async def give_up_later(self, stream: Replay) -> None:
        """End what nobody comes back for."""
        is_read = False
        with anyio.move_on_after(GRACE_SECONDS):
            is_read = await stream.wait_for_reader()
        if not is_read:
            stream.scope.cancel()

    async def _subscribe(self, view: View, visit: Visit, visitor: Visitor, *, is_on: bool, params: Message) -> Message:
        """Begin or stop to hear of a resource; the last who stops ends it at the server."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            raise Rejected("'uri' must be a text", rpc_code=INVALID_PARAMS)
        line = visit.subscribed.pop(uri, None) if not is_on else visit.subscribed.get(uri)
        if not is_on and line is not None:
            self.desk.subscriptions.drop(line, uri)
        elif is_on and line is None:
            item = await view.owner_of(uri, visitor)
            if item is None:
                raise Rejected(f"Resource not found: {uri}", rpc_code=NOT_FOUND_LEGACY, data={"uri": uri})
            if len(visit.subscribed) >= MOST_SUBSCRIPTIONS:
                raise Rejected(f"more than {MOST_SUBSCRIPTIONS} subscriptions", rpc_code=INVALID_PARAMS)
            await self.desk.subscriptions.add(item.line, uri)
            visit.subscribed[uri] = item.line
        return {}
