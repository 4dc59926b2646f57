"""The dashboard of a real ``outfitter up``, looked at with a real browser."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Page, Request, async_playwright

from tests.app.kit import Place, Up

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / ".venv" / "servers" / "node" / "node_modules" / "axe-core" / "axe.min.js"
_ARGS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
_WAIT = 60_000.0


def browser_path() -> str:
    """Where the browser is; without one the test is skipped, and ``make test`` has said so."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found is not None:
            return found
    pytest.skip("there is no chromium on this machine")


@dataclass(slots=True)
class Looking:
    """Somebody with a browser; ``foreign`` are requests that went elsewhere, ``faults`` complaints of the console."""

    up: Up
    page: Page
    foreign: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])

    async def go(self, path: str) -> None:
        """Open a page of the dashboard."""
        await self.page.goto(f"{self.up.url}{path}")

    async def sign_in(self, token: str | None = None) -> None:
        """Sign in, with the admin token unless told otherwise."""
        await self.go("/ui/sign-in")
        await self.page.fill("#token", token or self.up.token or "")
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url(f"{self.up.url}/ui/")

    async def text(self) -> str:
        """What the page says."""
        return await self.page.inner_text("main")

    async def accessibility(self) -> list[str]:
        """What axe finds that is serious."""
        await self.page.evaluate(AXE.read_text())
        found: dict[str, Any] = await self.page.evaluate("axe.run()")
        return [
            f"{one['id']}: {node['html'][:200]}"
            for one in found["violations"]
            if one["impact"] in {"serious", "critical"}
            for node in one["nodes"]
        ]


@asynccontextmanager
async def browsing() -> AsyncGenerator[Browser]:
    """A browser of one's own."""
    async with async_playwright() as play:
        browser = await play.chromium.launch(executable_path=browser_path(), args=list(_ARGS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def looking(
    place: Place, *args: str, scheme: Literal["light", "dark"] = "light", width: int = 1280
) -> AsyncGenerator[Looking]:
    """Somebody who has opened a browser at a running service, and is not signed in yet."""
    async with place.up(*args) as up, browsing() as browser:
        context = await browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        context.set_default_timeout(_WAIT)
        page = await context.new_page()
        one = Looking(up, page)
        page.on("request", lambda request: _note(one, request))
        page.on("console", lambda message: one.faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: one.faults.append(str(error)))
        yield one


def _note(one: Looking, request: Request) -> None:
    if not request.url.startswith((one.up.url, "data:")):
        one.foreign.append(request.url)


def demo(folder: Path) -> Place:
    """A place with the demo catalog."""
    place = Place(folder)
    folder.mkdir(parents=True, exist_ok=True)
    done = place.command("demo")
    assert done.returncode == 0, done.stderr
    return place


def serious(faults: Sequence[str]) -> list[str]:
    """Faults of the console that are not the refusal which was asked for."""
    return [fault for fault in faults if "status of 401" not in fault and "Password forms" not in fault]
