"""Runs, sessions, recorded calls and tokens over the wire."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from outfitter.coordinator import Scope
from outfitter.storage import SqliteAudit
from tests.coordinator.api.kit import Served, service
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio


async def stage(served: Served) -> None:
    """A parent and a child agent that share a server."""
    await served.must("/mcp-servers", CONTEXT_STORE)
    for name in ("parent", "child"):
        await served.must("/agents", {"name": name, "mcpServers": {"docs": {"ref": "context-store"}}})


@pytest.mark.promise("API-RUNS")
async def test_a_child_session_names_its_parent_and_stays_in_its_scope(served: Served) -> None:
    await stage(served)
    scope = {"docs": {"X-Context-Namespace": "project-beta"}}
    parent = (await served.must("/runs", {"agent_name": "parent", "mcp_headers": scope})).json
    child = (await served.must("/runs", {"agent_name": "child", "parent_session_id": parent["session_id"]})).json
    above = (await served.get(f"/sessions/{parent['session_id']}")).json
    below = (await served.get(f"/sessions/{child['session_id']}")).json
    assert (above["parent_id"], above["children"]) == (None, [child["session_id"]])
    assert (below["parent_id"], below["children"]) == (parent["session_id"], [])
    (header,) = below["plan"]["servers"][0]["headers"]
    assert (header["value"], header["origin"]["level"]) == ("project-beta", "parent")
    lost = await served.post("/runs", {"agent_name": "child", "parent_session_id": "nothing"})
    assert lost.status == 422


@pytest.mark.promise("API-RUNS")
async def test_a_token_bound_to_an_agent_uses_sessions_of_that_agent_only(served: Served) -> None:
    await stage(served)
    theirs = (await served.must("/runs", {"agent_name": "parent"})).json
    await served.post(f"/runs/{theirs['id']}/stop")
    going_on = (await served.must("/runs", {"agent_name": "parent"})).json
    runner = await served.as_role("runner", "child")
    for session in (theirs["session_id"], going_on["session_id"], "nothing", "no id"):
        for asked in ({"parent_session_id": session}, {"type": "resume_session", "session_id": session}):
            refused = await runner.post("/runs", {"agent_name": "child", **asked})
            assert (refused.status, refused.code) == (422, "unknown_session")
            assert refused.json["detail"] == f"no session '{session}'"
    mine = (await runner.must("/runs", {"agent_name": "child"})).json
    await runner.must("/runs", {"agent_name": "child", "parent_session_id": mine["session_id"]})
    assert (await runner.post("/runs", {"agent_name": "child", "parent_session_id": 3})).code == "invalid_document"
    anybody = await served.as_role("runner")
    await anybody.must("/runs", {"agent_name": "child", "parent_session_id": going_on["session_id"]})


@pytest.mark.promise("API-RUNS")
async def test_runs_are_listed_newest_first_and_stopped_once(served: Served) -> None:
    await stage(served)
    made = [(await served.must("/runs", {"agent_name": name})).json["id"] for name in ("parent", "child", "parent")]
    page = (await served.get("/runs?limit=2")).json
    assert [run["id"] for run in page["items"]] == [made[2], made[1]]
    rest = (await served.get(f"/runs?limit=2&cursor={page['next_cursor']}")).json
    assert ([run["id"] for run in rest["items"]], rest["next_cursor"]) == ([made[0]], None)
    assert [run["id"] for run in (await served.get("/runs?agent=child")).json["items"]] == [made[1]]
    stopped = await served.post(f"/runs/{made[0]}/stop")
    assert (stopped.status, stopped.json["state"]) == (200, "stopped")
    again = await served.post(f"/runs/{made[0]}/stop")
    assert (again.status, again.code) == (409, "conflict")
    assert [run["id"] for run in (await served.get("/runs?state=stopped")).json["items"]] == [made[0]]
    sessions = (await served.get("/sessions?agent=parent")).json["items"]
    assert {session["state"] for session in sessions} == {"stopped", "pending"}
    assert (await served.get("/runs/nothing")).code == "unknown_run"
    assert (await served.get("/sessions/nothing")).code == "unknown_session"
    assert (await served.post(f"/runs/{made[1]}/stop", {"why": "no"})).status == 400


async def test_a_run_that_is_stopped_ends_its_tokens(served: Served) -> None:
    await stage(served)
    tokens = served.office.access.tokens
    run = (await served.must("/runs", {"agent_name": "child"})).json
    for bound in (run["id"], "another"):
        await tokens.issue("agent", by="test", scope=Scope("child", run_id=bound))
    assert (await served.post(f"/runs/{run['id']}/stop")).status == 200
    await tokens.issue("agent", by="test", scope=Scope("child", run_id=run["id"]), label="late")
    assert (await served.post(f"/runs/{run['id']}/stop")).status == 409
    left = {record.run_id for record in await tokens.records() if record.revoked_at is None}
    assert left == {None, "another"}


@pytest.mark.promise("API-RESOLVE")
async def test_what_a_change_would_do_is_shown_and_nothing_is_stored(served: Served) -> None:
    await stage(served)
    revision = served.office.coordinator.live.revision
    changed = CONTEXT_STORE | {"default_headers": {"X-Context-Namespace": "other"}}
    change = {"kind": "mcp-servers", "id": "context-store", "document": changed}
    shown = await served.post("/resolve", {"agent_name": "parent", "changes": [change]})
    assert shown.status == 200
    values = [shown.json[when]["servers"][0]["headers"][0]["value"] for when in ("before", "after")]
    assert values == ["default", "other"]
    gone = {"kind": "mcp-servers", "id": "context-store", "document": None}
    after = (await served.post("/resolve", {"agent_name": "parent", "changes": [gone]})).json["after"]
    assert {problem["code"] for problem in after["problems"]} == {"missing_ref"}
    run = {"mcp_headers": {"docs": {"X-Context-Namespace": "mine"}}}
    tried = (await served.post("/resolve", {"agent_name": "parent", "run": run})).json["before"]
    assert tried["servers"][0]["headers"][0]["value"] == "mine"
    assert (await served.post("/resolve", {"agent_name": "nobody"})).status == 422
    assert served.office.coordinator.live.revision == revision
    assert (await served.get("/mcp-servers/context-store")).json == CONTEXT_STORE


def recorded(folder: Path, count: int) -> SqliteAudit:
    """An audit database with some calls."""
    store = SqliteAudit(folder / "audit.sqlite")
    calls: list[dict[str, Any]] = [
        {
            "call_id": f"c{number}",
            "started_at": 1_900_000_000.0 + number,
            "agent": ("a", "b")[number % 2],
            "server": "s",
            "tool": "echo",
            "outcome": "done" if number % 3 else "refused",
            "arguments": {"path": "x"} if number == 0 else None,
        }
        for number in range(count)
    ]
    store.take("segment", 0, b"".join(json.dumps(call).encode() + b"\n" for call in calls))
    return store


@pytest.mark.promise("API-CALLS")
async def test_recorded_calls_are_filtered_and_come_in_pages(tmp_path: Path) -> None:
    async with service(tmp_path, audit=recorded(tmp_path, 10)) as served:
        page = (await served.get("/calls?limit=4")).json
        assert [call["call_id"] for call in page["items"]] == ["c0", "c1", "c2", "c3"]
        assert page["items"][0]["arguments"] == {"path": "x"}
        rest = (await served.get(f"/calls?cursor={page['next_cursor']}")).json
        assert [call["call_id"] for call in rest["items"]] == [f"c{number}" for number in range(4, 10)]
        assert rest["next_cursor"] is None
        found = (await served.get("/calls?agent=a&outcome=refused")).json["items"]
        assert [call["call_id"] for call in found] == ["c0", "c6"]
        moment = datetime.fromtimestamp(1_900_000_007, UTC).isoformat().replace("+00:00", "Z")
        late = (await served.get(f"/calls?since={moment}&limit=2")).json
        assert [call["call_id"] for call in late["items"]] == ["c7", "c8"]
        last = (await served.get(f"/calls?since={moment}&limit=2&cursor={late['next_cursor']}")).json
        assert ([call["call_id"] for call in last["items"]], last["next_cursor"]) == (["c9"], None)
        bound = await served.as_role("viewer", "b")
        assert {call["agent"] for call in (await bound.get("/calls")).json["items"]} == {"b"}
        assert (await bound.get("/calls?agent=a")).status == 403


@pytest.mark.promise("API-TOKENS")
async def test_a_token_is_shown_once_and_ends_when_it_is_taken_back(served: Served, tmp_path: Path) -> None:
    made = await served.must("/tokens", {"role": "viewer", "label": "ci", "expires_in": 3600})
    token = made.json["token"]
    assert made.headers["location"] == f"/tokens/{made.json['id']}"
    assert made.headers["cache-control"] == "no-store"
    assert (await served.get("/agents", authorization=f"Bearer {token}")).status == 200
    listed = await served.get("/tokens")
    assert token.encode() not in listed.content
    assert [(item["role"], item["label"]) for item in listed.json["items"]][1:] == [("viewer", "ci")]
    assert "digest" not in listed.json["items"][0]
    assert (await served.ask("DELETE", f"/tokens/{made.json['id']}")).status == 204
    assert (await served.get("/agents", authorization=f"Bearer {token}")).status == 401
    assert (await served.ask("DELETE", "/tokens/nothing")).status == 404
    assert not [path for path in [tmp_path / "registry.sqlite"] if token.encode() in path.read_bytes()]


async def test_a_token_that_could_never_be_used_is_not_made(served: Served) -> None:
    for wrong in (
        {},
        {"role": "king"},
        {"role": "agent"},
        {"role": "admin", "agent": "a"},
        {"role": "viewer", "expires_in": -1},
        {"role": "viewer", "expires_in": 1e300},
        {"role": "viewer", "label": "x\ny"},
        {"role": "viewer", "token": "mine"},
    ):
        assert (await served.post("/tokens", wrong)).status == 422, wrong
    for role in ("editor", "viewer", "runner"):
        somebody = await served.as_role(role)
        assert (await somebody.post("/tokens", {"role": "admin"})).status == 403
        assert (await somebody.get("/tokens")).status == 403


async def test_runs_are_listed_from_the_oldest_on_where_asked(served: Served) -> None:
    await served.must("/agents", {"name": "worker"})
    ids = [(await served.must("/runs", {"agent_name": "worker", "prompt": "x"})).json["id"] for _ in range(5)]
    first = (await served.get("/runs?state=pending&order=oldest&limit=3")).json
    assert [run["id"] for run in first["items"]] == ids[:3]
    rest = (await served.get(f"/runs?state=pending&order=oldest&limit=3&cursor={first['next_cursor']}")).json
    assert ([run["id"] for run in rest["items"]], rest["next_cursor"]) == (ids[3:], None)
    newest = (await served.get("/runs?state=pending&order=newest")).json
    assert [run["id"] for run in newest["items"]] == ids[::-1]
    assert (await served.get("/runs?order=sideways")).status == 400
