"""The dashboard over 500 servers with 5,000 tools, in a real browser: search, first paint, weight of pages.

Search is timed in the page: from the last key to the frame after the answer is shown. First paint is measured against
the same HTML and files from nginx (or Python's own server, where there is none), taking turns, with nothing in the
cache; the best of many rounds counts for each. Weight is what goes over the wire for a page with everything it loads.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
import anyio

from benchmarks.gateway_stage import Stage, free_port, nginx_path, stage
from benchmarks.measure import Ratio
from tests.dashboard.crowd import PAGES, big, weight
from tests.dashboard.kit import Looking, looking

_QUERIES, _ROUNDS = 40, 11
_SEARCH_SECONDS, _KILOBYTES, _PAINT = 0.3, 250.0, 1.5
_PAINTED = ("/ui/", "/ui/servers", "/ui/agents/wide", "/ui/calls")
_NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; gzip on; gzip_types text/css text/javascript image/svg+xml;
  types {{ text/html html; text/css css; text/javascript js; image/svg+xml svg; }}
  server {{ listen 127.0.0.1:{port}; root {root}; index index.html; }}
}}
"""
_WATCH = """() => {
  window.took = 0;
  let began = 0;
  const box = document.getElementById("search");
  box.addEventListener("input", () => { began = performance.now(); window.took = 0; });
  new MutationObserver(() => {
    if (!began) return;
    const since = began;
    began = 0;
    requestAnimationFrame(() => setTimeout(() => { if (!began) window.took = performance.now() - since; }));
  }).observe(document.getElementById("found"), { childList: true });
}"""
_PAINT_OF = """() => new Promise((resolve) => {
  const look = () => {
    const [found] = performance.getEntriesByName("first-contentful-paint");
    if (found) resolve(found.startTime); else setTimeout(look, 5);
  };
  look();
})"""


async def _search(one: Looking) -> list[float]:
    """Seconds from the last key of each query until what it found is shown."""
    await one.go("/ui/servers")
    await one.page.evaluate(_WATCH)
    found: list[float] = []
    for number in range(_QUERIES):
        query = (f"server-0{number * 12:03}", f"tool_{number * 123:04}", f"of_{number * 11}", "team")[number % 4]
        await one.page.fill("#search", "")
        await one.page.focus("#search")
        await one.page.wait_for_timeout(50)
        await one.page.keyboard.type(query)
        while not (took := await one.page.evaluate("window.took")):  # noqa: ASYNC110 - the browser makes it so
            await anyio.sleep(0.01)
        found.append(took / 1000)
    return found


async def _copy(http: aiohttp.ClientSession, path: str, root: Path) -> None:
    """The page as a file, and the files it loads."""
    place = root / path.strip("/") / "index.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    async with http.get(path, headers={"accept-encoding": "identity"}) as answer:
        place.write_bytes(await answer.read())
    for name in ("style.css", "outfitter.js", "live.js", "icon.svg"):
        file = root / "ui" / "static" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        async with http.get(f"/ui/static/{name}", headers={"accept-encoding": "identity"}) as answer:
            file.write_bytes(await answer.read())


def _serve(one: Stage, root: Path) -> tuple[int, str]:
    """A plain server of these files, and what it is."""
    port, found = free_port(), nginx_path()
    if found is None:
        command = (sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(root))
        one.start(*command, port=port)
        return port, "Python's http.server"
    config = one.folder / "static.conf"
    config.write_text(_NGINX.format(folder=one.folder, port=port, root=root))
    one.folder.chmod(0o755)  # nginx reads files as another user
    one.start(found, "-p", str(one.folder), "-c", str(config), port=port)
    return port, "nginx"


async def _paint(one: Looking, cookies: Any, before: str, url: str) -> float:  # noqa: ANN401 - as playwright gives them
    """Seconds to the first contentful paint of a page after another one of its site, with nothing in the cache.

    The first page of a site makes a browser start a process (``cross-origin-opener-policy``), which is not ours.
    """
    browser = one.page.context.browser
    assert browser is not None
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    paint = 0.0
    try:
        await context.add_cookies(cookies)
        page = await context.new_page()
        session: Any = await context.new_cdp_session(page)
        await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        for each in (before, url):
            answer = await page.goto(each)
            assert answer is not None
            assert answer.status == HTTPStatus.OK, each
            paint = await page.evaluate(_PAINT_OF) / 1000
    finally:
        await context.close()
    return paint


async def _measure(folder: Path, one: Stage) -> list[Ratio]:
    (folder / "root").mkdir()
    async with looking(big(folder / "service")) as look:
        await look.sign_in()
        times = sorted(await _search(look))
        p50, p95 = statistics.median(times), times[int(len(times) * 0.95)]
        print(f"<!-- {len(times)} searches: p50 {p50 * 1e3:.0f} ms, p95 {p95 * 1e3:.0f} ms -->", file=sys.stderr)
        cookies: Any = await look.page.context.cookies()
        held = {"cookie": "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in cookies)}
        async with aiohttp.ClientSession(look.up.url, headers=held, auto_decompress=False) as http:
            weights = {path: await weight(http, path) / 1000 for path in PAGES}
            for path in ("/ui/sign-in", *_PAINTED):
                await _copy(http, path, folder / "root")
        port, against = _serve(one, folder / "root")
        paints = [await _compare(look, cookies, path, port, against) for path in _PAINTED]
    heaviest = max(weights, key=lambda path: weights[path])
    for path, size in weights.items():
        print(f"<!-- {path}: {size:.1f} KB -->", file=sys.stderr)
    return [
        Ratio(f"search of everything as one types, p95 of {len(times)}", p95, _SEARCH_SECONDS, "300 ms", 1.0),
        Ratio(f"heaviest page, {heaviest}", weights[heaviest], _KILOBYTES, "250 KB", 1.0, "KB"),
        *paints,
    ]


async def _compare(look: Looking, cookies: Any, path: str, port: int, against: str) -> Ratio:  # noqa: ANN401 - same
    ours, theirs = list[float](), list[float]()
    for _ in range(_ROUNDS):
        plain = f"http://127.0.0.1:{port}"
        ours.append(await _paint(look, cookies, f"{look.up.url}/ui/sign-in", f"{look.up.url}{path}"))
        theirs.append(await _paint(look, [], f"{plain}/ui/sign-in/", f"{plain}{path.rstrip('/')}/"))
    return Ratio(f"first paint of {path}", min(ours), min(theirs), f"the same page from {against}", _PAINT)


def measure() -> Iterator[Ratio]:
    """Search, weight, paint; nothing where there is no browser."""
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        print("<!-- there is no chromium on this machine: the dashboard is not measured -->", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as folder, stage(Path(folder)) as one:
        yield from anyio.run(_measure, Path(folder), one)


if __name__ == "__main__":
    for ratio in measure():
        print(f"{ratio.what}: {ratio.text(ratio.subject)}, {ratio.value:.2f} (limit {ratio.limit:g})", flush=True)
