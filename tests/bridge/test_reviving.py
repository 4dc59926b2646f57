"""A server that could not be connected beside others comes back by itself, and its tools with it."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from outfitter.bridge import McpConnectionPool, McpIntegrationSection, ToolListChanged
from outfitter.catalog import MCPServer
from outfitter.session import Session
from outfitter.testing import Script, serve_http
from outfitter.tools import ToolContext, aexecute
from outfitter.upstream import Pool
from tests.bridge.kit import DEAD, Waiting, scripted
from tests.gateway.watched import until
from tests.upstream.stage import QUICK

FALLBACK = "use the `gh` CLI"


def short_pool() -> McpConnectionPool:
    return McpConnectionPool(make_pool=lambda: Pool(patience=replace(QUICK, cooldown=0.1)))


@pytest.mark.anyio
@pytest.mark.promise("DEGRADE-START")
async def test_a_server_that_was_down_at_the_start_brings_its_tools_when_it_is_there() -> None:
    session = Session()
    changes = Waiting(session, ToolListChanged)
    async with serve_http(Script("late")) as gone:
        port = gone.port
    late = MCPServer.http("late", f"http://127.0.0.1:{port}/mcp")
    async with short_pool() as pool:
        section = McpIntegrationSection(servers=[late, DEAD, scripted("one")], session=session, pool=pool)
        await section.aconnect()
        assert set(section.failures) == {"late", "dead"}
        async with serve_http(Script("late"), port=port):
            await until(lambda: "late" not in section.failures)
            (echo,) = (tool for tool in section.tools() if tool.name == "late_echo")
            result = await aexecute(echo, {"text": "hi"}, context=ToolContext(session=session))
            assert result.success
            assert set(section.failures) == {"dead"}
            assert {connection.name for connection in pool.connections()} == {"late", "one"}
            await until(lambda: [told.server for told in changes.events] == ["late"])
            await section.adisconnect()
            assert pool.connections() == ()


@pytest.mark.anyio
@pytest.mark.promise("DEGRADE-TOLD")
async def test_a_bridged_call_of_a_server_that_went_away_is_told_with_its_fallback() -> None:
    async with McpConnectionPool(make_pool=lambda: Pool(patience=QUICK)) as pool:
        async with serve_http(Script("gh")) as served:
            server = MCPServer.http("gh", served.url, fallback=FALLBACK)
            section = McpIntegrationSection(servers=[server], session=Session(), pool=pool)
            await section.aconnect()
            (echo,) = (tool for tool in section.tools() if tool.name == "gh_echo")
            assert (await aexecute(echo, {"text": "hi"})).success
        with anyio.fail_after(60):
            while (result := await aexecute(echo, {"text": "hi"})).code != "upstream_down":
                assert f"Instead: {FALLBACK}." in result.message
        assert not result.success
        assert f"Instead: {FALLBACK}. It will be tried again in " in result.message
