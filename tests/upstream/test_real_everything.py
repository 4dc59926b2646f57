"""The link kit against the reference server that can do everything, on all three transports."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.errors import UpstreamTimeout
from outfitter.upstream import Connection, Era, Message, Peer, Pool
from tests.upstream.real import (
    PATIENT,
    call,
    call_for_text,
    everything,
    everything_on_a_port,
    npm_server,
)
from tests.upstream.stage import QUICK, armed

pytestmark = pytest.mark.anyio
on_every_transport = pytest.mark.parametrize(
    "transport",
    [
        pytest.param("stdio", marks=pytest.mark.promise("REAL-EVERYTHING-STDIO")),
        pytest.param("sse", marks=pytest.mark.promise("REAL-EVERYTHING-SSE")),
        pytest.param("http", marks=pytest.mark.promise("REAL-EVERYTHING-HTTP")),
    ],
)
# What the allow-list lets through from our own environment, where it is set.
INHERITED = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR"}


class Everyone:
    """A peer that can answer all that a client may be asked, and remembers what it was."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Message]] = []
        self.told_roots = anyio.Event()

    @property
    def capabilities(self) -> Message:
        return {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}

    async def respond(self, method: str, params: Message) -> Message:
        self.asked.append((method, params))
        if method == "elicitation/create":
            return {"action": "accept", "content": {"name": "Ada", "check": True}}
        if method == "roots/list":
            self.told_roots.set()
            return {"roots": [{"uri": "file:///srv/made-up", "name": "made up"}]}
        return {"role": "assistant", "content": {"type": "text", "text": "a sample"}, "model": "none"}


@dataclass(slots=True)
class Noticing:
    """Whoever hears what a server says by itself, and can wait for it."""

    heard: list[Message] = field(default_factory=list[Message])
    _more: anyio.Event = field(default_factory=anyio.Event)

    def __call__(self, message: Message) -> None:
        self.heard.append(message)
        self._more.set()

    async def wait_for(self, is_it: Callable[[Message], bool]) -> Message:
        with anyio.fail_after(30):
            while True:
                found = next((message for message in self.heard if is_it(message)), None)
                if found is not None:
                    return found
                self._more = anyio.Event()
                await self._more.wait()


@asynccontextmanager
async def using_everything(
    transport: str, *, peer: Peer | None = None, on_notice: Noticing | None = None
) -> AsyncGenerator[Connection]:
    async with everything(transport) as server, Pool(patience=QUICK) as pool:
        yield pool.connect(armed(server), peer=peer, on_notice=on_notice)


@on_every_transport
async def test_it_echoes_adds_and_answers_with_structure(transport: str) -> None:
    async with using_everything(transport) as connection:
        assert await call_for_text(connection, "echo", message="héllo ✓") == "Echo: héllo ✓"
        assert "42" in await call_for_text(connection, "get-sum", a=40, b=2)
        weather = await call(connection, "get-structured-content", location="Chicago")
        assert weather["structuredContent"]["temperature"] == 36
        assert connection.agreement is not None
        assert (connection.agreement.era, connection.agreement.version) == (Era.LEGACY, "2025-11-25")
        assert connection.agreement.instructions


@on_every_transport
async def test_a_wrong_argument_is_told_and_hurts_nothing(transport: str) -> None:
    async with using_everything(transport) as connection:
        wrong = await call(connection, "get-sum", a="many")
        assert wrong["isError"] is True
        assert await call_for_text(connection, "echo", message="x") == "Echo: x"


@on_every_transport
async def test_progress_comes_in_its_order(transport: str) -> None:
    seen: list[Message] = []
    arguments = {"duration": 0.5, "steps": 5}
    async with using_everything(transport) as connection:
        await connection.use(
            lambda link: link.call_tool("trigger-long-running-operation", arguments, on_progress=seen.append)
        )
    assert [(step["progress"], step["total"]) for step in seen] == [(number, 5) for number in range(1, 6)]


@on_every_transport
async def test_resources_templates_prompts_and_completion_come_through(transport: str) -> None:
    async with using_everything(transport) as connection:
        resources = await connection.use(lambda link: link.list_all("resources/list", "resources"))
        templates = await connection.use(lambda link: link.list_all("resources/templates/list", "resourceTemplates"))
        prompts = await connection.use(lambda link: link.list_all("prompts/list", "prompts"))
        assert (len(resources), len(templates), len(prompts)) == (7, 2, 4)
        read = await connection.use(lambda link: link.request("resources/read", {"uri": resources[0]["uri"]}))
        assert "Everything" in read["contents"][0]["text"]
        given = {"name": "args-prompt", "arguments": {"city": "Paris", "state": "Texas"}}
        assert "Paris, Texas" in str(await connection.use(lambda link: link.request("prompts/get", given)))
        asked = {
            "ref": {"type": "ref/prompt", "name": "completable-prompt"},
            "argument": {"name": "name", "value": "A"},
            "context": {"arguments": {"department": "Engineering"}},
        }
        completed = await connection.use(lambda link: link.request("completion/complete", asked))
        assert completed["completion"]["values"] == ["Alice"]


