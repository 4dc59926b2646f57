"""Servers by the form: how they sign in, what their process gets, and whether they answer with which tools."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.dashboard.kit import Looking, looking, serious

pytestmark = pytest.mark.anyio
SECRET = "hush-hush-value-0004"


async def _make_program(one: Looking) -> None:
    await one.go("/ui/new/server")
    await one.page.fill("[name=id]", "program")
    await one.page.select_option("[name=type]", "stdio")
    await one.page.fill("[name=command]", sys.executable)
    await one.page.fill("[name=e0-name]", "MODE")
    await one.page.fill("[name=e0-value]", SECRET)
    await one.page.get_by_role("button", name="Add a variable").click()
    await one.page.fill("[name=e1-name]", "HOME")
    await one.page.fill("[name=e1-value]", "${HOME}")
    assert await one.accessibility() == []
    await one.page.get_by_role("button", name="Save").click()
    await one.page.wait_for_url("**/ui/servers/program")


@pytest.mark.promise("DASHBOARD-SERVER-TEST")
async def test_a_server_is_tried_shows_its_tools_with_their_schemas_and_they_are_kept(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        place = Place(tmp_path)
        place.write_catalog(served.url)
        async with looking(place) as one:
            assert (await one.up.api("POST", "/mcp-servers", {"id": "gone", "url": "http://127.0.0.1:9/mcp"}))[0] == 201
            await one.sign_in()
            await one.go("/ui/servers/x")
            await one.page.get_by_role("button", name="Test the connection").click()
            told = one.page.get_by_role("region", name="Test of the connection")
            assert "ready" in await told.inner_text()
            await told.locator("summary", has_text="echo").first.click()
            assert '"text"' in await told.locator("pre[aria-label='Input schema of echo']").inner_text()
            assert await one.accessibility() == []
            await one.page.get_by_role("button", name="Keep these as its known tools").click()
            await one.page.wait_for_url("**/ui/servers/x")
            assert "echo" in (await one.up.api("GET", "/mcp-servers/x"))[1]["known_tools"]
            await one.go("/ui/servers/gone")
            await one.page.get_by_role("button", name="Test the connection").click()
            assert await one.page.inner_text("section [role=alert]")
            assert serious(one.faults) == []


@pytest.mark.promise("DASHBOARD-EDITING")
@pytest.mark.promise("D06")
async def test_sign_in_variables_pins_and_trust_are_set_and_secrets_stay_when_their_fields_are_empty(
    tmp_path: Path,
) -> None:
    async with looking(Place(tmp_path)) as one:
        await one.sign_in()
        await one.go("/ui/new/server")
        await one.page.fill("[name=id]", "store")
        await one.page.fill("[name=url]", "https://tools.example/mcp")
        await one.page.select_option("[name=auth_type]", "oauth2_client_credentials")
        await one.page.fill("[name=auth_token_url]", "https://login.example/token")
        await one.page.fill("[name=auth_client_id]", "me")
        await one.page.fill("[name=auth_client_secret]", SECRET)
        await one.page.select_option("[name=pins]", "approve")
        await one.page.check("[name=trusted]")
        assert await one.accessibility() == []
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/servers/store")
        await one.go("/ui/servers/store/edit")
        assert SECRET not in await one.page.content()
        await one.page.fill("[name=auth_scope]", "read")
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/servers/store")
        _, stored, _ = await one.up.api("GET", "/mcp-servers/store")
        assert (stored["pins"], stored["trusted"], stored["auth"]["scope"]) == ("approve", True, "read")
        assert stored["auth"]["client_secret"], "it is masked, and there"
        rules = await one.page.locator("section", has_text="Signs in").inner_text()
        assert "oauth2_client_credentials" in rules
        assert "is believed" in rules

        await _make_program(one)
        await one.page.get_by_role("button", name="Test the connection").click()
        assert "not approved" in await one.page.inner_text("section [role=alert]"), "it is not started"
        await one.go("/ui/servers/program/edit")
        assert SECRET not in await one.page.content()
        assert await one.page.input_value("[name=e1-value]") == "${HOME}"
        await one.page.fill("[name=timeout]", "20")
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/servers/program")
        _, stored, _ = await one.up.api("GET", "/mcp-servers/program")
        assert list(stored["env"]) == ["MODE", "HOME"]
        assert stored["timeout"] == 20
        assert serious(one.faults) == []
