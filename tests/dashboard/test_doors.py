"""Who gets in at the dashboard, and what nobody can do with it: sign-in, forms, other sites, script in texts."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from outfitter.coordinator import ROUTES
from outfitter.dashboard import HANDLERS
from tests.app.kit import Place, Up
from tests.dashboard.kit import demo, looking, serious

pytestmark = pytest.mark.anyio
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
SECRET = "hush-hush-value-0001"


@asynccontextmanager
async def visitor(up: Up) -> AsyncGenerator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(up.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        yield http


async def signed_in(http: aiohttp.ClientSession, token: str | None) -> int:
    async with http.post("/ui/sign-in", data={"token": token or ""}, allow_redirects=False) as answer:
        return answer.status


async def form_key(http: aiohttp.ClientSession) -> str:
    async with http.get("/ui/runs") as answer:
        found = re.search(r'name="form_key" value="([^"]+)"', await answer.text())
    assert found is not None
    return found[1]


@pytest.mark.promise("D14")
@pytest.mark.promise("D09")
async def test_a_cookie_ends_with_signing_out_and_wrong_tokens_are_counted(tmp_path: Path) -> None:
    async with Place(tmp_path).up() as up, visitor(up) as http:
        assert await signed_in(http, up.token) == 303
        cookie = next(iter(http.cookie_jar))
        assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/ui")
        held = {"cookie": f"{cookie.key}={cookie.value}"}
        async with http.get("/ui/") as answer:
            assert answer.status == 200
            assert answer.headers["cache-control"] == "no-store"
        async with http.post("/ui/sign-out", data={"form_key": await form_key(http)}, allow_redirects=False) as answer:
            assert answer.status == 303
        async with http.get("/ui/", headers=held) as answer:
            assert answer.status == 401
            assert "Sign in" in await answer.text()
        seen = [await signed_in(http, f"oft_first_{number:043d}") for number in range(40)]
        assert set(seen) == {401, 429}
        assert seen.index(429) == 30
        assert await signed_in(http, up.token) == 429, "a right one has to wait too: nobody learns which was right"


@pytest.mark.promise("D03")
@pytest.mark.promise("D07")
async def test_other_sites_names_and_forms_are_refused_and_events_are_for_those_who_are_signed_in(
    tmp_path: Path,
) -> None:
    async with Place(tmp_path).up() as up, visitor(up) as http:
        async with http.get("/ui/live") as answer:
            assert answer.status == 401
        assert await signed_in(http, up.token) == 303
        refused: list[dict[str, Any]] = [
            {"headers": {"origin": "https://evil.example"}, "data": {"form_key": await form_key(http)}},
            {"headers": {"sec-fetch-site": "cross-site"}, "data": {"form_key": await form_key(http)}},
            {"headers": {"host": "evil.example"}, "data": {"form_key": await form_key(http)}},
            {"data": {"form_key": "guessed"}},
            {"data": {}},
        ]
        for given in refused:
            async with http.post("/ui/access/tokens", **given) as answer:
                assert answer.status == 403, given
        async with http.get("/ui/live", headers={"origin": "https://evil.example"}) as answer:
            assert answer.status == 403
        async with http.get("/ui/live") as answer:
            assert (answer.status, answer.content_type) == (200, "text/event-stream")


@pytest.mark.promise("D05")
async def test_somebody_who_may_only_look_changes_nothing_by_any_form(tmp_path: Path) -> None:
    async with Place(tmp_path).up() as up, visitor(up) as http:
        _, issued, _ = await up.api("POST", "/tokens", {"role": "viewer"})
        assert await signed_in(http, issued["token"]) == 303
        key = await form_key(http)
        changing = [path for path, methods in HANDLERS.items() if set(methods) - {"GET"}]
        assert changing
        assert {route.method for route in ROUTES if route.action == "registry.read"} == {"GET"}
        before = (await up.api("GET", "/changes"))[1]["items"], (await up.api("GET", "/runs"))[1]["items"]
        statuses: dict[str, int] = {}
        for path in changing:
            url = "/ui" + re.sub(r"\{[a-z]+\}", "first", path)
            async with http.post(url, data={"form_key": key, "role": "admin", "agent": "a", "prompt": "x"}) as answer:
                statuses[path] = answer.status
        refused = {path for path, status in statuses.items() if status == 403}
        assert refused == set(changing) - {"/agents/{name}/try"}, "which changes nothing"
        after = (await up.api("GET", "/changes"))[1]["items"], (await up.api("GET", "/runs"))[1]["items"]
        assert before == after
        assert [one["id"] for one in (await up.api("GET", "/tokens"))[1]["items"]] == ["first", issued["id"]]


@pytest.mark.promise("D01")
@pytest.mark.promise("D02")
@pytest.mark.promise("D06")
async def test_script_is_text_links_are_of_the_web_and_sensitive_values_are_nowhere(tmp_path: Path) -> None:
    async with looking(demo(tmp_path)) as one:
        server = {
            "id": "odd", "name": SCRIPT, "description": SCRIPT, "type": "http", "url": "http://localhost:1/mcp",
            "header_schema": {"X-Odd": {"description": SCRIPT}, "X-Key": {"sensitive": True}},
            "default_headers": {"X-Odd": SCRIPT, "X-Key": SECRET}, "known_tools": ["javascript:alert(1)"],
        }  # fmt: skip
        status, said, _ = await one.up.api("POST", "/mcp-servers", server)
        assert status == 201, said
        agent = {"name": "odd-one", "description": SCRIPT, "mcpServers": {"odd": {"ref": "odd"}}}
        assert (await one.up.api("POST", "/agents", agent))[0] == 201
        await one.sign_in()
        dialogs: list[str] = []
        one.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        for path in ("/ui/", "/ui/servers", "/ui/servers/odd", "/ui/agents", "/ui/agents/odd-one", "/ui/access"):
            await one.go(path)
            content = await one.page.content()
            assert SECRET not in content, path
            assert await one.page.locator("main script, main img, a[href^='javascript']").count() == 0, path
        await one.go("/ui/servers/odd")
        assert SCRIPT in await one.text()
        assert (dialogs, serious(one.faults), one.foreign) == ([], [], [])


async def test_of_several_workers_any_answers_whoever_is_signed_in(tmp_path: Path) -> None:
    async def asked(method: str, path: str, cookie: str = "", **data: str) -> aiohttp.ClientResponse:
        """Over a connection of its own, so that either worker may be asked; one that is not open yet is asked again."""
        while True:
            async with aiohttp.ClientSession(up.url, headers={"cookie": cookie}) as http:
                answer = await http.request(method, path, data=data or None, allow_redirects=False)
                await answer.read()
            if answer.status != 503:
                return answer

    async with Place(tmp_path).up("--workers", "2") as up:
        entered = await asked("POST", "/ui/sign-in", token=up.token or "")
        assert entered.status == 303
        held = entered.headers["set-cookie"].partition(";")[0]
        for _ in range(20):
            assert (await asked("GET", "/ui/servers?q=x", held)).status == 200
            assert (await asked("POST", "/ui/sign-out", held, form_key="guessed")).status == 403
        assert (await asked("GET", "/ui/servers", held + "x")).status == 401
