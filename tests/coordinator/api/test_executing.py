"""Runs as runners execute them, over the wire: begun once, fenced by the attempt, told of in order, ended once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.coordinator.api.kit import Served
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio
AT = "2026-11-16T07:00:00Z"
DEEP = b'{"attempt": 1, "first": 1, "events": [{"type": "t", "at": "%b", "data": {"a": ' % AT.encode() + b"[" * 9000
HERE = {"orchestrator_mcp_url": "http://127.0.0.1:4711/mcp"}


async def pending(served: Served, **agent: Any) -> str:  # noqa: ANN401 - fields of an agent
    """A run that waits for a runner; its id."""
    if (await served.get("/mcp-servers/context-store")).status == 404:
        await served.must("/mcp-servers", CONTEXT_STORE)
        uses = {"docs": {"ref": "context-store"}}
        await served.must("/agents", {"name": "worker", "system_prompt": "Work.", "mcpServers": uses, **agent})
    return (await served.must("/runs", {"agent_name": "worker", "prompt": "go"})).json["id"]


async def begun(runner: Served, run_id: str, name: str = "r1", **more: object) -> Any:  # noqa: ANN401 - a work order
    reply = await runner.post(f"/runs/{run_id}/begin", {"runner": name, **more})
    assert reply.status == 200, reply.content
    return reply.json


def told(attempt: int, first: int, *types: str) -> dict[str, object]:
    return {"attempt": attempt, "first": first, "events": [{"type": name, "at": AT, "data": {}} for name in types]}


@pytest.mark.promise("RUNS-EXECUTED")
async def test_a_work_order_says_what_to_do_and_where_the_servers_are(served: Served) -> None:
    await served.must("/capabilities", {"name": "tidy", "text": "Tidy up."})
    executor = {"type": "claude-code", "model": "m", "timeout": 60}
    run_id = await pending(served, capabilities=["tidy"], executor=executor, role="hand")
    runner = await served.as_role("runner")
    order = await begun(runner, run_id, values=HERE)
    assert order["attempt"] == 1
    assert order["run"] == (await served.get(f"/runs/{run_id}")).json
    assert (order["run"]["state"], order["run"]["owner"], order["run"]["attempt"]) == ("running", "r1", 1)
    prompt = "Work.\n\nTidy up."
    agent = {"name": "worker", "description": "", "role": "hand", "system_prompt": prompt, "executor": executor}
    assert order["agent"] == agent
    home = f"{served.url}/mcp/worker"
    gateway = order["gateway"]
    assert (gateway["url"], gateway["servers"]) == (home, {"docs": f"{home}/docs"})
    behind_tls = await runner.post(f"/runs/{run_id}/begin", {"runner": "r1"}, x_forwarded_proto="https")
    assert behind_tls.json["gateway"]["url"].startswith("https://127.0.0.1:")
    left = datetime.fromisoformat(gateway["expires_at"]) - datetime.now(UTC)
    assert 3000 < left.total_seconds() < 3700
    tokens = {one["run_id"]: one for one in (await served.get("/tokens")).json["items"]}
    assert (tokens[run_id]["role"], tokens[run_id]["agent"]) == ("agent", "worker")


@pytest.mark.promise("RUNS-EXECUTED", "N05")
async def test_of_many_runners_one_begins_a_run_and_the_others_hear_409(served: Served) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    asked = [runner.post(f"/runs/{run_id}/begin", {"runner": f"r{number}"}) for number in range(6)]
    replies = [await one for one in asked]
    assert sorted(reply.status for reply in replies) == [200] + [409] * 5
    assert {reply.code for reply in replies if reply.status == 409} == {"conflict"}
    taken = await runner.post(f"/runs/{run_id}/begin", {"runner": "other", "instead_of": "r0"})
    assert (taken.status, taken.code) == (409, "conflict"), "the owner is alive"


@pytest.mark.promise("RUNS-EXECUTED", "N03")
async def test_what_is_sent_again_is_harmless_and_what_is_stale_is_refused(served: Served) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    first = await begun(runner, run_id, attempt=0)
    replayed = await runner.post(f"/runs/{run_id}/begin", {"runner": "r1", "attempt": 0})
    assert replayed.status == 409
    again = await begun(runner, run_id)
    assert (again["attempt"], again["run"]["started_at"]) == (2, first["run"]["started_at"])
    assert again["gateway"]["token"] != first["gateway"]["token"]
    path = f"/runs/{run_id}"
    assert (await runner.post(f"{path}/events", told(1, 1, "a"))).status == 409
    assert (await runner.post(f"{path}/finish", {"attempt": 1, "state": "done"})).status == 409
    assert (await runner.post(f"{path}/finish", {"attempt": 3, "state": "done"})).status == 409
    for _ in range(2):
        assert (await runner.post(f"{path}/events", told(2, 1, "a", "b"))).status == 204
    ending = {"attempt": 2, "state": "failed", "result": [1, None], "error": {"code": "x", "message": "y"}}
    ended = [await runner.post(f"{path}/finish", ending) for _ in range(3)]
    assert {reply.status for reply in ended} == {200}
    assert ended[0].json == ended[1].json == ended[2].json
    assert (ended[0].json["state"], ended[0].json["result"], ended[0].json["error"]) == (
        "failed", [1, None], {"code": "x", "message": "y"},
    )  # fmt: skip
    assert (await runner.post(f"{path}/finish", {"attempt": 2, "state": "done"})).status == 409
    assert (await runner.post(f"{path}/finish", {"attempt": 1, "state": "failed"})).status == 409
    assert (await runner.post(f"{path}/begin", {"runner": "r1"})).status == 409
    assert (await runner.post(f"{path}/events", told(2, 1, "a", "b"))).status == 204
    assert (await runner.post(f"{path}/events", told(2, 3, "c"))).status == 409
    kinds = [event.kind for event in await served.office.coordinator.events.after(0, 1000)]
    assert [kind for kind in kinds if kind.startswith("run.")] == [
        "run.created", "run.running", "run.running", "run.event", "run.failed",
    ]  # fmt: skip


@pytest.mark.promise("RUNS-EXECUTED", "F41")
async def test_what_a_run_tells_is_kept_in_order_and_once(served: Served) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    await begun(runner, run_id)
    path = f"/runs/{run_id}/events"
    gap = await runner.post(path, told(1, 2, "b"))
    assert (gap.status, gap.code) == (409, "conflict")
    for first, types in ((1, "ab"), (1, "abc"), (2, "bcd"), (4, "d"), (1, "a"), (5, "e")):
        assert (await runner.post(path, told(1, first, *types))).status == 204
    shown = (await served.get(f"{path}?limit=3")).json
    assert ([one["seq"] for one in shown["events"]], shown["next"]) == ([1, 2, 3], 3)
    rest = (await served.get(f"{path}?after=3")).json
    assert ([one["type"] for one in rest["events"]], rest["next"]) == (["d", "e"], None)
    last = (await served.get(f"{path}?order=newest&limit=2")).json
    assert ([one["seq"] for one in last["events"]], last["next"]) == ([5, 4], None)
    assert rest["events"][0] == {"seq": 4, "type": "d", "at": "2026-11-16T07:00:00.000000Z", "data": {}}
    told_of = [
        event.data for event in await served.office.coordinator.events.after(0, 1000) if event.kind == "run.event"
    ]
    assert [(data["seq"], data["type"], data["count"]) for data in told_of] == [
        (2, "b", 2), (3, "c", 1), (4, "d", 1), (5, "e", 1),
    ]  # fmt: skip


@pytest.mark.promise("N11")
async def test_too_much_is_refused_and_nothing_of_it_is_kept(served: Served) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    await begun(runner, run_id)
    path = f"/runs/{run_id}/events"

    def event(data: object) -> dict[str, object]:
        return {"attempt": 1, "first": 1, "events": [{"type": "t", "at": AT, "data": data}]}

    assert (await runner.post(path, event({"text": "x" * 70_000}))).status == 422
    assert (await runner.post(path, event({"text": "x" * 1_100_000}))).status == 413
    assert (await runner.post(path, DEEP)).status == 400
    assert (await runner.post(path, {**event({}), "extra": 1})).status == 422
    assert (await runner.post(path, told(1, 1, "\x1b[31m"))).status == 422
    late: dict[str, object] = {
        "attempt": 1,
        "first": 1,
        "events": [{"type": "t", "at": "2026-11-16T07:00:00", "data": {}}],
    }
    assert (await runner.post(path, late)).status == 422
    assert (await served.get(path)).json["events"] == []
    assert (await runner.post(path, event({"text": "\x00\x1b ü"}))).status == 204
    assert (await served.get(path)).json["events"][0]["data"] == {"text": "\x00\x1b ü"}


@pytest.mark.promise("RUNS-EXECUTED")
async def test_a_heartbeat_is_told_which_runs_to_stop(served: Served) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    await begun(runner, run_id)
    said = {"capacity": 4, "running": [run_id], "executors": ["command"]}
    assert (await runner.ask("PUT", "/runners/r1", said)).json == {"stop": [], "seconds": 15.0}
    assert (await served.post(f"/runs/{run_id}/stop")).json["state"] == "stopping"
    assert (await runner.ask("PUT", "/runners/r2", said)).json["stop"] == [run_id], "it is r1's"
    assert (await runner.ask("PUT", "/runners/r1", said)).json["stop"] == [run_id]
    first, second = (await served.get("/runners")).json["items"]
    assert (first["id"], first["capacity"], first["running"], first["is_alive"]) == ("r1", 4, [run_id], True)
    assert second["id"] == "r2"
    ended = await runner.post(f"/runs/{run_id}/finish", {"attempt": 1, "state": "stopped"})
    assert ended.json["state"] == "stopped"
    assert (await runner.ask("PUT", "/runners/r1", said)).json["stop"] == [run_id]
    assert (await runner.ask("PUT", "/runners/r1", {**said, "running": []})).json["stop"] == []


async def test_only_runners_and_admins_execute_runs_and_bound_ones_those_of_their_agent(served: Served) -> None:
    run_id = await pending(served)
    await served.must("/agents", {"name": "other"})
    for role in ("editor", "viewer"):
        somebody = await served.as_role(role)
        assert (await somebody.post(f"/runs/{run_id}/begin", {"runner": "x"})).status == 403
        assert (await somebody.post(f"/runs/{run_id}/finish", {"attempt": 1, "state": "done"})).status == 403
        assert (await somebody.ask("PUT", "/runners/x", {})).status == 403
        assert (await somebody.get(f"/runs/{run_id}/events")).status == 200
    stranger = await served.as_role("runner", "other")
    assert (await stranger.post(f"/runs/{run_id}/begin", {"runner": "x"})).status == 403
    mine = await served.as_role("runner", "worker")
    await begun(mine, run_id)
    assert (await mine.ask("PUT", "/runners/r1", {})).status == 200
    nobody = await served.as_role("agent", "worker")
    assert (await nobody.post(f"/runs/{run_id}/finish", {"attempt": 1, "state": "done"})).status == 403


async def test_a_run_of_an_agent_that_is_gone_has_failed_and_nobody_begins_it(served: Served) -> None:
    run_id = await pending(served)
    tag = (await served.get("/agents/worker/document")).etag
    assert (await served.ask("DELETE", "/agents/worker", if_match=tag)).status == 204
    runner = await served.as_role("runner")
    assert (await runner.post(f"/runs/{run_id}/begin", {"runner": "r1"})).code == "unknown_agent"
    shown = (await served.get(f"/runs/{run_id}")).json
    assert (shown["state"], shown["error"]["code"]) == ("failed", "unknown_agent")


@pytest.mark.promise("RUNS-EXECUTED")
async def test_another_token_does_not_act_for_a_runner(served: Served) -> None:
    run_id = await pending(served)
    mine, other = await served.as_role("runner"), await served.as_role("runner")
    await begun(mine, run_id)
    path = f"/runs/{run_id}"
    tries: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("POST", f"{path}/begin", {"runner": "r1"}),
        ("POST", f"{path}/begin", {"runner": "r2", "instead_of": "r1"}),
        ("POST", f"{path}/events", told(1, 1, "a")),
        ("POST", f"{path}/finish", {"attempt": 1, "state": "done", "result": "forged"}),
        ("PUT", "/runners/r1", {}),
    )
    for method, where, body in tries:
        reply = await other.ask(method, where, body)
        assert (reply.status, reply.code) == (409, "conflict"), where
    shown = (await served.get(path)).json
    assert (shown["state"], shown["owner"], shown["attempt"]) == ("running", "r1", 1)
    assert (await mine.post(f"{path}/events", told(1, 1, "a"))).status == 204
    assert (await mine.ask("PUT", "/runners/r1", {})).status == 200
    assert (await served.post(f"{path}/finish", {"attempt": 1, "state": "done"})).status == 200, "an admin may"


async def test_what_a_run_tells_and_answers_is_any_json(served: Served) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    await begun(runner, run_id)
    anything: dict[str, Any] = {
        "$sealed": "v1:x",
        "$secret": "y",
        "list": [{"$sealed": {}}],
        "big": 10**300,
        "small": -(10**300),
    }
    event = {"attempt": 1, "first": 1, "events": [{"type": "t", "at": AT, "data": anything}]}
    assert (await runner.post(f"/runs/{run_id}/events", event)).status == 204
    assert (await served.get(f"/runs/{run_id}/events")).json["events"][0]["data"] == anything
    ended = await runner.post(f"/runs/{run_id}/finish", {"attempt": 1, "state": "done", "result": anything})
    assert (ended.status, ended.json["result"]) == (200, anything)
    assert (await served.get(f"/runs/{run_id}")).json["result"] == anything


@pytest.mark.parametrize(
    ("value", "pointer"),
    [
        (b"1" * 400, "/list/1"),
        (b"1" * 5000, ""),
        (b"1e999", ""),
        (b"[" * 70 + b"]" * 70, "/list/1"),
    ],
    ids=["400 digits", "5000 digits", "no float", "deep"],
)
async def test_what_cannot_be_shown_again_is_refused_with_its_place(served: Served, value: bytes, pointer: str) -> None:
    run_id = await pending(served)
    runner = await served.as_role("runner")
    await begun(runner, run_id)
    told_so = b'{"list": [1, %b]}' % value
    ending = b'{"attempt": 1, "state": "done", "result": %b}' % told_so
    reply = await runner.post(f"/runs/{run_id}/finish", ending)
    assert (reply.status, reply.json["pointer"].startswith(f"/result{pointer}")) == (422, True), reply.content
    event = b'{"attempt": 1, "first": 1, "events": [{"type": "t", "at": "%b", "data": %b}]}' % (AT.encode(), told_so)
    reply = await runner.post(f"/runs/{run_id}/events", event)
    assert (reply.status, reply.json["pointer"].startswith(f"/events/0/data{pointer}")) == (422, True), reply.content
