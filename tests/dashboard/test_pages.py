"""Every page in a real browser: what it is for, no fault, nothing from elsewhere, readable by everybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.kit import demo, looking, serious

pytestmark = pytest.mark.anyio
PAGES = {
    "/ui/": ("Home", "Latest changes"),
    "/ui/servers": ("MCP servers", "X-Jira-Projects"),
    "/ui/servers/context-store": ("Context Store", "research-tools"),
    "/ui/import": ("Import servers", "Claude"),
    "/ui/agents/tester/edit": ("Edit tester", "Tools of github"),
    "/ui/capabilities": ("Capabilities", "research-tools"),
    "/ui/capabilities/research-tools": ("research-tools", "X-Context-Namespace"),
    "/ui/agents": ("Agents", "team-alpha-analyst"),
    "/ui/agents/tester": ("tester", "merge_pull_request"),
    "/ui/calls": ("Calls", "No call was recorded"),
    "/ui/runs": ("Runs", "Start a run"),
    "/ui/access": ("Access", "first admin"),
}


@pytest.mark.promise("DASHBOARD-PAGES")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_page_shows_its_main_thing_without_fault_and_to_everybody(tmp_path: Path, scheme: str) -> None:
    async with looking(demo(tmp_path), scheme="dark" if scheme == "dark" else "light") as one:
        await one.go("/")
        assert await one.accessibility() == [], "the page to sign in"
        await one.sign_in()
        for path, (title, content) in PAGES.items():
            await one.go(path)
            assert title in await one.page.inner_text("h1"), path
            for details in await one.page.query_selector_all("main details"):
                await details.evaluate("one => one.open = true")
            assert content in await one.text(), path
            assert await one.accessibility() == [], path
            assert await one.page.inner_text(".command code"), path
        assert (serious(one.faults), one.foreign) == ([], [])


@pytest.mark.promise("DASHBOARD-EXPLAIN")
async def test_the_view_of_an_agent_shows_each_value_where_it_is_from_and_what_it_overrules(tmp_path: Path) -> None:
    async with looking(demo(tmp_path)) as one:
        await one.sign_in()
        await one.go("/ui/agents/project-researcher")
        server = one.page.get_by_role("region", name="Server context-store")
        headers = await server.locator("dl.chain").inner_text()
        assert "project-alpha" in headers
        assert "overrides registry (context-store) default" in " ".join(headers.split())
        assert "overrides capability (research-tools) research" in " ".join(headers.split())
        await one.go("/ui/agents/tester")
        await one.page.get_by_text("it does not get, and why not").first.click()
        assert "not in its include list" in await one.text()
        otherwise = {"search": {"title": "Find", "defaults": {"tenant": "<b>blue"}, "hidden": ["tenant"]}}
        uses = {"docs": {"ref": "context-store", "overrides": otherwise}}
        made, _, _ = await one.up.api("POST", "/agents", {"name": "clerk", "result_limit": 2048, "mcpServers": uses})
        assert made == 201
        await one.go("/ui/agents/clerk")
        shown = " ".join((await one.page.get_by_role("region", name="Server docs").inner_text()).split())
        assert 'search tenant hidden Find { "tenant": "<b>blue" } agent (clerk)' in shown
        assert "above 2048 bytes are kept aside" in await one.text()
        assert await one.accessibility() == []


async def test_the_slash_key_searches_everything_and_enter_goes_to_the_first(tmp_path: Path) -> None:
    async with looking(demo(tmp_path)) as one:
        await one.sign_in()
        await one.page.keyboard.press("/")
        await one.page.keyboard.type("context-st")
        await one.page.locator("#found a", has_text="context-store").wait_for()
        await one.page.keyboard.press("Enter")
        await one.page.wait_for_url("**/ui/servers/context-store")
        assert serious(one.faults) == []


async def test_a_page_fits_on_a_phone(tmp_path: Path) -> None:
    async with looking(demo(tmp_path), width=375) as one:
        await one.sign_in()
        for path in PAGES:
            await one.go(path)
            wide = await one.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 375, path


@pytest.mark.promise("DASHBOARD-RUNS")
async def test_a_run_is_started_followed_and_stopped_from_its_page(tmp_path: Path) -> None:
    async with looking(demo(tmp_path)) as one:
        executor = {"type": "command", "command": "true"}
        status, _, _ = await one.up.api("POST", "/agents", {"name": "worker", "executor": executor})
        assert status == 201
        assert (await one.up.api("POST", "/agents/worker/approve", version=1))[0] == 200
        await one.sign_in()
        await one.go("/ui/runs?agent=worker")
        await one.page.fill("textarea", "Say <b>hello</b>")
        await one.page.get_by_role("button", name="Start", exact=True).click()
        await one.page.wait_for_url("**/ui/runs/*")
        assert "Say <b>hello</b>" in await one.text()
        await one.page.click("text=Stop it")
        await one.page.locator(".state", has_text="stopped").first.wait_for()


@pytest.mark.promise("DASHBOARD-ACCESS")
async def test_a_token_is_issued_shown_once_used_and_taken_back(tmp_path: Path) -> None:
    async with looking(demo(tmp_path)) as one:
        await one.sign_in()
        await one.go("/ui/access")
        await one.page.select_option("select[name=role]", "viewer")
        await one.page.fill("input[name=label]", "for looking")
        await one.page.get_by_role("button", name="Issue", exact=True).click()
        made = await one.page.inner_text("#made")
        assert made.startswith("oft_")
        await one.go("/ui/access")
        assert made not in await one.page.content()
        await one.page.click("text=Sign out")
        await one.sign_in(made)
        await one.go("/ui/access")
        assert "Only an admin sees and issues tokens" in await one.text()
