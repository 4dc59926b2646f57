"""What a client gets at an endpoint: exactly its agent's servers and tools, in either era."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal

import anyio
import pytest

from outfitter.catalog import MCPServer, ToolFilter
from outfitter.testing import Script, ScriptedTool, SessionLoss, When, serve_http, stdio_server
from outfitter.upstream import Message
from tests.gateway.kit import agent, client, gateway, raw
from tests.upstream.stage import QUICK, Answering

pytestmark = pytest.mark.anyio
ERAS: tuple[Literal["legacy", "modern"], ...] = ("legacy", "modern")


def text_of(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


@pytest.mark.promise("GW-ENDPOINT")
async def test_the_tools_of_all_servers_stand_under_prefixed_names() -> None:
    async with serve_http(Script("one")) as one, serve_http(Script("two")) as two:
        both = agent("a", MCPServer.http("one", one.url), MCPServer.http("two", two.url))
        async with gateway(both) as running, client(running.url("a")) as connection:
            names = [tool["name"] for tool in await connection.use(lambda link: link.list_tools())]
            assert "one_echo" in names
            assert "two_echo" in names
            result = await connection.use(lambda link: link.call_tool("two_echo", {"text": "hi"}))
            assert "hi" in text_of(result)
            assert one.ledger.requests["tools/call"] == 0


@pytest.mark.promise("GW-ERAS")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_either_era_of_client_reaches_either_era_of_server(
    era: Literal["legacy", "modern"], transport: str
) -> None:
    script = Script("x", eras=(era,))
    async with serve_http(script) as served:
        server = stdio_server(script) if transport == "stdio" else MCPServer.http("x", served.url)
        async with gateway(agent("a", server)) as running, raw(running.url("a", "x")) as http:
            _, modern = await http.modern("tools/call", {"name": "echo", "arguments": {"text": "new"}})
            assert "new" in text_of(modern["result"])
            assert modern["result"]["resultType"] == "complete"
            await http.handshake()
            _, legacy = await http.legacy("tools/call", {"name": "echo", "arguments": {"text": "old"}})
            assert "old" in text_of(legacy["result"])
            assert "resultType" not in legacy["result"]


@pytest.mark.promise("GW-ENDPOINT")
async def test_one_server_alone_shows_original_names() -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        client(running.url("a", "x")) as connection,
    ):
        names = [tool["name"] for tool in await connection.use(lambda link: link.list_tools())]
        assert "echo" in names


@pytest.mark.promise("G06")
@pytest.mark.parametrize("name", ["x_add", "X_ECHO", "echo", "x_ech\u043e", "search_tools", "nowhere"])
async def test_a_hidden_tool_is_answered_like_one_that_does_not_exist(name: str) -> None:
    async with serve_http(Script("x")) as served:
        hidden = agent("a", MCPServer.http("x", served.url), x=ToolFilter(include=("echo",)))
        async with gateway(hidden) as running, raw(running.url("a")) as http:
            await http.handshake()
            _, answer = await http.legacy("tools/call", {"name": name, "arguments": {"a": 1, "b": 2}})
            assert answer["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
            assert served.ledger.requests["tools/call"] == 0


@pytest.mark.promise("GW-ERAS")
async def test_resources_prompts_and_completions_pass() -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        _, listed = await http.modern("resources/list")
        assert [item["uri"] for item in listed["result"]["resources"]] == ["test://greeting", "test://numbers"]
        assert listed["result"]["cacheScope"] == "private"
        _, read = await http.modern("resources/read", {"uri": "test://greeting"})
        assert read["result"]["contents"][0]["text"] == "hello"
        _, prompts = await http.modern("prompts/list")
        assert [prompt["name"] for prompt in prompts["result"]["prompts"]] == ["x_greet"]
        _, prompt = await http.modern("prompts/get", {"name": "x_greet", "arguments": {"who": "you"}})
        assert "you" in prompt["result"]["messages"][0]["content"]["text"]
        reference = {"type": "ref/prompt", "name": "x_greet"}
        _, done = await http.modern(
            "completion/complete", {"ref": reference, "argument": {"name": "who", "value": "wo"}}
        )
        assert done["result"]["completion"]["values"] == ["world", "work"]


@pytest.mark.promise("GW-QUESTIONS")
@pytest.mark.parametrize("upstream", ERAS)
async def test_questions_of_a_server_reach_the_client(upstream: Literal["legacy", "modern"]) -> None:
    peer = Answering([])
    async with (
        serve_http(Script("x", eras=(upstream,))) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        client(running.url("a", "x"), peer=peer) as connection,
    ):
        result = await connection.use(lambda link: link.call_tool("ask", {"what": "elicitation"}))
        assert "yes" in text_of(result)
    assert peer.asked == ["elicitation/create"]


@pytest.mark.promise("F14")
async def test_a_dead_server_does_not_take_the_others_down() -> None:
    async with serve_http(Script("x")) as served:
        dead = MCPServer.http("dead", "http://127.0.0.1:9/mcp")
        both = agent("a", dead, MCPServer.http("x", served.url))
        async with gateway(both) as running, client(running.url("a")) as connection:
            names = [tool["name"] for tool in await connection.use(lambda link: link.list_tools())]
            assert "x_echo" in names
            assert not any(name.startswith("dead") for name in names)


@pytest.mark.promise("G09")
async def test_a_batch_is_refused_whole() -> None:
    async with (
        serve_http(Script("x")) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        await http.handshake()
        call: Message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "x_echo", "arguments": {}},
        }
        status, answer, _ = await http.post([call, {**call, "id": 2}])
        assert (status, answer["error"]["code"]) == (400, -32600)
        assert served.ledger.requests["tools/call"] == 0


@pytest.mark.promise("G10")
async def test_a_visit_that_was_never_begun_is_not_found() -> None:
    async with gateway(agent("a")) as running, raw(running.url("a")) as http:
        http.headers["mcp-session-id"] = "never-issued"
        status, answer = await http.legacy("tools/list")
        assert status == 404
        assert "tools" not in str(answer)


@pytest.mark.promise("G31")
@pytest.mark.parametrize("query", ["?tools=*", "?tags=not%20x", "?filter=", "?include=add"])
async def test_nothing_in_the_address_widens_what_an_agent_has(query: str) -> None:
    async with serve_http(Script("x")) as served:
        narrow = agent("a", MCPServer.http("x", served.url), x=ToolFilter(include=("echo",)))
        async with gateway(narrow) as running, raw(running.url("a") + query) as http:
            _, listed = await http.modern("tools/list")
            assert [tool["name"] for tool in listed["result"]["tools"]] == ["x_echo"]


@pytest.mark.promise("G23")
async def test_two_agents_never_see_each_others_lists() -> None:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url)
        narrow = agent("narrow", server, x=ToolFilter(include=("echo",)))
        async with (
            gateway(agent("wide", server), narrow) as running,
            raw(running.url("wide")) as wide,
            raw(running.url("narrow")) as tight,
        ):
            for _ in range(2):
                _, all_of_them = await wide.modern("tools/list")
                _, one_of_them = await tight.modern("tools/list")
                assert len(all_of_them["result"]["tools"]) > 1
                assert [tool["name"] for tool in one_of_them["result"]["tools"]] == ["x_echo"]
                assert {all_of_them["result"]["cacheScope"], one_of_them["result"]["cacheScope"]} == {"private"}


@pytest.mark.promise("G15")
async def test_names_that_read_alike_reach_their_own_server() -> None:
    first, second = ScriptedTool("b_c", kind="echo"), ScriptedTool("c", kind="echo")
    async with (
        serve_http(Script("a", tools=(first,))) as one,
        serve_http(Script("a_b", tools=(second,))) as two,
    ):
        both = agent("z", MCPServer.http("a", one.url), MCPServer.http("a_b", two.url))
        async with gateway(both) as running, raw(running.url("z")) as http:
            _, listed = await http.modern("tools/list")
            names = [tool["name"] for tool in listed["result"]["tools"]]
            assert len(set(names)) == 2
            for name in names:
                _, answer = await http.modern("tools/call", {"name": name, "arguments": {"text": "hi"}})
                assert "hi" in str(answer["result"])
            assert one.ledger.requests["tools/call"] == two.ledger.requests["tools/call"] == 1


@pytest.mark.promise("G14")
async def test_a_server_that_comes_later_takes_no_name_away() -> None:
    search = ScriptedTool("search", kind="echo")
    async with serve_http(Script("x", tools=(search,))) as x, serve_http(Script("y", tools=(search,))) as y:
        servers = (MCPServer.http("x", x.url), MCPServer.http("y", y.url))
        for chosen in (servers[:1], servers, servers[::-1]):
            async with gateway(agent("a", *chosen)) as running, raw(running.url("a")) as http:
                before = x.ledger.requests["tools/call"]
                await http.modern("tools/call", {"name": "x_search", "arguments": {}})
                assert x.ledger.requests["tools/call"] == before + 1
        assert y.ledger.requests["tools/call"] == 0


@pytest.mark.promise("H18")
async def test_arguments_never_become_headers() -> None:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url, headers={"X-Api-Key": "ours"})
        async with gateway(agent("a", server)) as running, raw(running.url("a", "x")) as http:
            await http.handshake()
            sent: list[Any] = []
            spoiled = {"headers": {"X-Admin": "1"}, "_meta": {"x": 1}, "Authorization": "Bearer stolen"}
            for arguments in ({}, {}, spoiled):  # the first call goes another way than those that follow
                _, answer = await http.legacy("tools/call", {"name": "headers", "arguments": arguments})
                told = answer["result"]["structuredContent"]["headers"]
                sent.append({name: value for name, value in told.items() if name.lower() != "content-length"})
            assert sent[1] == sent[2]
            assert "stolen" not in str(sent)


@pytest.mark.promise("F14")
@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_comes_back_is_found_without_a_restart(era: Literal["legacy", "modern"]) -> None:
    async with serve_http(Script("x")) as steady:
        async with serve_http(Script("y")) as gone:
            port = gone.port
        both = agent("a", MCPServer.http("x", steady.url), MCPServer.http("y", f"http://127.0.0.1:{port}/mcp"))
        patience = replace(QUICK, cooldown=0.05)
        async with gateway(both, patience=patience) as running, raw(running.url("a")) as http:
            if era == "legacy":
                await http.handshake()
            ask = http.legacy if era == "legacy" else http.modern
            names = await names_of(ask)
            assert "x_echo" in names
            assert "y_echo" not in names
            _, call = await ask("tools/call", {"name": "x_echo", "arguments": {"text": "hi"}})
            assert "hi" in str(call)
            async with serve_http(Script("y"), port=port):
                with anyio.fail_after(20):
                    while "y_echo" not in await names_of(ask):  # noqa: ASYNC110 - it rests for a while
                        await anyio.sleep(0.05)


async def names_of(ask: Callable[[str], Awaitable[tuple[int, Any]]]) -> list[str]:
    _, listed = await ask("tools/list")
    return [tool["name"] for tool in listed["result"]["tools"]]


@pytest.mark.promise("F15")
async def test_with_every_server_down_the_list_is_empty_and_says_why() -> None:
    dead = agent("a", MCPServer.http("x", "http://127.0.0.1:9/mcp"), MCPServer.http("y", "http://127.0.0.1:9/mcp2"))
    async with gateway(dead) as running, raw(running.url("a")) as http:
        _, listed = await http.modern("tools/list")
        assert listed["result"]["tools"] == []
        _, told = await http.modern("server/discover")
        assert "Not available now: x, y." in told["result"]["instructions"]


@pytest.mark.promise("F13")
async def test_a_server_that_forgets_its_sessions_is_met_anew() -> None:
    lost = (SessionLoss(When(method="tools/call", times=1)),)
    async with (
        serve_http(Script("x", eras=("legacy",), faults=lost)) as served,
        gateway(agent("a", MCPServer.http("x", served.url))) as running,
        raw(running.url("a")) as http,
    ):
        for _ in range(2):
            _, answer = await http.modern("tools/call", {"name": "x_echo", "arguments": {"text": "hi"}})
            assert "hi" in str(answer["result"])
        assert served.ledger.requests["initialize"] == 2
