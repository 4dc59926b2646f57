"""The official SDK's client is content with a scripted server: every transport, both eras."""

from __future__ import annotations

import anyio
import pytest
from mcp import MCPError, types
from mcp.client.session import ClientRequestContext
from mcp.shared.exceptions import MCPDeprecationWarning

from outfitter.testing import BUILT_IN_TOOLS, Script, ScriptedTool
from tests.testing.clients import ERAS, LEGACY, MODERN, TRANSPORTS, opened

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.promise("TESTING-SERVERS"),
    pytest.mark.parametrize("transport", TRANSPORTS),
    pytest.mark.parametrize("era", ERAS),
]
MODE = {"legacy": "legacy", "modern": "auto"}


async def test_the_era_is_negotiated_with_a_server_that_speaks_one_or_both(transport: str, era: str) -> None:
    wanted = {"legacy": LEGACY, "modern": MODERN}[era]
    for script in (Script(eras=(era,)), Script()):  # pyright: ignore[reportArgumentType]
        mode = "auto" if len(script.eras) == 1 else MODE[era]
        async with opened(script, transport, mode=mode) as client:
            assert client.protocol_version == wanted
            assert client.server_info is not None
            assert client.server_info.name == script.name
            assert client.instructions == script.instructions


async def test_tools_are_listed_page_by_page(transport: str, era: str) -> None:
    async with opened(Script(page_size=4), transport, mode=MODE[era]) as client:
        names: list[str] = []
        pages, cursor = 0, None
        while pages == 0 or cursor is not None:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            pages, cursor = pages + 1, page.next_cursor
    assert names == [tool.name for tool in BUILT_IN_TOOLS]
    assert pages == 4


async def test_tools_answer_as_they_say(transport: str, era: str) -> None:
    fixed = ScriptedTool("fixed", kind="answer", result={"content": [{"type": "text", "text": "42"}]})
    async with opened(Script(tools=(*BUILT_IN_TOOLS, fixed)), transport, mode=MODE[era]) as client:
        assert (await client.call_tool("echo", {"text": "ä"})).structured_content == {"text": "ä"}
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
        assert (await client.call_tool("vendor", {"x": 1})).structured_content == {"x": 1}
        assert (await client.call_tool("fixed", {})).content == [types.TextContent(type="text", text="42")]
        big = (await client.call_tool("big", {"size": 100_000})).content[0]
        assert isinstance(big, types.TextContent)
        assert len(big.text) == 100_000
        failed = await client.call_tool("fail", {"message": "no luck"})
        assert failed.is_error
        assert failed.content == [types.TextContent(type="text", text="no luck")]


async def test_requests_fail_with_the_error_that_was_asked_for(transport: str, era: str) -> None:
    async with opened(Script(), transport, mode=MODE[era]) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("rpc_error", {"code": -7, "message": "no", "data": {"why": "test"}})
        assert (refused.value.code, refused.value.error.message) == (-7, "no")
        assert refused.value.error.data == {"why": "test"}
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("missing", {})
        with pytest.raises(MCPError, match="no such resource") as missing:
            await client.read_resource("test://missing")
        assert missing.value.code == {"legacy": -32002, "modern": -32602}[era]


async def test_resources_prompts_and_completions_are_served(transport: str, era: str) -> None:
    async with opened(Script(page_size=1), transport, mode=MODE[era]) as client:
        first = await client.list_resources()
        assert [item.uri for item in first.resources] == ["test://greeting"]
        second = await client.list_resources(cursor=first.next_cursor)
        assert [item.uri for item in second.resources] == ["test://numbers"]
        assert second.next_cursor is None
        assert len((await client.list_resource_templates()).resource_templates) == 1
        read = (await client.read_resource("test://greeting")).contents[0]
        assert isinstance(read, types.TextResourceContents)
        assert read.text == "hello"
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
        said = (await client.get_prompt("greet", {"who": "you"})).messages[0].content
        assert isinstance(said, types.TextContent)
        assert said.text == "Say hello to you."
        reference = types.PromptReference(type="ref/prompt", name="greet")
        found = await client.complete(reference, {"name": "who", "value": "wor"})
        assert found.completion.values == ["world", "work"]


