"""Streamable HTTP as it should go: both eras, streams, server requests, cancelling, resuming, listening."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from outfitter.errors import Invalid, OutfitterError, UpstreamLost
from outfitter.upstream import HttpClient, HttpWire, Message, SessionLost, open_http_wire
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
    an_error,
    an_event,
    armed,
    echo,
    in_order,
    sdk_server,
    serve,
    texts,
)

pytestmark = pytest.mark.anyio
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "say"}
META: Message = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LEGACY = {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "abc"}


@asynccontextmanager
async def wired(handler: Handler, inbox: Notebook | None = None) -> AsyncGenerator[tuple[HttpWire, Peer]]:
    """A wire to a scripted server that wants a secret header."""
    async with serve(handler) as peer, HttpClient() as client:
        server = armed(peer.url, {"Authorization": f"Bearer {CANARY}"})
        async with open_http_wire(server, inbox or Notebook(), client) as wire:
            yield wire, peer


@pytest.fixture(scope="module")
def sdk_port() -> Generator[int]:
    with sdk_server("streamable-http") as port:
        yield port


@asynccontextmanager
async def sdk_wired(port: int, inbox: Notebook) -> AsyncGenerator[HttpWire]:
    async with HttpClient() as client, open_http_wire(armed(f"http://127.0.0.1:{port}/mcp"), inbox, client) as wire:
        yield wire


@pytest.mark.promise("WIRE-HTTP-ERAS")
async def test_the_official_server_is_spoken_to_in_the_modern_era(sdk_port: int) -> None:
    inbox = Notebook()
    async with sdk_wired(sdk_port, inbox) as wire:
        answer = await wire.ask(a_request(1, name="say", arguments={"text": "hi"}, _meta=META), MODERN)
        assert answer["result"]["structuredContent"] == {"result": "hi"}
        meta = {**META, "progressToken": 2}
        counted = {**MODERN, "Mcp-Name": "count"}
        answer = await wire.ask(a_request(2, name="count", arguments={"n": 3}, _meta=meta), counted)
        assert answer["result"]["structuredContent"] == {"result": "3"}
        assert texts(inbox.notices) == ["notifications/progress"] * 3
        answer = await wire.ask(a_request(3, "no/such", _meta=META), {**MODERN, "Mcp-Method": "no/such"})
        assert (answer["id"], answer["error"]["code"]) == (3, -32601)


@pytest.mark.promise("WIRE-HTTP-ERAS")
async def test_the_official_server_is_spoken_to_in_the_handshake_era(sdk_port: int) -> None:
    inbox = Notebook()
    async with sdk_wired(sdk_port, inbox) as wire:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = await wire.ask(a_request(0, "initialize", **hello))
        assert answer["result"]["protocolVersion"] == "2025-11-25"
        assert wire.session_id
        session = {**LEGACY, "Mcp-Session-Id": wire.session_id}
        await wire.tell(a_note("notifications/initialized"), session)
        await wire.listen(session)
        meta = {"progressToken": 1}
        for id_ in (1, 2, 3):
            answer = await wire.ask(a_request(id_, name="count", arguments={"n": 2}, _meta=meta), session)
            assert (answer["id"], answer["result"]["content"][0]["text"]) == (id_, "2")
        assert texts(inbox.notices) == ["notifications/progress"] * 6
        await wire.end_session(session)
        with pytest.raises(SessionLost) as lost:
            await wire.ask(a_request(9, name="count", arguments={"n": 2}), session)
        assert not lost.value.may_have_run


async def test_every_request_carries_the_armed_headers_and_those_of_the_moment() -> None:
    async def sets_cookie(request: Request, reply: Reply) -> None:
        await reply.json(an_answer(request.message["id"]), Set_Cookie="a=b")

    async with wired(sets_cookie) as (wire, peer):
        await wire.ask(a_request(1), {"Mcp-Method": "tools/call", "X-Now": "1"})
        await wire.ask(a_request(2), {"authorization": "Bearer other"})
    first, second = (request.headers for request in peer.requests)
    assert first["accept"] == "application/json, text/event-stream"
    assert (first["content-type"], first["mcp-method"], first["x-now"]) == ("application/json", "tools/call", "1")
    assert first["authorization"] == f"Bearer {CANARY}"
    assert second["authorization"] == "Bearer other"
    assert "cookie" not in second
    assert peer.connections == 1


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(echo) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        async with wired(echo) as (wire, _):
            assert await wire.ask(a_request(1)) == an_answer(1)
        assert proxy.connections == 0


async def test_what_the_server_says_before_the_answer_reaches_the_inbox() -> None:
    asked: Message = {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {}}
    replied = asyncio.Event()
    replies: list[Request] = []

    async def handle(request: Request, reply: Reply) -> None:
        if "result" in request.message:
            replies.append(request)
            replied.set()
            await reply.whole(status=202)
            return
        await reply.open_stream()
        await reply.chunk(b": hello\n\n" + an_event(a_note()) + an_event(asked) + an_event(type_="ping"))
        await replied.wait()
        await reply.chunk(an_event(an_answer(99, late=True)) + an_event(an_answer(1, ok=True)))
        await reply.end()

    inbox = Notebook()
    async with wired(handle, inbox) as (wire, _):
        assert await wire.ask(a_request(1), {**LEGACY, "Mcp-Method": "x", "Mcp-Param-A": "y"}) == an_answer(1, ok=True)
    assert (texts(inbox.notices), texts(inbox.questions)) == (["notifications/progress"], ["elicitation/create"])
    assert replies[0].message == an_answer("q1", said="elicitation/create")
    assert replies[0].headers["mcp-session-id"] == "abc"
    assert not {"mcp-method", "mcp-param-a"} & set(replies[0].headers)


async def test_a_server_that_asks_without_end_is_stopped() -> None:
    class Silent(Notebook):
        async def answer(self, message: Message, during: object = None) -> Message:  # noqa: ARG002 - the wire says it
            await anyio.sleep_forever()
            return message

    async def nags(_: Request, reply: Reply) -> None:
        await reply.stream(*(an_event({"jsonrpc": "2.0", "id": n, "method": "ping"}) for n in range(100)))

    async with wired(in_order(nags), Silent()) as (wire, _):
        with pytest.raises(OutfitterError, match="64 answers"):
            await wire.ask(a_request(1))
        assert await wire.ask(a_request(2)) == an_answer(2)


async def test_a_batch_of_messages_is_taken_apart() -> None:
    async def batch(request: Request, reply: Reply) -> None:
        await reply.json([a_note(), an_answer(request.message["id"])])

    inbox = Notebook()
    async with wired(batch, inbox) as (wire, _):
        assert await wire.ask(a_request(5)) == an_answer(5)
    assert len(inbox.notices) == 1


async def test_streamed_answers_use_one_connection_again() -> None:
    async def streams(request: Request, reply: Reply) -> None:
        await reply.stream(an_event(an_answer(request.message["id"])))

    async with wired(streams) as (wire, peer):
        for id_ in range(20):
            assert await wire.ask(a_request(id_)) == an_answer(id_)
    assert peer.connections == 1


async def test_a_stream_that_the_server_holds_open_does_not_hold_up_the_answer() -> None:
    async def holds(request: Request, reply: Reply) -> None:
        await reply.open_stream()
        await reply.chunk(an_event(an_answer(request.message["id"])))
        await reply.wait_gone()

    async with wired(holds) as (wire, peer):
        with anyio.fail_after(5):
            for id_ in range(5):
                assert await wire.ask(a_request(id_)) == an_answer(id_)
    assert peer.connections == 5


@pytest.mark.promise("F11", "F03", "F05")
@pytest.mark.parametrize("stage", ["before the head", "in the body", "in the stream"])
async def test_giving_up_closes_the_response_at_once(stage: str) -> None:
    started, gone = asyncio.Event(), asyncio.Event()

    async def hangs(_: Request, reply: Reply) -> None:
        if stage == "in the body":
            await reply.head(200, {"Content-Type": "application/json", "Content-Length": "100"})
            await reply.send(b"{")
        elif stage == "in the stream":
            await reply.open_stream()
            await reply.chunk(an_event(a_note()))
        started.set()
        await reply.wait_gone()
        gone.set()

    async with wired(in_order(hangs)) as (wire, _):
        async with anyio.create_task_group() as group:
            group.start_soon(wire.ask, a_request(1))
            await started.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(1):
            await gone.wait()
        assert await wire.ask(a_request(2)) == an_answer(2)


@pytest.mark.promise("NO-CROSSED-REPLIES")
async def test_ten_thousand_asks_get_their_own_answers() -> None:
    async def mixed(request: Request, reply: Reply) -> None:
        id_ = request.message["id"]
        if id_ % 2:
            await reply.json(an_answer(id_, **request.message["params"]))
        else:
            await reply.stream(an_event(a_note()), an_event(an_answer(id_, **request.message["params"])))

    ids = iter(range(10_000))

    async def worker(wire: HttpWire, counts: list[int]) -> None:
        for id_ in ids:
            assert await wire.ask(a_request(id_, x=f"text {id_}")) == an_answer(id_, x=f"text {id_}")
            counts.append(id_)

    async with wired(mixed) as (wire, peer):
        counts: list[int] = []
        async with anyio.create_task_group() as group:
            for _ in range(64):
                group.start_soon(worker, wire, counts)
    assert sorted(counts) == list(range(10_000))
    assert peer.connections < 640


@pytest.mark.promise("WIRE-RESUME")
async def test_a_broken_stream_of_the_handshake_era_goes_on_where_it_stopped() -> None:
    async def breaks(_: Request, reply: Reply) -> None:
        await reply.open_stream()
        await reply.chunk(an_event(id_="e1", retry=10) + an_event(a_note(), id_="e2"))
        reply.reset()

    async def ends(_: Request, reply: Reply) -> None:
        await reply.stream(an_event(a_note(), id_="e3"))

    async def answers(_: Request, reply: Reply) -> None:
        await reply.stream(an_event(an_answer(1, ok=True), id_="e4"))

    inbox = Notebook()
    async with wired(in_order(breaks, ends, answers), inbox) as (wire, peer):
        assert await wire.ask(a_request(1), LEGACY) == an_answer(1, ok=True)
        assert await wire.ask(a_request(2), LEGACY) == an_answer(2)
    seen = [(request.method, request.headers.get("last-event-id")) for request in peer.requests]
    assert seen == [("POST", None), ("GET", "e2"), ("GET", "e3"), ("POST", None)]
    assert peer.requests[1].headers["mcp-session-id"] == "abc"
    assert peer.requests[1].headers["accept"] == "text/event-stream"
    assert len(inbox.notices) == 3  # two of the server, and one that says its stream was closed


@pytest.mark.promise("WIRE-RESUME")
@pytest.mark.parametrize(("headers", "gets"), [(LEGACY, 2), (MODERN, 0)])
async def test_a_stream_that_cannot_go_on_is_lost(headers: dict[str, str], gets: int) -> None:
    async def ends(_: Request, reply: Reply) -> None:
        await reply.stream(an_event(id_="e1", retry=1))

    async with wired(in_order(*[ends] * (gets + 1))) as (wire, peer):
        with pytest.raises(UpstreamLost) as lost:
            await wire.ask(a_request(1), headers)
        assert lost.value.may_have_run
        assert await wire.ask(a_request(2), headers) == an_answer(2)
    assert [request.method for request in peer.requests] == ["POST", *["GET"] * gets, "POST"]


@pytest.mark.promise("WIRE-RESUME")
async def test_a_server_that_refuses_to_go_on_is_not_asked_twice() -> None:
    async def ends(_: Request, reply: Reply) -> None:
        await reply.stream(an_event(id_="e1", retry=1))

    async def refuses(_: Request, reply: Reply) -> None:
        await reply.whole(status=405)

    async with wired(in_order(ends, refuses)) as (wire, _):
        with pytest.raises(UpstreamLost) as lost:
            await wire.ask(a_request(1), LEGACY)
        assert lost.value.may_have_run
        assert await wire.ask(a_request(2), LEGACY) == an_answer(2)


@pytest.mark.promise("WIRE-LISTEN")
async def test_the_listener_hears_and_comes_back_with_the_last_id() -> None:
    gets: asyncio.Queue[Request] = asyncio.Queue()

    async def handle(request: Request, reply: Reply) -> None:
        if request.method == "POST":
            await echo(request, reply)
            return
        gets.put_nowait(request)
        await reply.open_stream()
        await reply.chunk(an_event(a_note("notifications/tools/list_changed"), id_=f"n{gets.qsize()}", retry=5))
        if "last-event-id" in request.headers:
            await reply.wait_gone()
        await reply.end()

    inbox = Notebook()
    async with wired(handle, inbox) as (wire, _):
        await wire.listen(LEGACY)
        with anyio.fail_after(10):
            first, second = await gets.get(), await gets.get()
            await inbox.arrived.wait()
        assert await wire.ask(a_request(1), LEGACY) == an_answer(1)
        assert "last-event-id" not in first.headers
        assert second.headers["last-event-id"] == "n1"
        assert second.headers["mcp-session-id"] == "abc"
        await wire.listen({**LEGACY, "Mcp-Session-Id": "def"})
        with anyio.fail_after(10):
            assert (await gets.get()).headers["mcp-session-id"] == "def"


@pytest.mark.promise("WIRE-LISTEN")
@pytest.mark.parametrize("status", [405, 404, 400, 401])
async def test_a_server_without_a_stream_is_left_in_peace(status: int) -> None:
    refused = asyncio.Event()

    async def handle(request: Request, reply: Reply) -> None:
        if request.method == "POST":
            await echo(request, reply)
        else:
            await reply.whole(b"no", status, "text/plain")
            refused.set()

    async with wired(handle) as (wire, peer):
        await wire.listen(LEGACY)
        with anyio.fail_after(10):
            await refused.wait()
        for id_ in range(5):
            assert await wire.ask(a_request(id_), LEGACY) == an_answer(id_)
    assert [request.method for request in peer.requests].count("GET") == 1


@pytest.mark.parametrize("status", [200, 204, 405, 500])
async def test_ending_a_session_never_fails(status: int) -> None:
    async def ends(request: Request, reply: Reply) -> None:
        assert request.method == "DELETE"
        await reply.whole(status=status)

    async with wired(in_order(ends)) as (wire, peer):
        await wire.end_session(LEGACY)
        assert await wire.ask(a_request(2)) == an_answer(2)
    assert peer.requests[0].headers["mcp-session-id"] == "abc"


async def test_ending_a_session_of_a_dead_server_never_fails() -> None:
    async with serve(echo) as peer:
        url = peer.url
    async with HttpClient() as client, open_http_wire(armed(url), Notebook(), client) as wire:
        await wire.end_session(LEGACY)


async def test_an_error_of_the_block_leaves_it_as_it_is() -> None:
    async def fail(peer: Peer, client: HttpClient, error: Exception) -> None:
        async with open_http_wire(armed(peer.url), Notebook(), client) as wire:
            await wire.listen()
            raise error

    async with serve(echo) as peer, HttpClient() as client:
        for error in (ValueError("mine"), OSError("mine"), TimeoutError("mine")):
            with pytest.raises(type(error), match="mine"):
                await fail(peer, client, error)


@pytest.mark.promise("F37")
async def test_cancelling_whoever_holds_the_wire_disturbs_nobody_else() -> None:
    async def hold(task_status: anyio.abc.TaskStatus[HttpWire]) -> None:
        async with open_http_wire(armed(peer.url), Notebook(), client) as wire:
            await wire.listen(LEGACY)
            task_status.started(wire)
            await anyio.sleep_forever()

    async with serve(echo) as peer, HttpClient() as client, anyio.create_task_group() as others:
        async with anyio.create_task_group() as group:
            wire = await group.start(hold)
            assert await wire.ask(a_request(1)) == an_answer(1)
            group.cancel_scope.cancel()
        second = await others.start(hold)
        assert await second.ask(a_request(2)) == an_answer(2)
        others.cancel_scope.cancel()


@pytest.mark.promise("F35")
async def test_a_thousand_connections_leave_nothing_open() -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    async with serve(echo) as peer:
        before = open_files()
        for id_ in range(1000):
            async with HttpClient() as client, open_http_wire(armed(peer.url), Notebook(), client) as wire:
                assert await wire.ask(a_request(id_)) == an_answer(id_)
        with anyio.fail_after(5):
            while open_files() > before:  # the server's side closes when it has seen the client's
                await anyio.lowlevel.checkpoint()


async def test_a_message_that_is_no_json_is_refused_before_it_is_sent() -> None:
    async with wired(echo) as (wire, peer):
        with pytest.raises(Invalid):
            await wire.ask(a_request(1, x="\ud800"))
        assert peer.connections == 0
        large = "x" * 3_000_000
        assert (await wire.ask(a_request(2, x=large)))["result"] == {"x": large}


async def test_a_closed_client_says_so() -> None:
    client = HttpClient()
    async with serve(echo) as peer, open_http_wire(armed(peer.url), Notebook(), client) as wire:
        assert await wire.ask(a_request(1)) == an_answer(1)
        await client.close()
        with pytest.raises(UpstreamLost, match="closed"):
            await wire.ask(a_request(2))


async def test_an_error_without_an_id_answers_the_request() -> None:
    async def refuses(_: Request, reply: Reply) -> None:
        await reply.json(an_error(None, -32600, "what?"))

    async with wired(refuses) as (wire, _):
        assert await wire.ask(a_request(7)) == an_error(7, -32600, "what?")
