"""Makes the pictures of the dashboard in docs/images, light and dark: `.venv/bin/python -m docs.screens`.

A real service with the demo catalog, looked at with a real browser. Needs chromium.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Literal

import anyio

from tests.dashboard.kit import demo, looking

IMAGES = Path(__file__).resolve().parent / "images"
PAGES = {
    "home": "/ui/", "servers": "/ui/servers", "server": "/ui/servers/context-store",
    "server-form": "/ui/servers/context-store/edit", "capabilities": "/ui/capabilities",
    "capability": "/ui/capabilities/research-tools", "agents": "/ui/agents", "agent": "/ui/agents/project-researcher",
    "agent-form": "/ui/agents/project-researcher/edit", "calls": "/ui/calls", "runs": "/ui/runs",
    "playground": "/ui/playground", "access": "/ui/access",
}  # fmt: skip


async def main(scheme: Literal["light", "dark"]) -> None:
    """One picture of every page."""
    with tempfile.TemporaryDirectory() as folder:
        async with looking(demo(Path(folder)), scheme=scheme) as one:
            await one.go("/ui/sign-in")
            await one.page.screenshot(path=IMAGES / f"dashboard-sign-in-{scheme}.png")
            await one.sign_in()
            for name, path in PAGES.items():
                await one.go(path)
                await one.page.screenshot(path=IMAGES / f"dashboard-{name}-{scheme}.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    anyio.run(main, "light")
    anyio.run(main, "dark")
    sys.stdout.write(f"{len(list(IMAGES.glob('dashboard-*.png')))} pictures in {IMAGES}\n")
