"""The cases about headers over the wire: what is refused at each level where a header can be given."""

from __future__ import annotations

from typing import Any

import pytest

from outfitter.resolution import wants_of
from tests.coordinator.api.kit import Reply, Served

pytestmark = pytest.mark.anyio

URL = "http://localhost:9501/mcp"
LEVELS = ("registry", "capability", "agent", "run")
BAD_VALUES = ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\0b", "a\u0085b", "a\u2028b", " a", "a "]
BAD_NAMES = ["X A", "X:A", "X,A", "", "X-Ä"]
NOT_OURS = [
    "Mcp-Method", "Mcp-Name", "Mcp-Param-x", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "Accept",
    "Content-Type", "Host",
]  # fmt: skip


async def stage(served: Served, schema: dict[str, Any] | None = None, **defaults: str) -> None:
    """One server, one agent that uses it."""
    given = {name.replace("_", "-"): value for name, value in defaults.items()}
    await served.must("/mcp-servers", {"id": "s", "url": URL, "header_schema": schema or {}, "default_headers": given})
    await served.must("/agents", {"name": "a", "mcpServers": {"s": {"ref": "s"}}})


async def give(served: Served, level: str, headers: dict[str, Any]) -> Reply:
    """Set headers at a level."""
    if level == "registry":
        return await served.post("/mcp-servers", {"id": "t", "url": URL, "default_headers": headers})
    uses = {"mcpServers": {"s": {"ref": "s", "headers": headers}}}
    if level == "capability":
        return await served.post("/capabilities", {"name": "c"} | uses)
    if level == "agent":
        return await served.post("/agents", {"name": "b"} | uses)
    return await served.post("/runs", {"agent_name": "a", "mcp_headers": {"s": headers}})


@pytest.mark.promise("H01")
@pytest.mark.promise("H02")
@pytest.mark.parametrize("level", LEVELS)
async def test_no_level_takes_a_value_that_is_more_than_a_value(served: Served, level: str) -> None:
    await stage(served)
    for value in BAD_VALUES:
        reply = await give(served, level, {"X-A": value})
        assert reply.status == 422, (value, reply.content)
        assert reply.codes & {"invalid_header", "invalid_run"}
    assert (await served.get("/runs")).json["items"] == []


@pytest.mark.promise("H03")
@pytest.mark.promise("H05")
@pytest.mark.promise("H07")
@pytest.mark.parametrize("level", LEVELS)
async def test_no_level_takes_a_name_that_is_none_or_not_ours(served: Served, level: str) -> None:
    await stage(served)
    for name in (*BAD_NAMES, *NOT_OURS, "X_API_Key"):
        reply = await give(served, level, {"X-API-Key": "1", name: "1"})
        assert reply.status == 422, (name, reply.content)


@pytest.mark.promise("H06")
async def test_two_spellings_are_one_header_and_explain_shows_both(served: Served) -> None:
    await stage(served, X_Scope="registry")
    made = await give(served, "agent", {"x-scope": "agent"})
    assert made.status == 201
    (server,) = (await served.get("/agents/b?explain=true")).json["servers"]
    (header,) = server["headers"]
    assert header["value"] == "agent"
    assert [overruled["value"] for overruled in header["overruled"]] == ["registry"]
    assert len((await served.get("/agents/b")).json["mcp_servers"]["s"]["headers"]) == 1


@pytest.mark.promise("H09")
@pytest.mark.promise("RUN-REFUSED")
async def test_a_run_does_not_remove_what_is_locked_or_required_and_hears_every_problem(served: Served) -> None:
    schema = {"X-Locked": {"type": "string", "locked": True}, "X-Needed": {"type": "string", "required": True}}
    await stage(served, schema, X_Locked="alpha", X_Needed="here")
    for value in (None, "beta"):
        locked = await give(served, "run", {"X-Locked": value})
        assert locked.status == 422
        assert "locked_header" in locked.codes
    needed = await give(served, "run", {"X-Needed": None})
    assert needed.status == 422
    assert "missing_header" in needed.codes
    both = await give(served, "run", {"X-Needed": None, "X-Locked": None})
    assert {"locked_header", "missing_header"} <= both.codes
    unknown = await served.post("/runs", {"agent_name": "nobody"})
    assert (unknown.status, "unknown_agent" in unknown.codes) == (422, True)
    for path in ("/runs", "/sessions"):
        assert (await served.get(path)).json["items"] == []
    assert (await served.office.coordinator.events.after(0)) == tuple(
        event for event in await served.office.coordinator.events.after(0) if not event.kind.startswith("run.")
    )


@pytest.mark.promise("H13")
@pytest.mark.parametrize("value", ["${SECRET_CANARY}", {"$secret": "canary"}])
async def test_what_comes_with_a_run_stays_what_it_is(served: Served, value: str | dict[str, str]) -> None:
    await stage(served, {"X-A": {"type": "string" if isinstance(value, str) else "json"}})
    reply = await give(served, "run", {"X-A": value})
    assert reply.status == 201, reply.content
    session = (await served.get(f"/sessions/{reply.json['session_id']}")).json
    (header,) = session["plan"]["servers"][0]["headers"]
    assert header["value"] == (value if isinstance(value, str) else '{"$secret":"canary"}')
    plan = await served.office.coordinator.runs.plan_of(reply.json["session_id"])
    assert not wants_of(plan)
