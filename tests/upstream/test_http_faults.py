"""Streamable HTTP when things go wrong: each fault is one clear error, and the next healthy call works."""

from __future__ import annotations

import asyncio
import gzip
import re
import resource
import socket
import time
import traceback
import zlib
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

import anyio
import pytest

from outfitter.errors import DestinationForbidden, NeedsAuth, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.upstream import (
    AuthWanted,
    HttpClient,
    HttpLimits,
    HttpWire,
    SessionLost,
    StatusRefused,
    open_http_wire,
)
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
    serve,
)

pytestmark = pytest.mark.anyio
LEGACY = {"MCP-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "abc"}
BODY_LIMIT = 256 * 1024


@asynccontextmanager
async def wired(*handlers: Handler, limits: HttpLimits | None = None) -> AsyncGenerator[tuple[HttpWire, Peer]]:
    """A wire to a server that misbehaves in this order and is healthy ever after."""
    async with serve(in_order(*handlers)) as peer, HttpClient(limits=limits) as client:
        server = armed(peer.url + f"?key={CANARY}", {"Authorization": f"Bearer {CANARY}"})
        async with open_http_wire(server, Notebook(), client) as wire:
            yield wire, peer


async def failure(wire: HttpWire, headers: dict[str, str] | None = None) -> OutfitterError:
    """The error of one ask, told within a second and without our secret; the next one is healthy."""
    with anyio.fail_after(5):
        with pytest.raises(OutfitterError) as caught:
            await wire.ask(a_request(1), headers or {})
        assert await wire.ask(a_request(2, x=1), headers or {}) == an_answer(2, x=1)
    error = caught.value
    assert CANARY not in "".join([*traceback.format_exception(error), repr(error), repr(vars(error))])
    assert error.where == "server 's'"
    return error


def whole(body: bytes, status: int = 200, kind: str = "application/json", **headers: str) -> Handler:
    async def handle(_: Request, reply: Reply) -> None:
        await reply.whole(body, status, kind, **headers)

    return handle


@pytest.mark.promise("F01")
@pytest.mark.parametrize("stage", ["before the head", "in the head", "in the body", "in the stream"])
async def test_a_connection_that_breaks_is_told_at_once_and_may_have_run(stage: str) -> None:
    async def breaks(_: Request, reply: Reply) -> None:
        if stage == "in the head":
            await reply.send(b"HTTP/1.1 200 OK\r\nContent-")
        elif stage == "in the body":
            await reply.head(200, {"Content-Type": "application/json", "Content-Length": "100"})
            await reply.send(b'{"jsonrpc"')
        elif stage == "in the stream":
            await reply.open_stream()
            await reply.chunk(an_event(a_note()))
        reply.reset()

    async with wired(breaks) as (wire, peer):
        start = time.monotonic()
        error = await failure(wire)
        assert time.monotonic() - start < 1
        assert isinstance(error, UpstreamLost)
        assert error.may_have_run
        assert len(peer.requests) == 2


@pytest.mark.promise("F01")
async def test_a_stream_that_ends_without_the_answer_may_have_run() -> None:
    async def ends(_: Request, reply: Reply) -> None:
        await reply.stream(an_event(a_note()))

    async with wired(ends) as (wire, _):
        error = await failure(wire, LEGACY)
    assert isinstance(error, UpstreamLost)
    assert error.may_have_run


@pytest.mark.promise("ONE-FAILURE-ALONE")
async def test_one_failing_request_hurts_no_other() -> None:
    release = asyncio.Event()

    async def handle(request: Request, reply: Reply) -> None:
        if request.message["id"] == 0:
            reply.reset()
            release.set()
            return
        await release.wait()
        await echo(request, reply)

    answers: list[object] = []
    async with (
        serve(handle) as peer,
        HttpClient() as client,
        open_http_wire(armed(peer.url), Notebook(), client) as wire,
    ):

        async def ask(id_: int) -> None:
            answers.append(await wire.ask(a_request(id_)))

        async with anyio.create_task_group() as group:
            for id_ in range(1, 30):
                group.start_soon(ask, id_)
            with pytest.raises(UpstreamLost):
                await wire.ask(a_request(0))
    assert len(answers) == 29


async def test_nobody_listening_means_it_certainly_did_not_run() -> None:
    async with serve(echo) as peer:
        url = peer.url
    async with HttpClient() as client, open_http_wire(armed(url), Notebook(), client) as wire:
        with pytest.raises(UpstreamLost, match="refused") as lost:
            await wire.ask(a_request(1))
        assert not lost.value.may_have_run


async def test_a_name_without_an_address_certainly_did_not_run() -> None:
    async def lookup(host: str, port: int) -> Iterable[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    server, client = armed("http://nowhere.example/mcp"), HttpClient(lookup=lookup)
    async with client, open_http_wire(server, Notebook(), client) as wire:
        with pytest.raises(UpstreamLost, match="no address") as lost:
            await wire.ask(a_request(1))
        assert not lost.value.may_have_run


async def test_a_server_that_does_not_speak_tls_certainly_did_not_run() -> None:
    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(plain, "127.0.0.1", 0) as peer, HttpClient() as client:
        server = armed(f"https://127.0.0.1:{peer.sockets[0].getsockname()[1]}/mcp", {"X-Key": CANARY})
        async with open_http_wire(server, Notebook(), client) as wire:
            with anyio.fail_after(5), pytest.raises(UpstreamLost, match="TLS") as lost:
                await wire.ask(a_request(1))
        assert not lost.value.may_have_run


@pytest.mark.promise("F07")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"garbage", "application/json"),
        (b'{"jsonrpc": "2.0", "id": 1, "resu', "application/json"),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {"x": "\xff"}}', "application/json"),
        (b'\xef\xbb\xbf{"jsonrpc": "2.0", "id": 1, "result": {}}', "application/json"),
        (b"<html><body>Sorry</body></html>", "text/html"),
        (b"[1, 2]", "application/json"),
        (b'"text"', "application/json"),
        (b'{"jsonrpc": "2.0", "id": 77, "result": {}}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"data: nonsense\n\n", "text/event-stream"),
        (b'data: {"x": "\xff"}\n\n', "text/event-stream"),
    ],
)
async def test_what_is_not_mcp_is_quoted(body: bytes, kind: str) -> None:
    async with wired(whole(body, kind=kind)) as (wire, _):
        error = await failure(wire)
    assert isinstance(error, ProtocolViolation)
    text = body.removeprefix(b"data: ").removesuffix(b"\n\n")[:200].decode("utf-8", "backslashreplace")
    assert ascii(text)[1:40] in error.message
    assert len(error.message) < 900


