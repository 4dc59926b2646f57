"""Another program's file on a page: looked at before anything is stored, added by choice, and nothing is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.kit import Place
from tests.dashboard.kit import Looking, looking, serious

pytestmark = pytest.mark.anyio
SECRET = "ghp_" + "a1B2c3D4" * 4 + "wxyz"


def _claude(folder: Path) -> str:
    program = {"command": "touch", "args": [str(folder / "it ran"), "--name", "<script>alert(1)</script>"]}
    remote = {"type": "http", "url": "https://tools.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}}
    return json.dumps({"mcpServers": {"files": program, "code": remote, "later": remote}}, indent=2)


async def _look_at(one: Looking, text: str) -> None:
    await one.go("/ui/import")
    await one.page.fill("[name=text]", text)
    await one.page.get_by_role("button", name="Look at it").click()


async def _refused(one: Looking, text: str) -> str:
    await _look_at(one, text)
    said = await one.page.inner_text("[role=alert]")
    assert await one.page.input_value("[name=text]") == text, "what was typed is not lost"
    return said


@pytest.mark.promise("DASHBOARD-IMPORT")
@pytest.mark.promise("P14")
async def test_a_file_is_looked_at_its_servers_are_chosen_and_nothing_is_started(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        await one.sign_in()
        await one.go("/ui/servers")
        await one.page.get_by_role("link", name="Import").click()
        assert await one.accessibility() == []
        assert "JSON" in await _refused(one, '{"mcpServers": {"a": }}')
        assert "cannot tell which program" in await _refused(one, '{"colour": "red"}')
        assert "longer than" in await _refused(one, " " * 1_200_000)

        await _look_at(one, _claude(tmp_path))
        commands = await one.page.locator("pre[aria-label='What files runs or calls']").inner_text()
        assert commands == f"touch '{tmp_path}/it ran' --name '<script>alert(1)</script>'"
        assert SECRET not in await one.page.content()
        assert await one.accessibility() == []
        assert (await one.up.api("GET", "/mcp-servers"))[1]["items"] == [], "nothing is stored yet"
        await one.page.uncheck("[name=pick][value=later]")
        await one.page.get_by_role("button", name="Add what is ticked").click()
        await one.page.get_by_role("region", name="What was added").wait_for()
        assert await one.accessibility() == []
        _, found, _ = await one.up.api("GET", "/mcp-servers")
        assert {entry["id"]: entry["approved"] for entry in found["items"]} == {"code": None, "files": False}
        assert SECRET not in str(found)
        assert not (tmp_path / "it ran").exists()
        assert (serious([fault for fault in one.faults if "status of 422" not in fault]), one.foreign) == ([], [])


async def test_an_uploaded_file_is_read_by_its_name_and_what_differs_is_replaced_only_when_chosen(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[mcp_servers.code]\nurl = "https://new.example/mcp"\n', "utf-8")
    async with looking(Place(tmp_path / "place")) as one:
        await one.up.api("POST", "/mcp-servers", {"id": "code", "url": "https://old.example/mcp"})
        await one.sign_in()
        await one.go("/ui/import")
        await one.page.set_input_files("[name=file]", file)
        await one.page.get_by_role("button", name="Look at it").click()
        assert "replaces version 1 of the registry" in await one.text()
        await one.page.get_by_role("button", name="Add what is ticked").click()
        assert "nothing was chosen" in await one.page.inner_text("[role=alert]")
        await one.page.set_input_files("[name=file]", file)
        await one.page.get_by_role("button", name="Look at it").click()
        await one.page.check("[name=pick][value=code]")
        await one.page.get_by_role("button", name="Add what is ticked").click()
        await one.page.get_by_role("region", name="What was added").wait_for()
        assert (await one.up.api("GET", "/mcp-servers/code"))[1]["url"] == "https://new.example/mcp"
        (tmp_path / "odd.json").write_bytes(b'{"mcpServers": \xff\xfe}')
        await one.go("/ui/import")
        await one.page.set_input_files("[name=file]", tmp_path / "odd.json")
        await one.page.get_by_role("button", name="Look at it").click()
        assert "not text in UTF-8" in await one.page.inner_text("[role=alert]")
        for kind in ("multipart/form-data", "multipart/form-data; boundary=x"):
            sent = await one.page.request.post(f"{one.up.url}/ui/import", data="--x", headers={"content-type": kind})
            assert (sent.status, "cannot be read" in await sent.text()) == (422, True)
