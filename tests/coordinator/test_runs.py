"""Runs: resolved when they are made, refused with every problem, inherited from, stopped; credentials in memory."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.basics import Secret
from outfitter.coordinator import MASK, Coordinator, RunFilter, open_coordinator
from outfitter.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    InvalidRun,
    OutfitterError,
    Refused,
    UnknownAgent,
    UnknownRun,
    UnknownSession,
)
from outfitter.resolution import Supply, Want, arm, wants_of
from outfitter.storage import Ending, KeyRing, Put, open_database
from outfitter.upstream import fetch_supply, make_providers
from tests.coordinator.document4 import (
    ADMIN,
    ATLASSIAN,
    EDITOR,
    RUN,
    agent,
    begin,
    files_with,
    fill,
    fill_document_4,
    headers_of,
    server,
    text_of,
)

pytestmark = pytest.mark.anyio
CANARY = "CNRY-9042"
SCOPED: dict[str, Any] = server(
    "scoped",
    header_schema={
        "X-Projects": {"type": "string", "narrow": "list", "required": True},
        "X-Region": {"type": "string", "locked": True},
        "X-Filter": {"type": "json"},
        "X-API-Key": {"type": "string", "sensitive": True},
        "X-Session": {"type": "string"},
    },
    default_headers={"X-Region": "eu", "X-Session": "${AGENT_SESSION_ID}"},
)


async def _team(coordinator: Coordinator) -> None:
    """A lead with projects ALPHA and BETA, and workers whose own definition says more."""
    wide = {"s": {"ref": "scoped", "headers": {"X-Projects": "ALPHA,BETA,GAMMA", "X-Filter": {"all": True}}}}
    narrow = {
        "s": {"ref": "scoped", "headers": {"X-Projects": "ALPHA,BETA", "X-Filter": {"team": "a"}}, "tools": ["r*"]}
    }
    await fill(
        coordinator,
        ("mcp-servers", SCOPED),
        ("agents", agent("lead", mcpServers=narrow, rules=[{"tools": ["rm"], "effect": "deny"}])),
        ("agents", agent("worker", mcpServers=wide)),
        ("agents", agent("helper", mcpServers={"other": wide["s"]})),
    )


async def _start(coordinator: Coordinator, name: str, **more: Any) -> str:  # noqa: ANN401 - fields of a run
    return (await coordinator.runs.start({"agent_name": name, **more}, EDITOR)).session_id


async def _codes(coordinator: Coordinator, name: str, **more: Any) -> list[str]:  # noqa: ANN401 - fields of a run
    with pytest.raises(OutfitterError) as refused:
        await coordinator.runs.start({"agent_name": name, **more}, EDITOR)
    error = refused.value
    return [problem.code for problem in error.problems] if isinstance(error, Refused) else [error.code]


@pytest.mark.promise("COORDINATOR-RUNS")
async def test_a_refused_run_is_told_every_problem_and_leaves_nothing_behind(
    coordinator: Coordinator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await _team(coordinator)
    before = await coordinator.events.span()
    given = {
        "mcp_headers": {"s": {"X-Projects": None, "X-Region": "us"}, "nowhere": {"X-A": "1"}},
        "credentials": {"s": {"api_key": f"{CANARY}-a", "pin": f"{CANARY}-b"}},
        "prompt": "go",
    }
    with caplog.at_level(logging.DEBUG):
        codes = await _codes(coordinator, "worker", **given)
    assert sorted(codes) == ["invalid_run", "locked_header", "narrowed_header", "unknown_alias"]
    with pytest.raises(UnknownAgent):
        await coordinator.runs.start({**given, "agent_name": "nobody"}, EDITOR)
    assert (await coordinator.runs.list()).items == ()
    assert (await coordinator.runs.sessions()).items == ()
    assert await coordinator.events.span() == before
    assert CANARY not in caplog.text
    assert files_with(tmp_path, CANARY) == []


@pytest.mark.parametrize(
    "document", [None, [], {}, {"agent_name": 3}, {"agent_name": "a", "unknown": 1}, {"type": "x"}]
)
async def test_what_is_no_run_request_is_refused(local: Coordinator, document: Any) -> None:  # noqa: ANN401
    with pytest.raises(Invalid):
        await local.runs.start(document, EDITOR)


@pytest.mark.promise("H09")
async def test_a_run_cannot_take_away_a_locked_or_required_header(local: Coordinator) -> None:
    await _team(local)
    required = server("needs", header_schema={"X-Need": {"type": "string", "required": True}})
    uses = {"n": {"ref": "needs", "headers": {"X-Need": "v"}}}
    await fill(local, ("mcp-servers", required), ("agents", agent("needy", mcpServers=uses)))
    assert await _codes(local, "worker", mcp_headers={"s": {"X-Region": None}}) == ["locked_header"]
    assert await _codes(local, "needy", mcp_headers={"n": {"X-Need": None}}) == ["missing_header"]
    assert (await local.runs.list()).items == ()


@pytest.mark.promise("H10")
async def test_a_child_has_what_both_allow_and_an_empty_rest_is_refused(coordinator: Coordinator) -> None:
    await _team(coordinator)
    root = await _start(coordinator, "lead")
    child = await _start(
        coordinator, "worker", parent_session_id=root, mcp_headers={"s": {"X-Projects": "ALPHA,GAMMA"}}
    )
    plan = (await coordinator.runs.session(child)).plan
    assert headers_of(plan, "s")["X-Projects"] == "ALPHA"
    asked = {"parent_session_id": root, "mcp_headers": {"s": {"X-Projects": "GAMMA"}}}
    assert await _codes(coordinator, "worker", **asked) == ["narrowed_header"]


@pytest.mark.promise("H11")
async def test_three_deep_nobody_widens_what_the_root_has(coordinator: Coordinator) -> None:
    await _team(coordinator)
    root = await _start(coordinator, "lead", session_id="root-session")
    wider = {"X-Projects": "ALPHA,BETA,GAMMA", "X-Filter": {"everything": True}, "X-Session": "mine"}
    child = await _start(coordinator, "worker", parent_session_id=root, mcp_headers={"s": wider})
    grand = await _start(coordinator, "helper", parent_session_id=child, mcp_headers={"other": wider})
    last = await _start(coordinator, "worker", parent_session_id=grand, mcp_headers={"s": wider})
    for session, alias in ((child, "s"), (grand, "other"), (last, "s")):
        shown = await coordinator.runs.session(session)
        found = headers_of(shown.plan, alias)
        assert (found["X-Projects"], found["X-Filter"]) == ("ALPHA,BETA", '{"team":"a"}')
        assert (found["X-Region"], found["X-Session"]) == ("eu", "root-session")
        plan = await coordinator.runs.plan_of(session)
        assert not plan.servers[alias].allows("write")
        assert plan.servers[alias].decide("rm", {}).__class__.__name__ == "Deny"
    family = await coordinator.runs.session(child)
    assert (family.parent_id, family.children) == (root, (grand,))
    assert (await coordinator.runs.session(root)).children == (child,)


@pytest.mark.promise("H11")
async def test_a_child_inherits_what_the_parent_was_given_not_what_the_registry_says_now(
    coordinator: Coordinator, database_url: str, keys: KeyRing
) -> None:
    await _team(coordinator)
    root = await _start(coordinator, "lead")
    lead = coordinator.live.catalog.agents["lead"]
    assert lead.servers
    wide = {"s": {"ref": "scoped", "headers": {"X-Projects": "ALPHA,BETA,GAMMA,DELTA"}}}
    await coordinator.entries.replace("agents", "lead", agent("lead", mcpServers=wide), "*", EDITOR)
    async with open_database(database_url, keys) as database, open_coordinator(database) as restarted:
        child = await _start(restarted, "worker", parent_session_id=root)
        assert headers_of((await restarted.runs.session(child)).plan, "s")["X-Projects"] == "ALPHA,BETA"


async def test_sessions_are_at_most_so_deep(local: Coordinator) -> None:
    await local.entries.create("agents", agent("self"), EDITOR)
    session = await _start(local, "self")
    for _ in range(8):
        session = await _start(local, "self", parent_session_id=session)
    with pytest.raises(InvalidRun):
        await _start(local, "self", parent_session_id=session)
    with pytest.raises(UnknownSession):
        await _start(local, "self", parent_session_id="nobody")


@pytest.mark.promise("H17", "COORDINATOR-CREDENTIALS")
async def test_a_credential_is_held_in_memory_alone_and_forgotten_with_its_run(
    coordinator: Coordinator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await fill_document_4(coordinator)
    asked = {**RUN, "credentials": {"atlassian": {"api_key": CANARY}}}
    with caplog.at_level(logging.DEBUG):
        run = await coordinator.runs.start(asked, EDITOR)
        child = await coordinator.runs.start(
            {"agent_name": "project-researcher", "parent_session_id": run.session_id}, EDITOR
        )
        shown = [run, child, await coordinator.runs.get(run.id), (await coordinator.runs.list()).items]
        shown += [await coordinator.runs.session(s) for s in (run.session_id, child.session_id)]
        shown += [await coordinator.events.after(0, 1000), coordinator.runs]
    assert CANARY not in "".join(text_of(item) for item in shown)
    assert CANARY not in caplog.text
    assert files_with(tmp_path, CANARY) == []
    for session in (run.session_id, child.session_id):
        record = await coordinator.database.runs.session(session)
        assert record is not None
        assert CANARY not in repr(record.plan)
        assert await _sent(coordinator, session) == CANARY
    await begin(coordinator, run.id)
    await coordinator.executions.finish(run.id, Ending(1, "done", {"ok": True}), EDITOR)
    assert CANARY not in repr(await coordinator.runs.plan_of(run.session_id))
    assert await _sent(coordinator, child.session_id) == CANARY, "the child's run goes on"
    name = "project-researcher"
    assert await _codes(coordinator, name, parent_session_id=run.session_id) == ["unresolved"]
    resumed = {"type": "resume_session", "session_id": run.session_id}
    assert await _codes(coordinator, name, **resumed) == ["unresolved"]
    given = {"agent_name": name, **resumed, "credentials": {"atlassian": {"api_key": "second"}}}
    more = await coordinator.runs.start(given, EDITOR)
    assert (more.session_id, await _sent(coordinator, run.session_id)) == (run.session_id, "second")


async def _sent(coordinator: Coordinator, session: str) -> str:
    """What would be sent as the key of the tracker, once the plan is armed."""
    plan = await coordinator.runs.plan_of(session)
    armed = arm(plan, Supply({"CONTEXT_STORE_API_KEY": Secret("c"), "ATLASSIAN_API_KEY": Secret("a")}))
    transport: Any = armed.servers["atlassian"].transport
    return transport.headers["X-API-Key"].reveal()


@pytest.mark.promise("H13")
async def test_what_a_run_gives_is_never_expanded(local: Coordinator) -> None:
    await _team(local)
    literal = "${SECRET_CANARY}"
    session = await _start(local, "worker", mcp_headers={"s": {"X-API-Key": literal, "X-Filter": {"a": literal}}})
    plan = await local.runs.plan_of(session)
    assert "SECRET_CANARY" not in repr([want.need for want in wants_of(plan)])
    assert arm(plan, Supply(runtime={"runtime.session_id": session})).servers["s"]
    asked = {"agent_name": "worker", "mcp_headers": {"s": {"X-API-Key": {"$secret": "env:HOME"}}}}
    with pytest.raises(Invalid):
        await local.runs.start(asked, EDITOR)


@pytest.mark.promise("H14", "H15")
async def test_a_variable_that_nothing_fills_refuses_the_run_by_its_name(tmp_path: Path, keys: KeyRing) -> None:
    environment = {"A": "${B}", "B": "${A}", "SET": "x"}

    async def fetch(wants: Sequence[Want]) -> Supply:
        return fetch_supply(wants, environment, make_providers(environment, tmp_path))

    url = f"sqlite:///{tmp_path / 'r.db'}"
    async with open_database(url, keys) as database, open_coordinator(database, fetch=fetch) as opened:
        for name, value in (("cycle", "${A}"), ("unset", "${UNSET}"), ("good", "${SET}${UNSET:-d}")):
            await opened.entries.create("mcp-servers", server(name, default_headers={"X-V": value}), EDITOR)
            await opened.entries.create("agents", agent(name, mcpServers={"x": {"ref": name}}), EDITOR)
        assert await _codes(opened, "unset") == ["unresolved"]
        with pytest.raises(Refused, match="unresolved: UNSET"):
            await opened.runs.start({"agent_name": "unset"}, EDITOR)
        for name in ("cycle", "good"):
            assert await _start(opened, name)
        malformed = server("malformed", default_headers={"X-V": "${not a name}"})
        await opened.entries.create("mcp-servers", malformed, EDITOR)
        await opened.entries.create("agents", agent("m", mcpServers={"x": {"ref": "malformed"}}), EDITOR)
        assert await _codes(opened, "m") == ["unresolved"]
        assert len((await opened.runs.list()).items) == 2


async def test_a_required_program_that_is_not_approved_refuses_the_run(local: Coordinator) -> None:
    program = {"id": "p", "command": "npx", "args": ["-y", "x@1.0.0"], "required": True}
    await fill(local, ("mcp-servers", program), ("agents", agent("a", mcpServers={"p": {"ref": "p"}})))
    assert await _codes(local, "a") == ["not_approved"]
    await local.entries.approve("p", "*", ADMIN)
    assert await _start(local, "a")


async def test_sensitive_headers_of_a_run_are_masked(coordinator: Coordinator) -> None:
    await _team(coordinator)
    headers = {"s": {"X-API-Key": CANARY, "X-Projects": "ALPHA"}}
    run = await coordinator.runs.start({"agent_name": "worker", "mcp_headers": headers}, EDITOR)
    assert run.mcp_headers == {"s": {"X-API-Key": "********", "X-Projects": "ALPHA"}}
    assert (await coordinator.runs.get(run.id)) == run
    assert CANARY not in text_of(await coordinator.runs.session(run.session_id))


async def test_a_run_is_stopped_once_whoever_asks(coordinator: Coordinator) -> None:
    await coordinator.entries.create("agents", agent("a"), EDITOR)
    pending = await coordinator.runs.start({"agent_name": "a", "run_id": "r1"}, EDITOR)
    assert (await coordinator.runs.stop(pending.id, EDITOR)).state == "stopped"
    with pytest.raises(Conflict):
        await coordinator.runs.stop(pending.id, EDITOR)
    with pytest.raises(Conflict):
        await begin(coordinator, pending.id)
    running = await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    assert (await begin(coordinator, running.id)).run.state == "running"
    states = [(await coordinator.runs.stop(running.id, EDITOR)).state for _ in range(2)]
    assert states == ["stopping", "stopping"]
    with pytest.raises(Conflict):
        await _start(coordinator, "a", parent_session_id=running.session_id)
    ended = await coordinator.executions.finish(running.id, Ending(1, "failed", error={"code": "x"}), EDITOR)
    assert ended.error == {"code": "x"}
    with pytest.raises(UnknownRun):
        await coordinator.runs.stop("nobody", EDITOR)
    with pytest.raises(AlreadyExists):
        await coordinator.runs.start({"agent_name": "a", "run_id": "r1"}, EDITOR)
    told = [event.kind for event in await coordinator.events.after(0) if event.kind.startswith("run.")]
    assert told == ["run.created", "run.stopped", "run.created", "run.running", "run.stopping", "run.failed"]


async def test_lists_of_runs_and_sessions_come_in_pages_and_by_filter(coordinator: Coordinator) -> None:
    await fill(coordinator, ("agents", agent("a")), ("agents", agent("b")))
    ids = [(await coordinator.runs.start({"agent_name": "ab"[n % 2]}, EDITOR)).id for n in range(5)]
    first = await coordinator.runs.list(limit=3)
    rest = await coordinator.runs.list(limit=3, cursor=first.next_cursor)
    assert [run.id for run in (*first.items, *rest.items)] == ids[::-1]
    assert rest.next_cursor is None
    assert [run.id for run in (await coordinator.runs.list(RunFilter(agent="b"))).items] == [ids[3], ids[1]]
    assert (await coordinator.runs.list(RunFilter(state="running"))).items == ()
    sessions = await coordinator.runs.sessions(RunFilter(agent="a"), limit=2)
    assert (len(sessions.items), sessions.items[0].plan) == (2, None)
    assert len((await coordinator.runs.sessions(RunFilter(agent="a"), cursor=sessions.next_cursor)).items) == 1
    for name in ("a\0", "\ud800", "a b", "x" * 500):
        assert (await coordinator.runs.list(RunFilter(agent=name))).items == ()
        assert (await coordinator.runs.list(RunFilter(session_id=name))).items == ()
        assert (await coordinator.runs.sessions(RunFilter(agent=name))).items == ()
        with pytest.raises(UnknownRun):
            await coordinator.runs.get(name)
        with pytest.raises(UnknownSession):
            await coordinator.runs.session(name)
    for cursor in ("x", "-1", "1 ", "9" * 30):
        with pytest.raises(Invalid):
            await coordinator.runs.list(cursor=cursor)


async def test_runs_that_start_at_once_all_stand(coordinator: Coordinator) -> None:
    await coordinator.entries.create("agents", agent("a"), EDITOR)
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(_start, coordinator, "a")
    assert len({run.id for run in (await coordinator.runs.list()).items}) == 20


async def test_a_run_of_a_deleted_agent_is_refused(local: Coordinator) -> None:
    await fill(local, ("mcp-servers", ATLASSIAN), ("agents", agent("a", mcpServers={"x": {"ref": "atlassian"}})))
    session = await _start(local, "a")
    await local.entries.delete("agents", "a", "*", EDITOR)
    with pytest.raises(UnknownAgent):
        await _start(local, "a")
    assert (await local.runs.session(session)).agent == "a", "what was planned stays to be read"
    await local.runs.stop((await local.runs.session(session)).run_id, EDITOR)
    with pytest.raises(UnknownAgent):
        await _start(local, "a", type="resume_session", session_id=session)


async def test_a_session_goes_on_only_with_the_command_that_is_approved_now(local: Coordinator) -> None:
    program: dict[str, Any] = {"id": "p", "command": "npx", "args": ["-y", "x@1.0.0"]}
    await fill(local, ("mcp-servers", program), ("agents", agent("a", mcpServers={"p": {"ref": "p"}})))
    await local.entries.approve("p", "*", ADMIN)
    run = await local.runs.start({"agent_name": "a"}, EDITOR)
    await local.runs.stop(run.id, EDITOR)
    resumed = {"type": "resume_session", "session_id": run.session_id}
    await local.entries.replace("mcp-servers", "p", {**program, "args": ["-y", "x@2.0.0"]}, "*", ADMIN)
    assert await _codes(local, "a", **resumed) == ["not_approved"]
    await local.entries.approve("p", "*", ADMIN)
    assert await _codes(local, "a", **resumed) == ["not_approved"], "another command is approved"
    await local.entries.replace("mcp-servers", "p", program, "*", ADMIN)
    await local.entries.approve("p", "*", ADMIN)
    assert await _start(local, "a", **resumed) == run.session_id


async def test_a_session_is_resumed_once(local: Coordinator) -> None:
    await local.entries.create("agents", agent("a"), EDITOR)
    run = await local.runs.start({"agent_name": "a"}, EDITOR)
    await local.runs.stop(run.id, EDITOR)
    outcomes: list[str] = []

    async def resume() -> None:
        try:
            outcomes.append(await _start(local, "a", type="resume_session", session_id=run.session_id))
        except Conflict:
            outcomes.append("conflict")

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(resume)
    assert sorted(outcomes) == ["conflict"] * 3 + [run.session_id]
    assert len((await local.runs.list()).items) == 2


async def test_a_run_that_gives_a_mask_is_refused(local: Coordinator) -> None:
    await _team(local)
    masks = {"mcp_headers": {"s": {"Authorization": MASK, "X-API-Key": MASK}}, "credentials": {"s": {"token": MASK}}}
    assert await _codes(local, "worker", **masks) == ["invalid_run"] * 3
    assert (await local.runs.list()).items == ()


async def test_a_secret_provider_that_does_not_exist_hides_no_other_problem(tmp_path: Path, keys: KeyRing) -> None:
    async def fetch(wants: Sequence[Want]) -> Supply:
        return fetch_supply(wants, {}, make_providers({}, tmp_path))

    url = f"sqlite:///{tmp_path / 'r.db'}"
    async with open_database(url, keys) as database, open_coordinator(database, fetch=fetch) as opened:
        for name, value in (("odd", "nowhere:x"), ("gone", "file:x"), ("folder", "file:state")):
            entry = server(name, default_headers={"X-V": {"$secret": value}, "X-W": "${UNSET}"})
            async with database.registry.changing("an older program") as writing:  # this one would not store the first
                await writing.put(Put("mcp-servers", name, entry))
        await opened.live.newest()
        both = {"odd": {"ref": "odd"}, "gone": {"ref": "gone"}}
        only = {"x": {"ref": "folder", "headers": {"X-W": "set"}}}
        await fill(opened, ("agents", agent("a", mcpServers=both)), ("agents", agent("b", mcpServers=only)))
        with pytest.raises(Refused) as refused:
            await opened.runs.start({"agent_name": "a"}, EDITOR)
        told = sorted(problem.message.partition(" (")[0] for problem in refused.value.problems)
        assert told == ["unresolved: UNSET"] * 2 + [f"unresolved: secret '{ref}'" for ref in ("file:x", "nowhere:x")]
        assert {problem.code for problem in refused.value.problems} == {"unresolved"}
        assert await _codes(opened, "b") == ["secret_unavailable"]


async def test_a_credential_is_forgotten_when_another_process_ends_its_run(
    local: Coordinator, tmp_path: Path, keys: KeyRing
) -> None:
    await fill_document_4(local)
    asked = {**RUN, "credentials": {"atlassian": {"api_key": CANARY}}}
    run, other = [await local.runs.start(asked | {"run_id": name}, EDITOR) for name in ("r1", "r2")]
    url = f"sqlite:///{tmp_path / 'registry.db'}"
    async with open_database(url, keys) as database, open_coordinator(database) as elsewhere:
        await elsewhere.runs.stop(run.id, EDITOR)
    with pytest.raises(OutfitterError):
        await _sent(local, run.session_id)
    async with open_database(url, keys) as database, open_coordinator(database) as elsewhere:
        await elsewhere.runs.stop(other.id, EDITOR)
    async with anyio.create_task_group() as group:
        group.start_soon(local.runs.run)
        with anyio.fail_after(10):
            while "CredentialBook(0 runs)" not in repr(local.runs):  # noqa: ASYNC110 - nothing is told of it
                await anyio.sleep(0.01)
        group.cancel_scope.cancel()


async def test_a_credential_that_nobody_asks_for_is_forgotten_after_a_day(local: Coordinator) -> None:
    await fill_document_4(local)
    hours = [0.0]
    aged = replace(local, runs=replace(local.runs, clock=lambda: hours[0] * 3600))
    run = await aged.runs.start({**RUN, "credentials": {"atlassian": {"api_key": CANARY}}}, EDITOR)
    again = {**RUN, "run_id": run.id, "credentials": {"atlassian": {"api_key": "other"}}}
    with pytest.raises(AlreadyExists):
        await aged.runs.start({**again, "session_id": "another"}, EDITOR)
    for hours[0] in (23, 46):
        assert await _sent(aged, run.session_id) == CANARY
    hours[0] = 71
    with pytest.raises(OutfitterError):
        await _sent(aged, run.session_id)
    assert "CredentialBook(0 runs)" in repr(aged.runs)