@pytest.mark.promise("F07")
@pytest.mark.parametrize("reply_bytes", [b"SSH-2.0-OpenSSH_9\r\n\r\n", b"HTTP/1.1 banana\r\n\r\n", b"\0\0\0\0\r\n\r\n"])
async def test_what_is_not_http_is_a_protocol_error(reply_bytes: bytes) -> None:
    async def handle(_: Request, reply: Reply) -> None:
        await reply.send(reply_bytes)
        reply.writer.close()

    async with wired(handle) as (wire, _):
        assert isinstance(await failure(wire), ProtocolViolation)


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_a_request_that_is_only_accepted_is_a_protocol_error(status: int) -> None:
    async with wired(whole(b"", status)) as (wire, _):
        assert str(status) in str(await failure(wire))


def flood(kind: str, piece: bytes, sent: list[int], **headers: str) -> Handler:
    """A gigabyte of this, for as long as the client takes it."""

    async def handle(_: Request, reply: Reply) -> None:
        await reply.open_stream(Content_Type=kind, **headers)
        for _piece in range(1024**3 // len(piece)):
            await reply.chunk(piece)
            sent.append(len(piece))

    return handle


@pytest.mark.promise("F09")
@pytest.mark.parametrize(
    ("kind", "piece"),
    [
        ("application/json", b'"' + b"x" * 65536),
        ("text/event-stream", b"data: " + b"x" * 65530),
        ("text/event-stream", b"data: " + b"x" * 1000 + b"\n"),
        ("text/html", b"<p>" * 20000),
    ],
)
async def test_a_gigabyte_is_cut_at_the_limit(kind: str, piece: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sent: list[int] = []
    async with wired(flood(kind, piece, sent)) as (wire, _):
        error = await failure(wire)
    assert isinstance(error, ProtocolViolation)
    assert str(16 * 1024 * 1024) in error.message
    assert sum(sent) < 48 * 1024 * 1024
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 96 * 1024


@pytest.mark.promise("F09")
async def test_an_answer_of_almost_the_limit_is_read() -> None:
    text = "x" * (BODY_LIMIT - 1000)
    limits = HttpLimits(body=BODY_LIMIT, event=BODY_LIMIT)

    async def streams(request: Request, reply: Reply) -> None:
        await reply.stream(an_event(an_answer(request.message["id"], x=text)))

    async with wired(echo, streams, limits=limits) as (wire, _):
        for id_ in (1, 2):
            assert (await wire.ask(a_request(id_, x=text)))["result"] == {"x": text}


@pytest.mark.promise("G26")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_gzip_bomb_is_refused_at_the_limit(kind: str) -> None:
    packer = zlib.compressobj(1, wbits=31)
    bomb = b"".join(
        [packer.compress(b"data: "), *(packer.compress(bytes(1024**2)) for _ in range(200)), packer.flush()]
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with wired(whole(bomb, kind=kind, Content_Encoding="gzip")) as (wire, _):
        error = await failure(wire)
    assert isinstance(error, ProtocolViolation)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 96 * 1024


async def test_compressed_answers_are_read_and_broken_ones_are_not() -> None:
    good = gzip.compress(b'{"jsonrpc": "2.0", "id": 1, "result": {"ok": true}}')
    async with wired(whole(good, Content_Encoding="gzip"), whole(b"junk", Content_Encoding="gzip")) as (wire, _):
        assert await wire.ask(a_request(1)) == an_answer(1, ok=True)
        assert isinstance(await failure(wire), ProtocolViolation)


@pytest.mark.promise("F17")
@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_wants_other_credentials_says_which(status: int) -> None:
    challenge = 'Bearer resource_metadata="http://127.0.0.1/x", scope="a b"'
    body = f'{{"error": "bad token {CANARY}"}}'.encode()
    async with wired(
        whole(body, status, WWW_Authenticate=challenge),
        whole(body, status),
        whole(b"", status, WWW_Authenticate=f'Bearer error="{CANARY}"'),
    ) as (wire, _):
        with pytest.raises(AuthWanted) as told:
            await wire.ask(a_request(1))
        assert (told.value.challenge, told.value.status) == (challenge, status)
        with pytest.raises(AuthWanted) as told:
            await wire.ask(a_request(1))
        assert "bad token" in str(told.value)
        assert CANARY not in str(told.value)
        error = await failure(wire)
    assert isinstance(error, NeedsAuth)
    assert error.code == "needs_auth"


@pytest.mark.promise("SESSION-LOST")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, b"gone"),
        (404, b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "Session not found"}}'),
        (400, b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "Bad Request: No valid session ID"}}'),
    ],
)
async def test_a_lost_session_is_told_apart(status: int, body: bytes) -> None:
    async with wired(whole(body, status)) as (wire, _):
        error = await failure(wire, LEGACY)
    assert isinstance(error, SessionLost)
    assert not error.may_have_run


