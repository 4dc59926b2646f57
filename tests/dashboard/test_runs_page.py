"""A run from its page: headers by their schema, what it tells as it tells it, the sessions around it, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.kit import Place
from tests.dashboard.kit import Looking, looking, serious

pytestmark = pytest.mark.anyio
SECRET = "hush-hush-value-0004"
AT = "2030-01-31T12:00:00Z"
SCHEMA = {
    "X-Team": {"type": "string", "description": "Whose data"},
    "X-Scope": {"type": "json"},
    "X-Deep": {"type": "boolean"},
    "X-Most": {"type": "number"},
    "X-Key": {"type": "string", "sensitive": True},
    "X-Fixed": {"type": "string", "locked": True},
}


async def _make(one: Looking) -> None:
    defaults = {"X-Team": "red", "X-Deep": "true", "X-Fixed": "always"}
    server = {"id": "store", "url": "http://127.0.0.1:9/mcp", "header_schema": SCHEMA, "default_headers": defaults}
    assert (await one.up.api("POST", "/mcp-servers", server))[0] == 201
    agent = {"name": "worker", "mcpServers": {"docs": {"ref": "store"}}}
    assert (await one.up.api("POST", "/agents", agent))[0] == 201


async def _tell(one: Looking, run: str, first: int, *texts: str) -> None:
    events = [{"type": "text", "at": AT, "data": {"text": text}} for text in texts]
    status, said, _ = await one.up.api("POST", f"/runs/{run}/events", {"attempt": 1, "first": first, "events": events})
    assert status == 204, said


@pytest.mark.promise("DASHBOARD-RUNS")
@pytest.mark.promise("D06")
async def test_a_run_is_started_with_headers_by_schema_and_tells_as_it_goes(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await _make(one)
        await one.sign_in()
        await one.go("/ui/runs")
        await one.page.select_option("[name=agent]", "worker")
        field = one.page.locator
        await field("[name=prompt]").fill("Look around")
        assert await field("[name='header-docs-X-Key']").get_attribute("type") == "password"
        assert await field("[name='header-docs-X-Most']").get_attribute("type") == "number"
        assert await field("[name='header-docs-X-Fixed']").is_disabled()
        assert await field("[name='header-docs-X-Deep']").is_checked()
        assert await one.accessibility() == []
        await field("[name='header-docs-X-Scope']").fill('{"part": ')
        await one.page.get_by_text("This is no JSON").wait_for()
        await field("[name='header-docs-X-Scope']").fill('{"part": 1}')
        await field("[name='header-docs-X-Most']").fill("7")
        await field("[name='header-docs-X-Key']").fill(SECRET)
        await field("[name='header-docs-X-Deep']").uncheck()
        await one.page.get_by_role("button", name="Start", exact=True).click()
        await one.page.wait_for_url("**/ui/runs/run*")
        run = one.page.url.rpartition("/")[2]
        _, stored, _ = await one.up.api("GET", f"/runs/{run}")
        assert stored["mcp_headers"] == {"docs": {"X-Scope": {"part": 1}, "X-Deep": "false", "X-Most": "7"}}
        assert SECRET not in await one.page.content()

        await one.page.evaluate("window.isSame = true")
        assert (await one.up.api("POST", f"/runs/{run}/begin", {"runner": "blue"}))[0] == 200
        await one.page.locator("h1 .state", has_text="running").wait_for()
        await _tell(one, run, 1, "first word", "second word")
        await one.page.get_by_text("second word").first.wait_for()
        child = {"agent_name": "worker", "prompt": "Help", "parent_session_id": stored["session_id"]}
        status, below, _ = await one.up.api("POST", "/runs", child)
        assert status == 201, below
        await _tell(one, run, 3, "third word")
        await one.page.get_by_text("third word").first.wait_for()
        assert await one.page.locator(".tree li").count() == 2
        assert await one.page.evaluate("window.isSame"), "it was not loaded again"
        assert await one.accessibility() == []
        await one.page.get_by_role("button", name="Stop it").click()
        await one.page.locator("h1 .state", has_text="stopping").wait_for()
        ended = {"attempt": 1, "state": "stopped", "result": None, "error": None}
        assert (await one.up.api("POST", f"/runs/{run}/finish", ended))[0] in {200, 204}
        await one.page.locator("h1 .state", has_text="stopped").wait_for()
        assert serious(one.faults) == []


@pytest.mark.promise("DASHBOARD-TRYING")
async def test_a_change_is_tried_at_every_level_before_anything_is_saved(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await _make(one)
        shared = {"name": "shared", "mcpServers": {"docs": {"ref": "store"}}}
        assert (await one.up.api("POST", "/capabilities", shared))[0] == 201
        member = {"name": "member", "capabilities": ["shared"]}
        assert (await one.up.api("POST", "/agents", member))[0] == 201
        before = (await one.up.api("GET", "/changes"))[1]["items"]
        await one.sign_in()
        await one.go("/ui/agents/member")
        await one.page.get_by_role("link", name="Try a change").click()
        seen = ""
        for number, level in enumerate(("mcp-servers/store", "capabilities/shared", "agents/member", "run")):
            await one.page.select_option("[name=level]", level)
            await one.page.fill("[name=header]", "X-Team")
            await one.page.fill("[name=value]", f"blue-{number}")
            await one.page.get_by_role("button", name="Try it").click()
            seen = await one.page.get_by_role("region", name="What would be otherwise").inner_text()
            assert f"blue-{number}" in seen, level
        assert "red (registry store)" in seen
        assert "blue-3 (run" in seen
        assert await one.accessibility() == []
        await one.page.select_option("[name=level]", "run")
        await one.page.fill("[name=header]", "X-Fixed")
        await one.page.fill("[name=value]", "other")
        await one.page.get_by_role("button", name="Try it").click()
        await one.page.locator("[role=alert], .preview").first.wait_for()
        assert (await one.up.api("GET", "/changes"))[1]["items"] == before, "nothing is saved"
        assert [fault for fault in serious(one.faults) if "status of 422" not in fault] == []
