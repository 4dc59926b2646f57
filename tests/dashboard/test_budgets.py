"""Budgets in a browser: what is used up is seen at a glance, and begun anew by a click."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place
from tests.dashboard.kit import looking, serious
from tests.gateway.kit import raw
from tests.gateway.test_operation import ECHO

pytestmark = pytest.mark.anyio


@pytest.mark.promise("BUD-07")
async def test_a_used_up_budget_is_shown_and_begun_anew_by_a_click(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        path = tmp_path / "outfitter" / "agents" / "a.json"
        budgets = {"calls_per_day": 1, "tokens_per_run": 5000, "per_tool": {"x/echo": {"calls_per_day": 9}}}
        path.write_text(json.dumps({**json.loads(path.read_text()), "budgets": budgets}))
        async with looking(place, "--open") as one:
            async with raw(f"{one.up.url}/mcp/a/x", token=one.up.token) as client:
                await client.modern("tools/call", ECHO)
                _, refused = await client.modern("tools/call", ECHO)
                assert "the budget calls_per_day of agent 'a' is used up: 1 of 1 calls" in json.dumps(refused)
                await one.sign_in()
                await one.go("/ui/budgets")
                told = await one.text()
                assert "1 of 1 used up" in told
                assert "1 of 9" in told
                assert "each run has 5,000" in told
                assert await one.accessibility() == []
                await one.page.get_by_role("button", name="Reset calls_per_day of a", exact=True).click()
                await one.page.wait_for_url(re.compile(r"/ui/budgets\?agent=a$"))
                assert "0 of 1" in await one.text()
                assert "calls_per_day of a, 1 of 1 used" in await one.text()
                _, answer = await client.modern("tools/call", ECHO)
                assert "hi" in json.dumps(answer)
            assert serious(one.faults) == []
            assert one.foreign == []