async def test_progress_is_reported_step_by_step(transport: str, era: str) -> None:
    steps: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert message is None
        steps.append((progress, total))

    async with opened(Script(), transport, mode=MODE[era]) as client:
        result = await client.call_tool("progress", {"n": 3}, progress_callback=note)
    assert result.structured_content == {"steps": 3}
    assert steps == [(1, 3), (2, 3), (3, 3)]


async def test_the_client_is_asked_in_rounds(transport: str, era: str) -> None:
    asked: list[str] = []

    async def fill(_context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"name": f"Ada {len(asked)}"})

    async with opened(Script(), transport, mode=MODE[era], elicitation_callback=fill) as client:
        result = await client.call_tool("ask", {"rounds": 2})
    answers = [{"action": "accept", "content": {"name": f"Ada {n}"}} for n in (1, 2)]
    assert result.structured_content == {"answers": answers}
    assert len(asked) == 2


async def test_a_client_that_cannot_be_asked_is_told(transport: str, era: str) -> None:
    async with opened(Script(), transport, mode=MODE[era]) as client:
        if era == "legacy":
            assert (await client.call_tool("ask", {"what": "roots"})).is_error
            return
        with pytest.raises(MCPError) as refused:
            await client.call_tool("ask", {"what": "roots"})
        assert refused.value.code == -32021


async def test_a_cancelled_call_is_cancelled_at_the_server(transport: str, era: str) -> None:
    async with opened(Script(), transport, mode=MODE[era]) as client:
        started = anyio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            assert (progress, total, message) == (0, 1, None)
            started.set()

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: client.call_tool("sleep", {"seconds": 600}, progress_callback=note))
            await started.wait()
            group.cancel_scope.cancel()
        counts = (await client.call_tool("stats", {"until_cancelled": 1})).structured_content
        assert counts["cancelled"] == 1
        assert (await client.call_tool("echo", {"text": "next"})).structured_content == {"text": "next"}


async def test_a_changed_list_is_announced(transport: str, era: str) -> None:
    heard = anyio.Event()

    async def note(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            heard.set()

    async with opened(Script(), transport, mode=MODE[era], message_handler=note) as client:
        before = len((await client.list_tools()).tools)
        if era == "modern":
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("touch", {})
                await anext(events)
        else:
            await client.call_tool("stats", {"until_listeners": 1})
            await client.call_tool("touch", {})
            await heard.wait()
        assert len((await client.list_tools()).tools) == before + 1


async def test_logs_come_at_the_wanted_level(transport: str, era: str) -> None:
    lines: list[object] = []

    async def note(params: types.LoggingMessageNotificationParams) -> None:
        lines.append(params.data)

    options = {"mode": MODE[era], "logging_callback": note, "log_level": "warning" if era == "modern" else None}
    async with opened(Script(), transport, **options) as client:
        if era == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level("warning")  # pyright: ignore[reportDeprecated]
        await client.call_tool("log", {"level": "info", "text": "quiet"})
        await client.call_tool("log", {"level": "error", "text": "loud"})
    assert lines == ["loud"]


async def test_the_surroundings_of_a_call_are_shown(transport: str, era: str) -> None:
    async with opened(Script(), transport, mode=MODE[era]) as client:
        seen = (await client.call_tool("headers", {}, meta={"com.example/trace": "1"})).structured_content
    assert seen["meta"]["com.example/trace"] == "1"
    if transport == "stdio":
        assert "PATH" in seen["environment"]
    else:
        assert seen["headers"]["host"].startswith("127.0.0.1:")


async def test_an_argument_that_travels_as_a_header_arrives(transport: str, era: str) -> None:
    async with opened(Script(), transport, mode=MODE[era]) as client:
        await client.list_tools()
        assert (await client.call_tool("region", {"region": "Zürich"})).structured_content == {"region": "Zürich"}