@pytest.mark.parametrize("status", [400, 404, 406, 500])
async def test_a_json_rpc_error_is_the_answer_whatever_the_status(status: int) -> None:
    async def refuses(request: Request, reply: Reply) -> None:
        await reply.json(an_error(None if status == 400 else request.message["id"], -32602, "no"), status)

    async with wired(refuses) as (wire, _):
        assert await wire.ask(a_request(1)) == an_error(1, -32602, "no")
        assert await wire.ask(a_request(2)) == an_answer(2)


@pytest.mark.parametrize(
    ("status", "kind", "may_have_run"),
    [(400, StatusRefused, None), (404, StatusRefused, None), (405, StatusRefused, None), (429, UpstreamLost, False),
     (500, UpstreamLost, True), (502, UpstreamLost, True), (503, UpstreamLost, True)],
)  # fmt: skip
async def test_a_status_without_a_message_is_named_and_quoted(
    status: int,
    kind: type[OutfitterError],
    may_have_run: bool | None,
) -> None:
    page = f"<h1>\x1b[31mNo {CANARY}</h1>".encode() + b"y" * 500
    async with wired(whole(page, status, "text/html", Retry_After="7")) as (wire, _):
        error = await failure(wire)
    assert isinstance(error, kind)
    assert f"answered {status}" in error.message
    assert "<h1>\\x1b[31mNo" in error.message
    assert len(error.message) < 300
    assert getattr(error, "may_have_run", None) is may_have_run
    assert ("7" in error.hint) == (status == 429)


