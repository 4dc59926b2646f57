"""What does a cassette answer when it is played as a server? What was recorded, in the era of whoever asks.

A behaviour like that of scripted servers: one request in, the steps of its exchange out; ``conversation`` carries
them out on any transport. Which answer it is, is ``matching``. What was never recorded is an error, and nothing is
asked anywhere else unless there is a ``Fallback``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from outfitter.calls import redact
from outfitter.errors import OutfitterError
from outfitter.formats import Exchange
from outfitter.testing.behaviour import CACHED, check, listen
from outfitter.testing.cassettes.matching import Playback, Played, in_words
from outfitter.testing.exchange import (
    LOG_LEVEL_KEY,
    NOT_RECORDED,
    SERVER_KEY,
    Announce,
    Ask,
    Desk,
    Fetch,
    Message,
    Refusal,
    Request,
    Say,
    Step,
    Steps,
    Work,
    part,
)
from outfitter.testing.script import Script, ScriptedTool

Fallback: TypeAlias = Callable[[str, Message], Awaitable[Exchange]]
"""Asks a live server for what is not on the cassette."""
OnEvent: TypeAlias = Callable[[str, str, int], None]
"""Hears ``answered``, ``repeated``, ``missed`` or ``live``, the request in words, and the line of the answer, or 0."""
_INPUT_REQUIRED = "input_required"
_MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")
_FREE = frozenset({"ping", "logging/setLevel"})
_ROUNDS = 10
_INTERNAL = -32603


def _unheard(_event: str, _request: str, _line: int) -> None:
    """Nobody listens."""


@dataclass(slots=True)
class Replayer:
    """A cassette as the behaviour of a server. ``counts`` says how often something was answered, repeated, missed."""

    playback: Playback
    fallback: Fallback | None = None
    on_event: OnEvent = _unheard
    counts: Counter[str] = field(default_factory=Counter[str])

    def script(self) -> Script:
        """The server that was recorded, as far as a front has to know it."""
        tools = [
            ScriptedTool(str(tool.get("name")), schema=part(tool, "inputSchema"))
            for one in self.playback.exchanges
            if one.method == "tools/list"
            for tool in cast("list[Message]", (one.result or {}).get("tools", []))
        ]
        return Script(name=str(self._info().get("name", "recorded")), tools=tuple(tools), resources=(), prompts=())

    def answer(self, desk: Desk, request: Request) -> Steps:
        """The steps of one exchange; the last one says the response."""
        try:
            check(desk, request)
            result = yield from self._work(desk, request)
        except Refusal as refusal:
            yield Say(refusal.reply(request.id))
            return
        yield Say({"jsonrpc": "2.0", "id": request.id, "result": self._dressed(request, result)})

    def _work(self, desk: Desk, request: Request) -> Work:
        if request.method == "initialize":
            return self._initialize(desk, request)
        if request.method == "server/discover":
            return {"supportedVersions": list(desk.script.versions), **self._introduction()}
        if request.method == "subscriptions/listen":
            return (yield from listen(desk, request))
        if request.method in _FREE:
            return {}
        if request.method == "resources/subscribe":
            desk.peer.watched.add(str(request.target))
        if request.method == "resources/unsubscribe":
            desk.peer.watched.discard(str(request.target))
        return (yield from self._play(request))

    # ── what was recorded ──

    def _play(self, request: Request) -> Work:
        params = request.params
        for _ in range(_ROUNDS):
            played = yield from self._find(request.method, params)
            result = yield from self._tell(request, played)
            if request.modern or result.get("resultType") != _INPUT_REQUIRED:
                return result
            params = {**params, **(yield from self._ask_client(result))}
        raise Refusal(NOT_RECORDED, f"the recording asks for input more than {_ROUNDS} times")

    def _find(self, method: str, params: Message) -> Generator[Step, Message, Played]:
        found = self.playback.find(method, params)
        if found is not None:
            self._count("repeated" if found.is_repeated else "answered", method, params, found.exchange.line)
            return found
        if self.fallback is None:
            raise self._missed(method, params)
        fallback, heard = self.fallback, list[Exchange | OutfitterError]()

        async def ask() -> Message:
            try:
                heard.append(await fallback(method, params))
            except OutfitterError as error:
                heard.append(error)
            return {}

        yield Fetch(ask)
        self._count("live", method, params)
        if isinstance(heard[0], OutfitterError):
            raise Refusal(_INTERNAL, str(heard[0]))
        self.playback.add(heard[0])
        return Played(heard[0])

    def _missed(self, method: str, params: Message) -> Refusal:
        self._count("missed", method, params)
        asked, nearest = _shown(method, params), self.playback.nearest(method, params)
        told = "; ".join(nearest) or "nothing"
        source = self.playback.cassette.header.server
        message = f"not recorded: {asked}. The nearest that was recorded from {source}: {told}"
        return Refusal(NOT_RECORDED, message, {"asked": asked, "nearest": nearest})

    def _count(self, event: str, method: str, params: Message, line: int = 0) -> None:
        self.counts[event] += 1
        self.on_event(event, _shown(method, params), line)

    def _tell(self, request: Request, played: Played) -> Work:
        """Everything that was said before the answer, then the answer."""
        exchange = played.exchange
        for notice in exchange.notices:
            told = _addressed(notice, request)
            if told is not None and not _is_announced(notice):
                yield Say({"jsonrpc": "2.0", **told})
        for question in () if request.modern else exchange.questions:
            yield Ask(str(question["method"]), part(question, "params"))
        # Once: a client that asks again because of a notice would hear it again, without end.
        announced = [*filter(_is_announced, exchange.notices), *self.playback.after(exchange)]
        for notice in () if played.is_repeated else announced:
            yield Announce(str(notice["method"]), _without_meta(part(notice, "params")))
        if exchange.error is not None:
            error = exchange.error
            raise Refusal(int(error.get("code", 0)), str(error.get("message", "")), error.get("data"))
        return dict(exchange.result or {})

    def _ask_client(self, result: Message) -> Work:
        """What the modern era asks between two requests, asked as the handshake era does it."""
        responses: Message = {}
        for key, question in part(result, "inputRequests").items():
            reply = yield Ask(str(question.get("method")), part(question, "params"))
            responses[key] = reply.get("result", {})
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return {"inputResponses": responses, **state}

    # ── who it was ──

    def _opening(self, method: str) -> Message:
        found = (one.result for one in self.playback.exchanges if one.method == method and one.result is not None)
        return next(found, Message())

    def _info(self) -> Message:
        info = part(self._opening("initialize"), "serverInfo")
        return info or part(part(self._opening("server/discover"), "_meta"), SERVER_KEY)

    def _introduction(self) -> Message:
        """What the server said it can do; what was used of it, when that was not recorded."""
        said = self._opening("initialize") or self._opening("server/discover")
        used = {one.method.partition("/")[0] for one in self.playback.exchanges} & {"tools", "prompts", "resources"}
        told: Message = {"capabilities": part(said, "capabilities") or {name: {} for name in sorted(used)}}
        return {**told, "instructions": said["instructions"]} if "instructions" in said else told

    def _initialize(self, desk: Desk, request: Request) -> Message:
        wanted, versions = request.params.get("protocolVersion"), desk.script.legacy_versions
        desk.peer.version = wanted if wanted in versions else versions[0]
        desk.peer.capabilities = part(request.params, "capabilities")
        info = self._info() or {"name": "recorded", "version": "0"}
        return {"protocolVersion": desk.peer.version, "serverInfo": info, **self._introduction()}

    def _dressed(self, request: Request, result: Message) -> Message:
        """The result with what the era of this client has on each, and without what the other one has."""
        if not request.modern:
            return {key: value for key, value in result.items() if key not in _MODERN_ONLY}
        info = self._info()
        meta = {SERVER_KEY: info} if info else {}
        done: Message = {"resultType": "complete", **result, "_meta": {**meta, **part(result, "_meta")}}
        if request.method in CACHED and done["resultType"] == "complete":
            done = {"ttlMs": 0, "cacheScope": "private", **done}
        return done


def _shown(method: str, params: Mapping[str, Any]) -> str:
    """A request in words, without its secrets."""
    return in_words(method, redact(params))


def _is_announced(notice: Message) -> bool:
    """Whether a notice is for everyone who listens, and not for whoever asks."""
    return str(notice["method"]).endswith(("/list_changed", "/updated"))


def _without_meta(params: Message) -> Message:
    return {key: value for key, value in params.items() if key != "_meta"}


def _addressed(notice: Message, request: Request) -> Message | None:
    """A notice for whoever asks now; None when this client did not ask for any such."""
    params = part(notice, "params")
    if notice["method"] == "notifications/progress":
        token = request.meta.get("progressToken")
        return None if token is None else {**notice, "params": {**params, "progressToken": token}}
    if notice["method"] == "notifications/message" and request.modern and LOG_LEVEL_KEY not in request.meta:
        return None
    return notice
