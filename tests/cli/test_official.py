"""Servers from a registry of the official API: found, shown, added as they are offered, and never started."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from tests.cli.registry_kit import Shell, served_shell
from tests.cli.terminal import Printed

SECRET = "canary-91ac04"
OFFICIAL = "io.modelcontextprotocol.registry/official"
NPM = {
    "registryType": "npm", "identifier": "@u/weather", "version": "1.2.3", "transport": {"type": "stdio"},
    "environmentVariables": [
        {"name": "WEATHER_KEY", "isRequired": True, "isSecret": True, "description": "From the console"},
        {"name": "UNITS", "default": "metric"},
    ],
}  # fmt: skip
REMOTE = {
    "type": "streamable-http",
    "url": "https://weather.example/mcp",
    "headers": [{"name": "Authorization", "value": f"Bearer {SECRET}", "isSecret": True}],
}


def _version(name: str, version: str, *, is_latest: bool = True, status: str = "active", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    server = {"name": name, "description": f"About {name}", "version": version, **more}
    return {"server": server, "_meta": {OFFICIAL: {"status": status, "isLatest": is_latest}}}


SERVERS = [
    _version("io.github.u/weather", "1.3.0", packages=[NPM], remotes=[REMOTE]),
    _version("io.github.u/weather", "1.2.0", is_latest=False, remotes=[REMOTE]),
    _version("io.github.u/weathervane", "0.1.0", status="deprecated", packages=[{**NPM, "version": ""}]),
    _version("io.github.u/gone", "9.0.0", status="deleted", remotes=[REMOTE]),
    *(_version(f"io.github.u/many-{number}", "1.0.0", remotes=[REMOTE]) for number in range(5)),
]


@dataclass
class Foreign:
    """A registry that somebody else runs, on loopback, two servers to a page."""

    base: str = "/v0.1"
    asked: list[str] = field(default_factory=list[str])
    url: str = ""

    def answer(self, target: str) -> dict[str, Any] | None:
        self.asked.append(target)
        parts = urlsplit(target)
        if not parts.path.startswith(f"{self.base}/servers"):
            return None
        _, *names = parts.path.removeprefix(self.base)[1:].split("/")
        return self._one(unquote(names[0]), names[2]) if names else self._page(parse_qs(parts.query))

    def _one(self, name: str, version: str) -> dict[str, Any] | None:
        versions = [one for one in SERVERS if one["server"]["name"] == name]
        return next((one for one in versions if version in {"latest", one["server"]["version"]}), None)

    def _page(self, query: dict[str, list[str]]) -> dict[str, Any]:
        text, after = query.get("search", [""])[0], int(query.get("cursor", ["0"])[0])
        found = [one for one in SERVERS if text in one["server"]["name"] and one["_meta"][OFFICIAL]["isLatest"]]
        following = {"nextCursor": str(after + 2)} if after + 2 < len(found) else {}
        return {"servers": found[after : after + 2], "metadata": {"count": 2, **following}}


@pytest.fixture
def terminal(tmp_path: Path) -> Shell:
    """A folder to work in."""
    return Shell(tmp_path)


def _files(terminal: Shell) -> str:
    """What all files of the folder say."""
    return "".join(path.read_text() for path in terminal.folder.rglob("*.json"))


@pytest.fixture
def foreign() -> Generator[Foreign]:
    """A running registry of somebody else."""
    served = Foreign()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = served.answer(self.path)
            body = json.dumps(found or {"error": "Server not found"}).encode()
            self.send_response(404 if found is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's word
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.mark.promise("REGISTRY-OFFICIAL")
def test_servers_are_found_page_by_page(terminal: Shell, foreign: Foreign) -> None:
    printed = terminal.run("registry", "search", "weather", OUTFITTER_OFFICIAL_REGISTRY=foreign.url)
    assert printed.code == 0, printed.err
    assert "io.github.u/weather " in printed.out
    assert "deprecated" in printed.out
    assert "version=latest" in foreign.asked[0]
    found = terminal.run("registry", "search", "--registry", foreign.url, "--limit", "4", "--json").json()
    assert [one["name"].rpartition("/")[2] for one in found] == ["weather", "weathervane", "gone", "many-0"]


@pytest.mark.promise("REGISTRY-OFFICIAL")
def test_an_older_registry_is_asked_in_its_own_form(terminal: Shell, foreign: Foreign) -> None:
    foreign.base = "/v0"
    shown = terminal.run("registry", "show", "io.github.u/weather", "--registry", foreign.url, "--json").json()
    assert [way["way"] for way in shown["ways"]] == ["npm", "http"]
    foreign.base = "/elsewhere"
    printed = terminal.run("registry", "search", "--registry", foreign.url)
    assert (printed.code, "no registry of MCP servers" in printed.err) == (4, True)


@pytest.mark.promise("REGISTRY-OFFICIAL")
def test_the_version_that_is_offered_is_written_down_and_secrets_are_variables(
    terminal: Shell, foreign: Foreign
) -> None:
    terminal.write("outfitter/agents/lead.json", {"name": "lead"})
    printed = terminal.run("registry", "add", "io.github.u/weather", "--to", "lead", "--registry", foreign.url)
    assert printed.code == 0, printed.err
    assert "weather: npx -y @u/weather@1.2.3" in printed.out
    assert "export WEATHER_KEY=..." in printed.out
    assert "Nothing was started." in printed.out
    written = json.loads((terminal.folder / "outfitter/mcp-servers/weather.json").read_text())
    assert written["args"] == ["-y", "@u/weather@1.2.3"]
    assert written["env"] == {"WEATHER_KEY": "${WEATHER_KEY}", "UNITS": "${UNITS:-metric}"}
    shown = terminal.run("explain", "lead", "--json").json()
    assert [server["alias"] for server in shown["servers"]] == ["weather"]
    again = terminal.run("registry", "add", "io.github.u/weather", "--to", "lead", "--registry", foreign.url)
    assert "already; nothing was changed" in again.out


@pytest.mark.promise("REGISTRY-OFFICIAL")
def test_a_version_and_a_way_can_be_named_and_a_literal_secret_is_not_taken(terminal: Shell, foreign: Foreign) -> None:
    def add(name: str, *more: str) -> Printed:
        return terminal.run("registry", "add", name, "--registry", foreign.url, *more)

    printed = add("io.github.u/weather@1.2.0", "--way", "http")
    assert "weather: https://weather.example/mcp" in printed.out, printed.err
    assert all(SECRET not in text for text in (printed.out, printed.err, _files(terminal)))
    assert add("io.github.u/weather@1.2.0", "--way", "npm").code == 4
    assert add("io.github.u/weather@7.0.0").code == 4
    assert "was deleted" in add("io.github.u/gone").err
    told = add("io.github.u/weathervane", "--dry-run").out
    assert "'deprecated'" in told
    assert "names no version of its package" in told
    assert not (terminal.folder / "outfitter/mcp-servers/weathervane.json").exists()


@pytest.mark.promise("REGISTRY-OFFICIAL")
def test_an_address_that_no_server_may_have_no_registry_may_have(terminal: Shell) -> None:
    for url in ("http://10.0.0.1", "http://169.254.169.254", "http://registry.example", "ftp://x", "x"):
        assert terminal.run("registry", "search", "--registry", url).code in {3, 6}, url


@pytest.mark.promise("REGISTRY-OFFICIAL")
def test_a_teams_registry_is_browsed_and_added_from_like_any_other(terminal: Shell) -> None:
    with served_shell(terminal.folder.parent / f"{terminal.folder.name}-team") as shell:
        shell.done("servers", "add", "store", "--url", "https://store.example/mcp", "--header", "X-Team=blue",
                   "--required-header", "X-Space")  # fmt: skip
        url, token = shell.more[1], shell.variables["OUTFITTER_TOKEN"]
        more = ("--registry", url, "--token-env", "TEAM_TOKEN")
        found = terminal.run("registry", "search", *more, "--json", TEAM_TOKEN=token).json()
        assert [one["name"] for one in found] == ["local.outfitter/store"]
        assert terminal.run("registry", "search", *more, TEAM_TOKEN="").code == 3
        assert terminal.run("registry", "search", "--registry", url).code == 7
        printed = terminal.run("registry", "add", "local.outfitter/store", *more, TEAM_TOKEN=token)
        assert printed.code == 0, printed.err
        shown = terminal.run("registry", "show", "local.outfitter/store", "--document", *more, TEAM_TOKEN=token)
        shell.done("servers", "add", "-f", "-", stdin=shown.out.replace('"store"', '"again"', 1))
    written = json.loads((terminal.folder / "outfitter/mcp-servers/store.json").read_text())
    assert written["url"] == "https://store.example/mcp"
    assert written["default_headers"] == {"X-Team": "blue", "X-Space": "${STORE_X_SPACE}"}
    assert written["header_schema"]["X-Space"]["required"] is True
    assert token not in _files(terminal)
