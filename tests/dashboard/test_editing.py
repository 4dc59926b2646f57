"""What is made and changed on pages: a server with a header schema, an agent that uses it, tried before it is saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.kit import Place
from tests.dashboard.kit import Looking, looking, serious

pytestmark = pytest.mark.anyio
SECRET = "hush-hush-value-0002"


async def _fill_header(one: Looking, number: int, name: str, default: str = "", *flags: str) -> None:
    if number:
        await one.page.get_by_role("button", name="Add a header").click()
    await one.page.fill(f"[name=h{number}-name]", name)
    await one.page.fill(f"[name=h{number}-default]", default)
    for flag in flags:
        await one.page.check(f"[name=h{number}-{flag}]")


async def _make_server(one: Looking) -> None:
    await one.go("/ui/servers")
    await one.page.get_by_role("link", name="New server").click()
    await one.page.fill("[name=id]", "store")
    await one.page.fill("[name=url]", "http://localhost:9501/mcp")
    await _fill_header(one, 0, "X-Namespace", "default", "required")
    await _fill_header(one, 1, "X-Filters")
    await one.page.select_option("[name=h1-type]", "json")
    await _fill_header(one, 2, "X-Key", SECRET, "sensitive")
    assert await one.accessibility() == []
    await one.page.get_by_role("button", name="Save").click()
    await one.page.wait_for_url("**/ui/servers/store")


@pytest.mark.promise("DASHBOARD-EDITING")
@pytest.mark.promise("D06")
async def test_a_server_with_three_headers_is_made_used_by_an_agent_and_the_picture_changes(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await one.sign_in()
        await _make_server(one)
        assert "required" in await one.text()
        assert SECRET not in await one.page.content()
        _, stored, _ = await one.up.api("GET", "/mcp-servers/store")
        assert list(stored["header_schema"]) == ["X-Namespace", "X-Filters", "X-Key"]
        assert stored["header_schema"]["X-Filters"]["type"] == "json"

        await one.go("/ui/new/agent")
        await one.page.fill("[name=name]", "reader")
        await one.page.check("[name=use-store]")
        await one.page.fill("[name='header-store-X-Namespace']", "project-alpha")
        await one.page.fill("[name='header-store-X-Filters']", '{"department": "engineering"}')
        assert await one.accessibility() == []
        await one.page.get_by_role("button", name="Try it").click()
        preview = await one.page.get_by_role("region", name="What it would get").inner_text()
        assert "overrides registry (store) default" in " ".join(preview.split())
        assert (await one.up.api("GET", "/agents/reader"))[0] == 404, "nothing is saved"
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/agents/reader")
        assert '{"department":"engineering"}' in (await one.text()).replace(": ", ":")
        assert serious(one.faults) == []


@pytest.mark.promise("DASHBOARD-EDITING")
async def test_a_sensitive_default_stays_when_its_field_is_left_empty_and_what_is_wrong_is_said(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await one.sign_in()
        await _make_server(one)
        await one.go("/ui/servers/store/edit")
        assert SECRET not in await one.page.content()
        assert await one.page.get_attribute("[name=h2-default]", "type") == "password"
        await one.page.fill("[name=h0-default]", "another")
        await one.page.fill("[name=timeout]", "soon")
        await one.page.get_by_role("button", name="Save").click()
        assert "is no number of seconds" in await one.page.inner_text("[role=alert]")
        await one.page.fill("[name=timeout]", "30")
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/servers/store")
        _, stored, _ = await one.up.api("GET", "/mcp-servers/store")
        assert (stored["default_headers"]["X-Namespace"], stored["timeout"]) == ("another", 30)
        assert stored["default_headers"]["X-Key"], "it is masked, and there"
        assert SECRET not in str(stored)
        await one.page.get_by_role("button", name="Restore version 1").click()
        await one.page.wait_for_url("**/ui/servers/store")
        assert (await one.up.api("GET", "/mcp-servers/store"))[1]["default_headers"]["X-Namespace"] == "default"


async def test_two_who_edit_the_same_do_not_overwrite_each_other(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await one.sign_in()
        await _make_server(one)
        await one.go("/ui/servers/store/edit")
        _, stored, _ = await one.up.api("GET", "/mcp-servers/store")
        status, _, _ = await one.up.api("PUT", "/mcp-servers/store", {**stored, "name": "Theirs"}, version=1)
        assert status == 200
        await one.page.fill("[name=name]", "Mine")
        await one.page.get_by_role("button", name="Save").click()
        await one.page.locator("[role=alert]").wait_for()
        assert (await one.up.api("GET", "/mcp-servers/store"))[1]["name"] == "Theirs"
        assert await one.page.input_value("[name=name]") == "Mine", "what was typed is not lost"


async def test_a_server_is_deleted_after_a_question_and_not_while_somebody_uses_it(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await one.sign_in()
        await _make_server(one)
        agent = {"name": "reader", "mcpServers": {"store": {"ref": "store"}}}
        assert (await one.up.api("POST", "/agents", agent))[0] == 201
        one.page.on("dialog", lambda dialog: dialog.accept())
        await one.go("/ui/servers/store")
        await one.page.get_by_role("button", name="Delete").click()
        await one.page.locator("[role=alert]").wait_for()
        assert (await one.up.api("DELETE", "/agents/reader", version=1))[0] == 204
        await one.go("/ui/servers/store")
        await one.page.get_by_role("button", name="Delete").click()
        await one.page.wait_for_url("**/ui/servers")
        assert (await one.up.api("GET", "/mcp-servers/store"))[0] == 404


async def test_an_agent_that_somebody_else_has_changed_is_not_overwritten_by_saving_twice(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        assert (await one.up.api("POST", "/agents", {"name": "reader"}))[0] == 201
        await one.sign_in()
        await one.go("/ui/agents/reader/edit")
        status, _, _ = await one.up.api("PUT", "/agents/reader", {"name": "reader", "role": "theirs"}, version=1)
        assert status == 200
        await one.page.fill("[name=role]", "mine")
        for _ in range(2):
            await one.page.get_by_role("button", name="Save").click()
            await one.page.locator("[role=alert]").wait_for()
        assert (await one.up.api("GET", "/agents/reader/document"))[1]["role"] == "theirs"
        assert await one.page.input_value("[name=role]") == "mine", "what was typed is not lost"
