"""The older transport: one stream down, POSTs up, and nobody waits for a stream that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from outfitter.errors import DestinationForbidden, NeedsAuth, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.upstream import HttpClient, HttpLimits, SseWire, StatusRefused, open_sse_wire
from tests.upstream.http_peers import (
    CANARY,
    Handler,
    Notebook,
    Peer,
    Reply,
    Request,
    a_note,
    a_request,
    an_answer,
    an_event,
    armed,
    echo,
    sdk_server,
    serve,
    texts,
)

pytestmark = pytest.mark.anyio
ENDPOINT = b"event: endpoint\ndata: /messages?session=1\n\n"


@dataclass
class OldServer:
    """A server of the older transport; ``outgoing`` is what it sends down, None ends the stream."""

    first: bytes = ENDPOINT
    outgoing: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue[bytes | None])
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, request: Request, reply: Reply) -> None:
        if request.method == "GET":
            await self._stream(reply)
            return
        await reply.whole(b"Accepted", 202, "text/plain")
        message = request.message
        if "id" in message and "method" in message and message["method"] != "silence":
            self.outgoing.put_nowait(an_event(an_answer(message["id"], **message["params"])))

    async def _stream(self, reply: Reply) -> None:
        await reply.open_stream()
        await reply.chunk(self.first)
        gone = asyncio.create_task(reply.wait_gone())
        gone.add_done_callback(lambda _: (self.gone.set(), self.outgoing.put_nowait(None)))
        while (piece := await self.outgoing.get()) is not None:
            await reply.chunk(piece)
        if not gone.done():
            await reply.end()
            gone.cancel()
        reply.writer.close()


@asynccontextmanager
async def wired(
    handler: Handler, inbox: Notebook | None = None, limits: HttpLimits | None = None
) -> AsyncGenerator[tuple[SseWire, Peer]]:
    async with serve(handler) as peer, HttpClient(limits=limits) as client:
        server = armed(f"http://127.0.0.1:{peer.port}/sse", {"Authorization": f"Bearer {CANARY}"}, "sse")
        async with open_sse_wire(server, inbox or Notebook(), client) as wire:
            yield wire, peer


async def opening_failure(handler: Handler, limits: HttpLimits | None = None) -> OutfitterError:
    """The error that opening a wire ends with; a healthy server can be opened afterwards."""

    async def open_it() -> None:
        async with wired(handler, limits=limits):
            pass

    with anyio.fail_after(5), pytest.raises(OutfitterError) as caught:
        await open_it()
    async with wired(OldServer()) as (wire, _):
        assert await wire.ask(a_request(1)) == an_answer(1)
    assert CANARY not in f"{caught.value} {caught.value!r} {vars(caught.value)}"
    assert caught.value.where == "server 's'"
    return caught.value


@pytest.fixture(scope="module")
def sdk_port() -> Generator[int]:
    with sdk_server("sse") as port:
        yield port


@pytest.mark.promise("WIRE-SSE")
async def test_the_official_server_is_spoken_to(sdk_port: int) -> None:
    inbox = Notebook()
    server = armed(f"http://127.0.0.1:{sdk_port}/sse", kind="sse")
    async with HttpClient() as client, open_sse_wire(server, inbox, client) as wire:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert (await wire.ask(a_request(0, "initialize", **hello)))["result"]["serverInfo"]["name"] == "peer"
        await wire.tell(a_note("notifications/initialized"))
        meta = {"progressToken": 1}
        answer = await wire.ask(a_request(1, name="count", arguments={"n": 2}, _meta=meta))
        assert answer["result"]["content"][0]["text"] == "2"
        assert texts(inbox.notices) == ["notifications/progress"] * 2


@pytest.mark.promise("WIRE-SSE")
async def test_messages_go_to_the_endpoint_with_the_armed_headers() -> None:
    async with wired(OldServer()) as (wire, peer):
        assert await wire.ask(a_request(1, x=1), {"X-Now": "1"}) == an_answer(1, x=1)
    get, post = peer.requests
    assert (get.method, get.path, post.method, post.path) == ("GET", "/sse", "POST", "/messages?session=1")
    assert get.headers["authorization"] == post.headers["authorization"] == f"Bearer {CANARY}"
    assert post.headers["x-now"] == "1"


@pytest.mark.promise("WIRE-SSE", "NO-CROSSED-REPLIES")
async def test_answers_are_matched_by_id() -> None:
    async with wired(OldServer()) as (wire, _):

        async def ask(id_: int) -> None:
            assert await wire.ask(a_request(id_, x=id_)) == an_answer(id_, x=id_)

        async with anyio.create_task_group() as group:
            for id_ in range(64):
                group.start_soon(ask, id_)


@pytest.mark.promise("WIRE-SSE")
async def test_what_the_server_says_by_itself_reaches_the_inbox() -> None:
    server, inbox = OldServer(), Notebook()
    async with wired(server, inbox) as (wire, peer):
        server.outgoing.put_nowait(an_event(a_note()))
        server.outgoing.put_nowait(an_event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}))
        server.outgoing.put_nowait(an_event(an_answer(99)) + an_event(type_="ping") + b": comment\n\n")
        assert await wire.ask(a_request(1)) == an_answer(1)
        with anyio.fail_after(5):
            while not any("result" in request.message for request in peer.requests if request.body):
                await anyio.lowlevel.checkpoint()
    assert (texts(inbox.notices), texts(inbox.questions)) == (["notifications/progress"], ["roots/list"])


@pytest.mark.promise("WIRE-SSE", "F01")
async def test_when_the_stream_ends_everyone_is_told() -> None:
    server = OldServer()
    errors: list[UpstreamLost] = []
    async with wired(server) as (wire, peer):

        async def ask(id_: int) -> None:
            with pytest.raises(UpstreamLost) as lost:
                await wire.ask(a_request(id_, "silence"))
            errors.append(lost.value)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                for id_ in range(3):
                    group.start_soon(ask, id_)
                while len(peer.requests) < 4:
                    await anyio.lowlevel.checkpoint()
                server.outgoing.put_nowait(None)
            assert "ended" in str(await wire.wait_lost())
        assert [error.may_have_run for error in errors] == [True] * 3
        with pytest.raises(UpstreamLost) as late:
            await wire.ask(a_request(9))
        assert not late.value.may_have_run
        with pytest.raises(UpstreamLost):
            await wire.tell(a_note())
    async with wired(OldServer()) as (wire, _):
        assert await wire.ask(a_request(1)) == an_answer(1)


@pytest.mark.promise("WIRE-SSE", "F07", "F09")
@pytest.mark.parametrize(
    ("piece", "words"), [(b"data: nonsense\n\n", "nonsense"), (b"data: " + b"x" * 5000, "more than 2000 bytes")]
)
async def test_garbage_on_the_stream_loses_the_wire(piece: bytes, words: str) -> None:
    server = OldServer()
    async with wired(server, limits=HttpLimits(event=2000)) as (wire, _):
        server.outgoing.put_nowait(piece)
        with anyio.fail_after(5):
            error = await wire.wait_lost()
    assert isinstance(error, ProtocolViolation)
    assert words in str(error)
    assert error.where == "server 's'"


@pytest.mark.promise("WIRE-SSE")
@pytest.mark.parametrize("place", ["http://evil.example/x", "//evil.example/x", "https://127.0.0.1/x", "http://[x/"])
async def test_an_endpoint_elsewhere_is_refused(place: str) -> None:
    async with serve(echo) as canary:
        for target in (place, canary.url):
            error = await opening_failure(OldServer(f"event: endpoint\ndata: {target}\n\n".encode()))
            assert isinstance(error, DestinationForbidden)
        assert canary.connections == 0


async def test_a_server_without_a_stream_is_told_in_words() -> None:
    def refusing(status: int, kind: str = "text/plain", **headers: str) -> Handler:
        async def handle(_: Request, reply: Reply) -> None:
            await reply.whole(b"no " + CANARY.encode(), status, kind, **headers)

        return handle

    assert isinstance(await opening_failure(refusing(401)), NeedsAuth)
    assert isinstance(await opening_failure(refusing(404)), StatusRefused)
    assert isinstance(await opening_failure(refusing(200)), StatusRefused)
    assert isinstance(await opening_failure(refusing(307, Location="/elsewhere")), StatusRefused)
    assert isinstance(await opening_failure(refusing(503)), UpstreamLost)


async def test_a_stream_that_names_no_endpoint_is_given_up() -> None:
    ended = OldServer(b": hello\n\n")
    ended.outgoing.put_nowait(None)
    assert isinstance(await opening_failure(ended), UpstreamLost)
    assert "named no endpoint" in str(await opening_failure(OldServer(b": hello\n\n"), HttpLimits(connect=0.2)))


async def test_a_refused_message_is_an_error_and_the_next_one_works() -> None:
    server = OldServer()
    refusals = [(404, b"Could not find session"), (400, b'{"error": {"code": -1, "message": "bad"}}')]

    async def handle(request: Request, reply: Reply) -> None:
        if request.method == "POST" and refusals:
            status, body = refusals.pop(0)
            await reply.whole(body, status)
        else:
            await server(request, reply)

    async with wired(handle) as (wire, _):
        for words in ("Could not find session", "'bad'"):
            with pytest.raises(StatusRefused, match=words):
                await wire.ask(a_request(1))
        assert await wire.ask(a_request(2)) == an_answer(2)


async def test_giving_up_an_ask_leaves_the_wire_whole() -> None:
    async with wired(OldServer()) as (wire, _):
        with anyio.move_on_after(0.05):
            await wire.ask(a_request(1, "silence"))
        assert await wire.ask(a_request(1)) == an_answer(1)


async def test_closing_the_wire_closes_the_stream() -> None:
    server = OldServer()
    async with serve(server) as peer, HttpClient() as client:
        async with open_sse_wire(armed(f"http://127.0.0.1:{peer.port}/sse", kind="sse"), Notebook(), client):
            pass
        with anyio.fail_after(1):
            await server.gone.wait()
