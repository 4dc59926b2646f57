"""Pages that follow what happens: a call appears as it is made, figures move, and nothing is loaded again."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.dashboard.kit import Looking, looking, serious
from tests.gateway.kit import Raw

pytestmark = pytest.mark.anyio
RULE = {"tools": ["echo"], "effect": "deny", "arguments": {"/text": ["no*"]}, "reason": "not this word"}


async def _call(one: Looking, agent: str, text: str) -> None:
    _, made, _ = await one.up.api("POST", "/tokens", {"role": "agent", "agent": agent})
    raw = Raw(f"{one.up.url}/mcp/{agent}", one.up.http, {"authorization": f"Bearer {made['token']}"})
    await raw.modern("tools/call", {"name": "x_echo", "arguments": {"text": text}})


async def _mark(one: Looking) -> None:
    """Leave something that a page which is loaded again has not."""
    await one.page.evaluate("window.isSame = true")


@pytest.mark.promise("DASHBOARD-LIVE")
async def test_a_call_appears_while_one_looks_and_is_found_by_filters_and_shown_whole(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        place = Place(tmp_path)
        place.write_catalog(served.url)
        place.write(
            "agents/ruled.json",
            {"name": "ruled", "mcpServers": {"x": {"ref": "x"}}, "rules": [RULE], "records": {"arguments": True}},
        )
        async with looking(place) as one:
            await one.sign_in()
            await one.go("/ui/calls")
            await _mark(one)
            await _call(one, "a", "hello")
            row = one.page.locator("#calls tbody tr", has_text="echo")
            await row.wait_for()
            await _call(one, "ruled", "nothing")
            await one.page.locator("#calls tbody tr", has_text="denied").wait_for()
            assert await row.count() == 2
            assert await one.page.evaluate("window.isSame"), "it was not loaded again"
            assert await one.accessibility() == []

            await one.page.select_option("[name=decision]", "deny")
            await one.page.select_option("[name=range]", "1h")
            await one.page.get_by_role("button", name="Filter").click()
            await one.page.wait_for_url("**decision=deny**")
            assert await row.count() == 1
            assert await one.page.locator("svg rect.errors").count() == 1
            assert "--decision deny --since 1h" in await one.page.inner_text(".command code")
            await row.locator("a").first.click()
            await one.page.get_by_role("heading", name="Timing").wait_for()
            told = await one.text()
            assert "not this word" in told
            assert '"text": "nothing"' in told
            assert await one.accessibility() == []
            assert serious(one.faults) == []


@pytest.mark.promise("DASHBOARD-LIVE")
async def test_home_moves_with_calls_and_changes_and_says_what_needs_somebody(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        place = Place(tmp_path)
        place.write_catalog(served.url)
        place.write("mcp-servers/gone.json", {"name": "gone", "url": "http://127.0.0.1:9/mcp"})
        place.write("agents/b.json", {"name": "b", "mcpServers": {"x": {"ref": "x"}, "gone": {"ref": "gone"}}})
        async with looking(place) as one:
            await one.sign_in()
            await _mark(one)
            await _call(one, "a", "hello")
            await _call(one, "b", "hello")
            await one.page.locator(".card", has_text="Most active").get_by_role("link", name="a", exact=True).wait_for()
            down = one.page.locator(".attention li", has_text="gone")
            await down.wait_for()
            server = {"id": "odd", "url": "http://127.0.0.1:9/mcp", "default_headers": {"X-Key": "${NOBODY_SET_THIS}"}}
            assert (await one.up.api("POST", "/mcp-servers", server))[0] == 201
            await one.page.locator(".attention li", has_text="no agent uses it").wait_for()
            uses = {"name": "c", "mcpServers": {"odd": {"ref": "odd"}}}
            assert (await one.up.api("POST", "/agents", uses))[0] == 201
            await one.page.locator(".attention li", has_text="NOBODY_SET_THIS has no value").wait_for()
            assert await one.page.evaluate("window.isSame")
            await one.page.get_by_role("button", name="Pause").click()
            assert await one.page.inner_text("[data-live-state]") == "paused"
            assert await one.accessibility() == []
            assert serious(one.faults) == []
