"""Tools chosen in the form of an agent: by search over all servers, many at once, with and without script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.kit import Place
from tests.dashboard.kit import looking, serious

pytestmark = pytest.mark.anyio
ISSUES = [f"issue_{number:02d}" for number in range(30)]
PAGES = [f"page_{number:02d}" for number in range(30)]


def _place(folder: Path) -> Place:
    place = Place(folder)
    for server, tools in (("tracker", [*ISSUES, "search"]), ("wiki", [*PAGES, "search"]), ("mail", ["send"])):
        place.write(f"mcp-servers/{server}.json", {"url": f"http://localhost:1/{server}", "known_tools": tools})
    uses = {
        "tracker": {"ref": "tracker", "tools": {"include": ["search", "board_*"], "exclude": ["*_old"]}},
        "other": {"ref": "tracker", "tools": ["issue_00"]},
    }
    place.write("agents/helper.json", {"name": "helper", "mcpServers": uses, "budgets": {"calls_per_day": 5}})
    return place


@pytest.mark.promise("DASHBOARD-SELECTION")
@pytest.mark.promise("D13")
async def test_tools_are_chosen_by_search_many_at_once_and_a_new_search_keeps_them(tmp_path: Path) -> None:
    async with looking(_place(tmp_path)) as one:
        await one.sign_in()
        await one.go("/ui/agents/helper/edit")
        assert await one.page.input_value("[name=tools-tracker]") == "board_*"
        assert await one.page.input_value("[name=without-tracker]") == "*_old"
        await one.page.fill("[data-find]", "ISSUE_1")
        assert await one.page.locator("[data-tool]:visible").count() == 10
        assert await one.page.locator(".server-row:visible").count() == 1
        assert "1 servers and 10 tools are shown" in await one.text()
        await one.page.get_by_role("button", name="Choose all shown tools").click()
        await one.page.fill("[data-find]", "page_0")
        await one.page.get_by_role("button", name="Choose all shown tools").click()
        await one.page.uncheck("[name=tool-wiki][value=page_07]")
        await one.page.fill("[data-find]", "")
        await one.page.keyboard.press("Enter")
        assert await one.page.locator(".server-row:visible").count() == 3
        assert await one.accessibility() == []
        await one.page.get_by_role("button", name="Save").click()
        await one.page.wait_for_url("**/ui/agents/helper")
        _, stored, _ = await one.up.api("GET", "/agents/helper/document")
        uses = stored["mcpServers"]
        assert uses["tracker"]["tools"] == {"include": ["search", "board_*", *ISSUES[10:20]], "exclude": ["*_old"]}
        assert uses["wiki"]["tools"] == [page for page in PAGES[:10] if page != "page_07"]
        assert uses["other"] == {"ref": "tracker", "tools": ["issue_00"]}, "a second alias stays as it was"
        assert "mail" not in uses
        await one.go("/ui/agents/helper/edit")
        await one.page.get_by_role("button", name="Restore version 1").click()
        await one.page.wait_for_url("**/ui/agents/helper")
        assert "wiki" not in (await one.up.api("GET", "/agents/helper/document"))[1]["mcpServers"]
        await one.go("/ui/agents/helper/edit")
        one.page.on("dialog", lambda dialog: dialog.accept())
        await one.page.get_by_role("button", name="Delete this agent").click()
        await one.page.wait_for_url("**/ui/agents")
        assert (await one.up.api("GET", "/agents/helper"))[0] == 404
        assert serious(one.faults) == []


async def test_without_script_a_search_keeps_what_was_chosen_and_bounds_are_checked(tmp_path: Path) -> None:
    async with looking(_place(tmp_path)) as one:
        await one.sign_in()
        assert one.page.context.browser is not None
        state = await one.page.context.storage_state()
        plain = await one.page.context.browser.new_context(java_script_enabled=False, storage_state=state)
        page = await plain.new_page()
        page.set_default_timeout(60_000)
        await page.goto(f"{one.up.url}/ui/agents/helper/edit")
        await page.check("[name=tool-tracker][value=issue_05]")
        await page.check("[name=use-mail]")
        await page.fill("[name=find]", "page_2")
        await page.get_by_role("button", name="Search", exact=True).last.click()
        assert await page.locator(".server-row:visible").count() == 1
        await page.check("[name=use-wiki]")
        await page.select_option("[name=only-wiki]", "1")
        await page.check("[name=tool-wiki][value=page_22]")
        await page.select_option("[name=only-mail]", "1", force=True)
        await page.fill("[name=budgets]", '{"calls_per_fortnight": 1}')
        await page.select_option("[name=search_mode]", "auto")
        await page.fill("[name=search_threshold]", "9000")
        await page.fill("[name=result_limit]", "65536")
        await page.get_by_role("button", name="Save").click()
        assert "unknown budget" in await page.inner_text("[role=alert]")
        await page.fill("[name=budgets]", '{"calls_per_day": ')
        await page.get_by_role("button", name="Save").click()
        assert "this is no JSON" in await page.inner_text("[role=alert]")
        await page.fill("[name=budgets]", '{"calls_per_hour": 7}')
        await page.get_by_role("button", name="Save").click()
        await page.wait_for_url("**/ui/agents/helper")
        _, stored, _ = await one.up.api("GET", "/agents/helper/document")
        assert stored["mcpServers"]["tracker"]["tools"]["include"] == ["search", "board_*", "issue_05"]
        assert stored["mcpServers"]["wiki"]["tools"] == ["page_22"]
        assert stored["mcpServers"]["mail"] == {"ref": "mail", "tools": []}, "none is not all"
        assert stored["budgets"] == {"calls_per_hour": 7}
        assert (stored["tool_search"], stored["result_limit"]) == ({"mode": "auto", "threshold": 9000}, 65536)