@pytest.mark.promise("NO-REDIRECTS", "R04")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(status: int) -> None:
    async with serve(echo) as canary:
        elsewhere = f"http://127.0.0.1:{canary.port}/other?key={CANARY}"
        async with wired(whole(b"", status, Location="/mcp/"), whole(b"", status, Location=elsewhere)) as (wire, peer):
            with pytest.raises(StatusRefused, match=re.escape("'/mcp/'")):
                await wire.ask(a_request(1))
            error = await failure(wire)
        assert f"'http://127.0.0.1:{canary.port}/other'" in error.message
        assert canary.connections == 0
        assert len(peer.requests) == 3


@pytest.mark.promise("NO-REDIRECTS")
async def test_the_listener_follows_no_redirect_either() -> None:
    refused = asyncio.Event()
    async with serve(echo) as canary:

        async def moves(request: Request, reply: Reply) -> None:
            if request.method == "POST":
                await echo(request, reply)
                return
            await reply.whole(b"", 307, Location=canary.url)
            refused.set()

        async with serve(moves) as peer, HttpClient() as client:
            server = armed(peer.url, {"X-Key": CANARY})
            async with open_http_wire(server, Notebook(), client) as wire:
                await wire.listen(LEGACY)
                with anyio.fail_after(5):
                    await refused.wait()
                assert await wire.ask(a_request(1)) == an_answer(1)
        assert canary.connections == 0


async def test_a_notification_that_is_refused_is_an_error() -> None:
    lost = whole(b"", 404)
    async with wired(
        whole(b"", 400), lost, lost, whole(b"", 401), whole(b'{"error": {"code": 1, "message": "no"}}', 400)
    ) as (wire, _):
        for headers, kind in (({}, StatusRefused), ({}, StatusRefused), (LEGACY, SessionLost), ({}, AuthWanted)):
            with pytest.raises(kind):
                await wire.tell(a_note(), headers)
        with pytest.raises(StatusRefused, match="'no'"):
            await wire.tell(a_note())
        await wire.tell(a_note())


@pytest.mark.promise("HTTPS-FOR-SECRETS")
async def test_no_header_is_sent_in_clear_text_to_another_machine() -> None:
    async with serve(echo) as canary, HttpClient() as client:
        server = armed(f"http://public.example:{canary.port}/mcp", {"X-Key": CANARY})
        with pytest.raises(DestinationForbidden, match="clear text") as refused:
            async with open_http_wire(server, Notebook(), client):
                pass
        assert CANARY not in str(refused.value)
        assert canary.connections == 0


async def test_a_server_that_accepts_nobody_is_given_up_after_the_connect_limit() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        port = deaf.getsockname()[1]
        async with HttpClient(limits=HttpLimits(connect=0.2)) as client:
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            async with open_http_wire(armed(f"http://127.0.0.1:{port}/mcp"), Notebook(), client) as wire:
                with anyio.fail_after(5), pytest.raises(UpstreamLost, match=r"within 0\.2 s") as lost:
                    await wire.ask(a_request(1))
            assert not lost.value.may_have_run
            for filler in fillers:
                filler.close()