@on_every_transport
async def test_what_we_can_answer_decides_which_tools_there_are(transport: str) -> None:
    async with using_everything(transport) as connection:
        assert len(await connection.use(lambda link: link.list_tools())) == 13
    async with using_everything(transport, peer=Everyone()) as connection:
        assert len(await connection.use(lambda link: link.list_tools())) == 17


@on_every_transport
async def test_what_it_asks_in_a_call_is_answered_by_the_peer(transport: str) -> None:
    peer = Everyone()
    async with using_everything(transport, peer=peer) as connection:
        assert "Ada" in await call_for_text(connection, "trigger-elicitation-request")
        assert "a sample" in await call_for_text(connection, "trigger-sampling-request", prompt="say", maxTokens=5)
    asked = dict(peer.asked)
    assert "name" in asked["elicitation/create"]["requestedSchema"]["properties"]
    assert asked["sampling/createMessage"]["maxTokens"] == 5


@on_every_transport
async def test_what_it_asks_between_calls_is_answered_by_the_peer(transport: str) -> None:
    peer = Everyone()
    async with using_everything(transport, peer=peer) as connection:
        await connection.use(lambda link: link.list_tools())
        with anyio.fail_after(30):
            await peer.told_roots.wait()
        assert "file:///srv/made-up" in await call_for_text(connection, "get-roots-list")


@on_every_transport
async def test_what_it_says_by_itself_is_heard(transport: str) -> None:
    ear, uri = Noticing(), "demo://resource/dynamic/text/1"
    async with using_everything(transport, on_notice=ear) as connection:
        await connection.use(lambda link: link.request("resources/subscribe", {"uri": uri}))
        await call_for_text(connection, "toggle-subscriber-updates")
        heard = await ear.wait_for(lambda message: message["method"] == "notifications/resources/updated")
        assert heard["params"] == {"uri": uri}


@on_every_transport
async def test_many_calls_at_once_get_their_own_answers(transport: str) -> None:
    async with using_everything(transport) as connection:

        async def one(number: int) -> None:
            assert await call_for_text(connection, "echo", message=f"<{number}>") == f"Echo: <{number}>"

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(one, number)


@on_every_transport
async def test_a_call_that_takes_too_long_is_given_up_and_the_next_one_works(transport: str) -> None:
    short = type(PATIENT)(call=0.3, total=0.3)
    async with using_everything(transport) as connection:
        await connection.use(lambda link: link.list_tools())
        with pytest.raises(UpstreamTimeout):
            await connection.use(
                lambda link: link.call_tool(
                    "trigger-long-running-operation", {"duration": 20, "steps": 2}, limits=short
                )
            )
        assert await call_for_text(connection, "echo", message="next") == "Echo: next"


@pytest.mark.promise("REAL-ENVIRONMENT")
async def test_a_real_process_sees_the_allow_list_and_what_was_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTFITTER_TEST_PRIVATE", "not for servers")
    async with Pool(patience=QUICK) as pool:
        connection = pool.connect(armed(npm_server("everything", env={"DECLARED": "yes"})))
        seen = json.loads(await call_for_text(connection, "get-env"))
    assert seen["DECLARED"] == "yes"
    assert set(seen) <= INHERITED | {"DECLARED"}


@pytest.mark.promise("REAL-RESTART")
@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_a_server_that_comes_back_on_its_port_is_used_again(transport: str) -> None:
    mode, make, path = (
        ("sse", MCPServer.sse, "sse") if transport == "sse" else ("streamableHttp", MCPServer.http, "mcp")
    )
    async with Pool(patience=QUICK) as pool:
        async with everything_on_a_port(mode) as port:
            connection = pool.connect(armed(make("everything", f"http://127.0.0.1:{port}/{path}", limits=PATIENT)))
            assert await call_for_text(connection, "echo", message="one") == "Echo: one"
        async with everything_on_a_port(mode, port):
            assert await call_for_text(connection, "echo", message="two") == "Echo: two"
