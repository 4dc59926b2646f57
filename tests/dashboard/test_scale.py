"""Five hundred servers with five thousand tools: everything is found from the keyboard, and no page is heavy."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import aiohttp
import pytest

from tests.dashboard.crowd import PAGES, big, weight
from tests.dashboard.kit import looking, serious

pytestmark = pytest.mark.anyio
MOST_BYTES = 250_000


async def _check_that_nothing_is_learned_from_sizes(http: aiohttp.ClientSession) -> None:
    """The key in forms has another text each time, and the answer to a form, which may hold a token, stays whole."""
    keys: list[str] = []
    for _ in range(2):
        async with http.get("/ui/access", headers={"accept-encoding": "gzip"}) as answer:
            found = re.search(r'name="form_key" value="([^"]+)"', gzip.decompress(await answer.read()).decode())
        assert found is not None
        keys.append(found[1])
    assert keys[0] != keys[1]
    for key in keys:
        async with http.post("/ui/access/tokens", data={"form_key": key, "role": "viewer"}) as answer:
            assert (answer.status, answer.headers.get("content-encoding")) == (200, None)


@pytest.mark.promise("D13")
@pytest.mark.promise("DASHBOARD-SIZE")
async def test_a_tool_among_thousands_is_found_from_the_keyboard_and_every_page_is_light(tmp_path: Path) -> None:
    async with looking(big(tmp_path)) as one:
        await one.sign_in()
        assert "500" in await one.page.inner_text(".figures")
        await one.page.keyboard.press("/")
        await one.page.keyboard.type("needle")
        await one.page.locator("#found a", has_text="needle_in_the_hay").wait_for()
        await one.page.keyboard.press("Enter")
        await one.page.wait_for_url("**/ui/servers/server-0250")
        cookies = await one.page.context.cookies()
        held = {"cookie": "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)}  # pyright: ignore[reportTypedDictNotRequiredAccess]
        async with aiohttp.ClientSession(one.up.url, headers=held, auto_decompress=False) as http:
            weights = {path: await weight(http, path) for path in PAGES}
            await _check_that_nothing_is_learned_from_sizes(http)
        assert {path: size for path, size in weights.items() if size > MOST_BYTES} == {}
        assert serious(one.faults) == []
