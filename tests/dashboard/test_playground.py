"""The playground: a tool is called as its agent, from a form made of its schema, and the record names who asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.dashboard.kit import looking, serious

pytestmark = pytest.mark.anyio


@pytest.mark.promise("DASHBOARD-PLAYGROUND")
@pytest.mark.promise("D10")
async def test_a_tool_is_called_as_an_agent_and_the_call_appears_with_who_asked(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        place = Place(tmp_path)
        place.write_catalog(served.url)
        rules = [{"tools": ["echo"], "effect": "deny", "arguments": {"/text": ["no*"]}, "reason": "not this word"}]
        place.write("agents/ruled.json", {"name": "ruled", "mcpServers": {"x": {"ref": "x"}}, "rules": rules})
        async with looking(place) as one:
            await one.sign_in()
            await one.go("/ui/playground")
            await one.page.select_option("[name=agent]", "a")
            await one.page.locator("[name=tool]").wait_for()
            await one.page.select_option("[name=tool]", "x_echo")
            await one.page.locator("schema-form input").first.fill("hello there")
            assert json.loads(await one.page.input_value("#arguments")) == {"text": "hello there"}
            assert await one.accessibility() == []
            await one.page.get_by_role("button", name="Call it").click()
            assert "hello there" in await one.page.get_by_role("region", name="Answer").inner_text()
            await one.go("/ui/playground?agent=ruled&tool=x_echo")
            await one.page.fill("#arguments", '{"text": "nothing"}')
            await one.page.get_by_role("button", name="Call it").click()
            assert "not this word" in await one.page.get_by_role("region", name="Answer").inner_text()

            async def calls() -> list[tuple[str, str]]:
                _, found, _ = await one.up.api("GET", "/calls?order=newest")
                return [(call["agent"], call["outcome"]) for call in found["items"]]

            seen: list[tuple[str, str]] = []
            while len(seen) < 2:
                seen = await calls()
            assert sorted(seen) == [("a", "done"), ("ruled", "denied")]
            _, found, _ = await one.up.api("GET", "/calls?order=newest&agent=a")
            _, tokens, _ = await one.up.api("GET", "/tokens")
            used = next(token for token in tokens["items"] if token["id"] == found["items"][0]["token_id"])
            assert used["label"] == "playground of first admin#first"
            assert used["revoked_at"]
            await one.go("/ui/")
            in_use = await one.page.get_by_role("region", name="Servers in use").inner_text()
            assert "ready" in in_use
            assert "100.0 %" in in_use
            await one.go("/ui/calls")
            assert "echo" in await one.text()
            await one.page.locator("tbody a").first.click()
            assert "Decision" in await one.text()
            assert serious(one.faults) == []


async def test_somebody_who_may_not_issue_tokens_cannot_play_as_an_agent(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog("http://127.0.0.1:1/mcp")
    async with looking(place) as one:
        _, issued, _ = await one.up.api("POST", "/tokens", {"role": "viewer"})
        await one.sign_in(issued["token"])
        await one.go("/ui/playground?agent=a")
        assert "may not issue, list and revoke tokens" in await one.page.inner_text("[role=alert]")
