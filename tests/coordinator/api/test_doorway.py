"""Who may knock, and what every answer carries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from outfitter.coordinator import ROUTES
from tests.coordinator.api.kit import Served, service

pytestmark = pytest.mark.anyio


@pytest.mark.promise("R10")
async def test_no_strange_host_or_target_opens_a_protected_route(served: Served) -> None:
    good = "host: 127.0.0.1"
    strange = [
        ("GET /agents HTTP/1.1", "host: a/?x="),
        ("GET /agents HTTP/1.1", "host: 127.0.0.1/#"),
        ("GET /agents HTTP/1.1", "host: 127.0.0.1@evil"),
        ("GET /agents HTTP/1.1", "host: localhost\t.evil"),
        ("GET /agents HTTP/1.1", "host: evil.example"),
        ("GET /agents HTTP/1.1", good, "host: evil.example"),
        ("GET /agents HTTP/1.1", "x-nothing: 1"),
        ("GET @evil HTTP/1.1", good),
        ("GET http://127.0.0.1/agents HTTP/1.1", good),
        ("GET http://evil.example/health HTTP/1.1", "host: evil.example"),
        ("GET //agents HTTP/1.1", good),
        ("GET /health/../agents HTTP/1.1", good),
        ("GET /health%2f..%2fagents HTTP/1.1", good),
        ("GET /health;/agents HTTP/1.1", good),
        ("GET /agents?x=/health HTTP/1.1", good),
        ("CONNECT evil:443 HTTP/1.1", good),
    ]
    for lines in strange:
        answer = await served.raw(*lines)
        assert re.match(rb"HTTP/1.1 (400|401|404|405|421) ", answer), (lines, answer)


@pytest.mark.promise("R10")
async def test_every_route_but_the_public_ones_needs_a_token(served: Served) -> None:
    stranger = served.nobody()
    public = {"/health", "/ready", "/openapi.json"}
    for route in ROUTES:
        path = re.sub(r"\{\w+\}", "x", route.path)
        for prefix in ("", "/api/v1"):
            reply = await stranger.ask(route.method, f"{prefix}{path}")
            assert (reply.status == 200) == (route.path in public), route
            if route.path not in public:
                assert (reply.status, reply.code) == (401, "needs_token")
                assert reply.headers["www-authenticate"].startswith("Bearer")
    wrong = await stranger.get("/agents", authorization="Bearer oft_x_" + "A" * 43)
    assert wrong.content == (await stranger.get("/agents")).content


async def test_a_page_of_another_origin_gets_nothing(served: Served) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example", "http://[::1"):
        reply = await served.get("/agents", origin=origin)
        assert (reply.status, reply.code) == (403, "foreign_origin")
    for origin in ("http://localhost:3000", "https://pages.example", "http://api.example"):
        reply = await served.get("/agents", origin=origin)
        assert reply.status == 200
        assert not [name for name in reply.headers if name.lower().startswith("access-control")]
    preflight = await served.nobody().ask("OPTIONS", "/agents", origin="http://localhost:3000")
    assert (preflight.status, preflight.code) == (405, "method_not_allowed")


async def test_it_is_called_by_the_names_it_was_given(served: Served) -> None:
    for host in ("localhost:80", "127.0.0.1", "[::1]:8700", "api.example", "API.example:443"):
        assert (await served.get("/health", host=host)).status == 200
    for host in ("other.example", "api.example.evil", "127.0.0.2"):
        assert (await served.get("/health", host=host)).code == "misdirected"


async def test_every_answer_is_kept_by_nobody_and_is_what_it_says(served: Served) -> None:
    for path in ("/agents", "/nothing", "/health", "/openapi.json", "/tokens"):
        headers = (await served.get(path)).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["referrer-policy"] == "no-referrer"


async def test_other_methods_are_told_what_is_allowed(served: Served) -> None:
    reply = await served.ask("PATCH", "/mcp-servers/x")
    assert (reply.status, reply.headers["allow"]) == (405, "DELETE, GET, HEAD, PUT")
    assert (await served.ask("DELETE", "/runs")).headers["allow"] == "GET, HEAD, POST"
    assert (await served.ask("TRACE", "/agents")).status == 405


async def test_head_is_get_without_the_content(served: Served) -> None:
    for path in ("/agents", "/health", "/openapi.json", "/events"):
        reply = await served.ask("HEAD", path)
        assert (reply.status, reply.content) == (200, b"")
    assert (await served.ask("HEAD", "/mcp-servers/x")).status == 404


@pytest.mark.promise("R18")
async def test_no_path_leads_outside(served: Served, tmp_path: Path) -> None:
    (tmp_path / "agents-secret").write_text("canary")
    for path in (
        "/agents/..%2f..%2fregistry.keys", "/agents/%2e%2e/registry.keys", "/agents-secret",
        "/agents/x/../../registry.keys",
        "/mcp-servers/x/document", "/runs/..%2fx/stop", "/api/v1/../registry.keys", "/api/v1", "/api/v1/", "/", "//",
        "/agents/", "/agents//document", "/agents/%ff", "/agents/%00", "/agents/a/b/c/d",
    ):  # fmt: skip
        reply = await served.get(path)
        assert reply.status in {404, 405}, path
        assert b"canary" not in reply.content


async def test_too_many_headers_are_refused(served: Served) -> None:
    many = {f"x-{number}": "1" for number in range(120)}
    reply = await served.get("/agents", **many)
    assert (reply.status, reply.code) == (431, "headers_too_large")


async def test_figures_and_readiness_come_from_the_application(tmp_path: Path) -> None:
    answers = [(200, "ready"), (503, "calls cannot be recorded")]
    async with service(tmp_path, metrics=lambda: "outfitter_calls_total 1\n", ready=lambda: answers[0]) as served:
        assert (await served.get("/ready")).content == b"ready"
        del answers[0]
        reply = await served.nobody().get("/ready")
        assert (reply.status, reply.code) == (503, "not_ready")
        assert (await served.get("/metrics")).content == b"outfitter_calls_total 1\n"
        assert (await served.nobody().get("/metrics")).status == 401
    async with service(tmp_path, free=["metrics.read"]) as served:
        assert (await served.nobody().get("/metrics")).status == 200
        assert (await served.nobody().get("/agents")).status == 401


async def test_an_open_service_lets_everybody_edit_and_nobody_start_programs(tmp_path: Path) -> None:
    async with service(tmp_path, is_open=True) as served:
        guest = served.nobody()
        await guest.must("/mcp-servers", {"id": "x", "url": "http://localhost:1/mcp"})
        assert (await guest.post("/mcp-servers", {"id": "y", "command": "true"})).status == 403
        assert (await guest.get("/tokens")).status == 403
