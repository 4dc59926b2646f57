"""The page of calls that wait for a person, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.dashboard.kit import looking, serious
from tests.gateway.kit import raw

pytestmark = pytest.mark.anyio


@pytest.mark.promise("APPROVAL-DASHBOARD")
async def test_a_call_that_waits_appears_by_itself_and_goes_on_with_a_click(tmp_path: Path) -> None:
    place = Place(tmp_path)
    rules = [{"tools": ["echo"], "effect": "ask", "reason": "it <b>talks</b>"}]
    async with serve_http(Script("x")) as served:
        place.write("mcp-servers/x.json", {"name": "x", "url": served.url})
        place.write("agents/a.json", {"name": "a", "mcpServers": {"x": {"ref": "x"}}, "rules": rules})
        async with looking(place) as one, anyio.create_task_group() as group:
            _, made, _ = await one.up.api("POST", "/tokens", {"role": "agent", "agent": "a"})
            await one.sign_in()
            await one.go("/ui/approvals")
            assert "No call waits for a person" in await one.text()
            answers: dict[str, Any] = {}

            async def call(text: str) -> None:
                async with raw(f"{one.up.url}/mcp/a/x", made["token"]) as client:
                    params = {"name": "echo", "arguments": {"text": text, "password": "hunter2"}}
                    answers[text] = (await client.modern("tools/call", params))[1]["result"]

            for text, button in (("first", "Approve"), ("second", "Deny")):
                group.start_soon(call, text)
                card = one.page.get_by_role("region", name="x/echo of a").filter(has_text=text)
                await card.wait_for()
                told = await card.inner_text()
                assert "it <b>talks</b>" in told
                assert "hunter2" not in told
                assert await one.accessibility() == []
                await card.get_by_role("button", name=button).click()
                await one.page.locator("tbody tr", has_text="used" if button == "Approve" else "denied").wait_for()
            with anyio.fail_after(60):
                while len(answers) < 2:  # noqa: ASYNC110 - the gateway makes it so
                    await anyio.sleep(0.05)
            assert [answers[text].get("isError", False) for text in ("first", "second")] == [False, True]
            calls: list[Any] = []
            with anyio.fail_after(60):
                while not calls:
                    calls = (await one.up.api("GET", "/calls"))[1]["items"]
            assert "first admin" in calls[0]["rule"]
            assert (serious(one.faults), one.foreign) == ([], [])
