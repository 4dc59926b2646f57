"""Capabilities by a form: made with servers and headers, changed by one at a time, put back, deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.kit import Place
from tests.dashboard.kit import looking, serious

pytestmark = pytest.mark.anyio
SERVER = {
    "id": "store", "url": "http://localhost:9501/mcp", "known_tools": ["read", "write"],
    "header_schema": {"X-Namespace": {"description": "whose"}, "X-Key": {"sensitive": True}},
}  # fmt: skip


@pytest.mark.promise("DASHBOARD-CAPABILITIES")
async def test_a_capability_is_made_changed_by_one_at_a_time_put_back_and_deleted(tmp_path: Path) -> None:
    async with looking(Place(tmp_path)) as one:
        assert (await one.up.api("POST", "/mcp-servers", SERVER))[0] == 201
        await one.sign_in()
        await one.go("/ui/capabilities")
        await one.page.get_by_role("link", name="New capability").click()
        await one.page.fill("[name=name]", "knowledge")
        await one.page.fill("[name=text]", "Look it up\nfirst.")
        await one.page.check("[name=use-store]")
        await one.page.fill("[name=alias-store]", "facts")
        await one.page.select_option("[name=only-store]", "1")
        await one.page.check("[name=tool-store][value=read]")
        await one.page.fill("[name='header-store-X-Namespace']", "team")
        await one.page.fill("[name='header-store-X-Key']", "hush-hush-0003")
        assert await one.accessibility() == []
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/capabilities/knowledge")
        _, stored, _ = await one.up.api("GET", "/capabilities/knowledge")
        assert stored["text"] == "Look it up\nfirst."
        assert stored["mcpServers"]["facts"]["tools"] == ["read"]
        assert "hush-hush" not in await one.page.content()

        await one.page.get_by_role("link", name="Edit").click()
        assert await one.page.get_attribute("[name=name]", "readonly") is not None
        theirs = {**stored, "description": "theirs"}
        assert (await one.up.api("PUT", "/capabilities/knowledge", theirs, version=1))[0] == 200
        await one.page.fill("[name=description]", "mine")
        await one.page.get_by_role("button", name="Save").click()
        await one.page.locator("[role=alert]").wait_for()
        assert await one.page.input_value("[name=description]") == "mine", "what was typed is not lost"
        assert (await one.up.api("GET", "/capabilities/knowledge"))[1] == theirs

        await one.go("/ui/capabilities/knowledge")
        assert await one.accessibility() == []
        await one.page.get_by_role("button", name="Restore version 1").click()
        await one.page.wait_for_url("**/ui/capabilities/knowledge")
        _, restored, _ = await one.up.api("GET", "/capabilities/knowledge")
        assert restored == stored
        one.page.on("dialog", lambda dialog: dialog.accept())
        await one.page.get_by_role("button", name="Delete").click()
        await one.page.wait_for_url("**/ui/capabilities")
        assert (await one.up.api("GET", "/capabilities/knowledge"))[0] == 404
        assert serious([fault for fault in one.faults if "status of 409" not in fault]) == []
