"""Runs whose runners die, and what executes runs: lost once, taken over, fenced; approved by an admin."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from outfitter.coordinator import MASK, Claim, Coordinator, LeaseTimes, open_coordinator
from outfitter.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidServer,
    NotApproved,
    OutfitterError,
    Refused,
    StorageUnavailable,
)
from outfitter.storage import Ending, KeyRing, RunEvent, RunnerRecord, Telling, open_database
from tests.coordinator.document4 import ADMIN, EDITOR, agent, begin, run_token

pytestmark = pytest.mark.anyio
COMMAND = {"type": "command", "command": "work", "args": ["--all"], "env": {"KEY": "CNRY-77", "HOME_OF": "${HOME}"}}


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def later(coordinator: Coordinator, seconds: float) -> Coordinator:
    """The same coordinator, to whom it seems so much later: it has been up for long."""
    clock = Clock()
    clock.now += seconds
    executions = replace(coordinator.executions, clock=clock, opened=0.0)
    return replace(coordinator, executions=executions)


@asynccontextmanager
async def another(url: str, keys: KeyRing, times: LeaseTimes | None = None) -> AsyncGenerator[Coordinator]:
    async with open_database(url, keys) as database, open_coordinator(database, times=times) as opened:
        yield opened


async def running(coordinator: Coordinator, **executor: Any) -> str:  # noqa: ANN401 - fields of an executor
    more = {"executor": {"type": "claude-code", **executor}} if executor else {}
    if "a" not in coordinator.live.catalog.agents:
        await coordinator.entries.create("agents", agent("a", **more), EDITOR)
    run = await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    await begin(coordinator, run.id)
    return run.id


@pytest.mark.promise("RUNS-LOST", "F25")
async def test_a_run_of_a_silent_runner_is_lost_once_whoever_looks(
    coordinator: Coordinator, database_url: str, keys: KeyRing
) -> None:
    ids = [await running(coordinator) for _ in range(3)]
    await coordinator.runs.stop(ids[1], EDITOR)
    await coordinator.executions.finish(ids[2], Ending(1, "done"), EDITOR)
    assert await later(coordinator, 89).executions.sweep() == ()
    lost: list[str] = []

    async def sweep(who: Coordinator) -> None:
        lost.extend(await later(who, 91).executions.sweep())

    async with another(database_url, keys) as second, anyio.create_task_group() as group:
        for who in (coordinator, second, coordinator, second):
            group.start_soon(sweep, who)
    assert sorted(lost) == sorted(ids[:2])
    for run_id in ids[:2]:
        run = await coordinator.runs.get(run_id)
        assert (run.state, run.error["code"]) == ("lost", "runner_lost")
    told = [event.subject for event in await coordinator.events.after(0, 100) if event.kind == "run.lost"]
    assert sorted(told) == sorted(f"runs/{run_id}" for run_id in ids[:2])
    tokens = {token.run_id: token.revoked_at for token in await coordinator.database.tokens.all()}
    assert all(tokens[run_id] for run_id in ids)
    with pytest.raises(Conflict):
        await coordinator.executions.finish(ids[0], Ending(1, "done"), EDITOR)


async def test_runs_are_looked_after_without_being_asked(
    coordinator: Coordinator, database_url: str, keys: KeyRing
) -> None:
    run_id = await running(coordinator)
    async with another(database_url, keys, LeaseTimes(0.1, 0.3, 0.3)):
        with anyio.fail_after(60):
            async for event in coordinator.events.follow(0):
                if event.kind == "run.lost":
                    break
    assert (await coordinator.runs.get(run_id)).state == "lost"


async def test_a_heartbeat_keeps_runs_and_a_coordinator_that_was_away_waits_for_one(coordinator: Coordinator) -> None:
    run_id = await running(coordinator)
    started_late = replace(later(coordinator, 1000).executions, opened=time.time() + 990)
    assert await started_late.sweep() == ()
    await coordinator.executions.beat(RunnerRecord("r1", 1, (run_id,)))
    assert await later(coordinator, 30).executions.sweep() == ()
    (runner,) = await coordinator.executions.runners()
    assert (runner.id, runner.is_alive) == ("r1", True)
    (runner,) = await later(coordinator, 100).executions.runners()
    assert not runner.is_alive


@pytest.mark.promise("RUNS-LOST")
async def test_a_run_that_may_be_recovered_is_taken_over_and_the_dead_runner_is_fenced(
    coordinator: Coordinator,
) -> None:
    run_id = await running(coordinator, recover=True)
    assert await later(coordinator, 100).executions.sweep() == ()
    with pytest.raises(Conflict, match="alive"):
        await begin(coordinator, run_id, "r2", instead_of="r1")
    with pytest.raises(Conflict):
        await begin(later(coordinator, 100), run_id, "r2", instead_of="r9")
    order = await begin(later(coordinator, 100), run_id, "r2", instead_of="r1")
    assert (order.attempt, order.run.owner) == (2, "r2")
    event = RunEvent("t", "2026-11-16T00:00:00.000000Z", {})
    for refused in (
        coordinator.executions.append(run_id, Telling(1, 1, [event])),
        coordinator.executions.finish(run_id, Ending(1, "done"), EDITOR),
        begin(coordinator, run_id, "r1"),
    ):
        with pytest.raises(Conflict):
            await refused
    await coordinator.executions.append(run_id, Telling(2, 1, [event]))
    assert (await coordinator.executions.finish(run_id, Ending(2, "done"), EDITOR)).state == "done"


async def test_a_run_that_nobody_recovers_is_lost_in_the_end(coordinator: Coordinator) -> None:
    run_id = await running(coordinator, recover=True)
    assert await later(coordinator, 301).executions.sweep() == (run_id,)


@pytest.mark.promise("RUNS-EVENTS-KEPT")
async def test_what_an_ended_run_told_is_kept_for_so_many_days(coordinator: Coordinator) -> None:
    over, goes_on = await running(coordinator), await running(coordinator)
    event = RunEvent("t", "2026-11-16T00:00:00.000000Z", {})
    for run_id in (over, goes_on):
        await coordinator.executions.append(run_id, Telling(1, 1, [event, event]))
    await coordinator.executions.finish(over, Ending(1, "done"), EDITOR)
    day, clock = 24 * 3600, Clock()
    assert await replace(coordinator.pruner, clock=lambda: clock.now + 1000 * day).prune() == 0, "for ever, if not said"
    keeping = replace(coordinator.pruner, keep_days=2)
    for days, gone in ((1.9, 0), (2.1, 2), (1000, 0)):
        assert await replace(keeping, clock=lambda days=days: clock.now + days * day).prune() == gone
    told = [len(await coordinator.executions.last_events(run_id)) for run_id in (over, goes_on)]
    assert told == [0, 2], "one that goes on is not touched"


@pytest.mark.promise("RUNS-TOLD")
async def test_what_is_told_of_a_run_is_kept_with_it_or_neither_is(coordinator: Coordinator) -> None:
    await coordinator.entries.create("agents", agent("a"), EDITOR)
    run = await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    before = await coordinator.events.span()

    def broken(agent: str, run_id: str, seconds: float) -> Any:  # noqa: ANN401 - a token that cannot be stored
        return replace(run_token(agent, run_id, seconds), digest="taken")

    await coordinator.database.tokens.add(replace(run_token("a", "other", 1), digest="taken"))
    with pytest.raises((Conflict, StorageUnavailable)):
        await coordinator.executions.begin(run.id, Claim("r1"), broken, EDITOR)
    assert (await coordinator.runs.get(run.id)) == run
    assert await coordinator.events.span() == before
    assert await coordinator.executions.runners() == ()


@pytest.mark.promise("EXECUTOR-APPROVED")
async def test_only_an_admin_has_programs_execute_runs_and_only_approved_ones_do(coordinator: Coordinator) -> None:
    document = agent("a", executor=COMMAND)
    entries = coordinator.entries
    with pytest.raises(Forbidden):
        await entries.create("agents", document, EDITOR)
    with pytest.raises(Forbidden):
        await entries.create("agents", agent("b", executor={"type": "openai", "env": {"LD_PRELOAD": "x"}}), EDITOR)
    made = await entries.create("agents", document, ADMIN)
    assert made.approved is False
    with pytest.raises(Refused) as refused:
        await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    assert [problem.code for problem in refused.value.problems] == ["not_approved"]
    with pytest.raises(Forbidden):
        await entries.approve("a", made.etag, EDITOR, "agents")
    approved = await entries.approve("a", made.etag, ADMIN, "agents")
    assert approved.approved is True
    run = await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    order = await begin(coordinator, run.id)
    assert order.agent["executor"] == COMMAND
    waiting = await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    other = agent("a", executor={**COMMAND, "args": ["--none"]})
    with pytest.raises(Forbidden):
        await entries.replace("agents", "a", other, approved.etag, EDITOR)
    assert (await entries.replace("agents", "a", other, approved.etag, ADMIN)).approved is False
    with pytest.raises(NotApproved):
        await begin(coordinator, waiting.id)
    ended = await coordinator.runs.get(waiting.id)
    assert (ended.state, ended.error["code"]) == ("failed", "not_approved")


@pytest.mark.promise("EXECUTOR-APPROVED")
async def test_an_editor_changes_the_rest_of_an_agent_and_its_variables_stay_sealed(coordinator: Coordinator) -> None:
    made = await coordinator.entries.create("agents", agent("a", executor=COMMAND), ADMIN)
    assert made.document["executor"]["env"] == {"KEY": MASK, "HOME_OF": "${HOME}"}
    approved = await coordinator.entries.approve("a", made.etag, ADMIN, "agents")
    changed = await coordinator.entries.replace(
        "agents", "a", {**approved.document, "system_prompt": "new"}, approved.etag, EDITOR
    )
    assert (changed.approved, changed.document["executor"]["env"]["KEY"]) == (True, MASK)
    run = await coordinator.runs.start({"agent_name": "a"}, EDITOR)
    assert (await begin(coordinator, run.id)).agent["executor"] == COMMAND
    moved = {**changed.document, "executor": {**changed.document["executor"], "command": "steal"}}
    with pytest.raises(Invalid, match="another place"):
        await coordinator.entries.replace("agents", "a", moved, changed.etag, ADMIN)
    with pytest.raises(Forbidden):
        await coordinator.entries.delete("agents", "a", changed.etag, EDITOR)


async def test_what_starts_no_program_is_chosen_by_any_editor_and_not_approved(local: Coordinator) -> None:
    made = await local.entries.create("agents", agent("a", executor={"type": "openai", "model": "m"}), EDITOR)
    assert made.approved is None
    with pytest.raises(InvalidServer):
        await local.entries.approve("a", made.etag, ADMIN, "agents")


@pytest.mark.parametrize(
    ("executor", "place"),
    [
        ({}, ""),
        ({"type": "magic"}, "type"),
        ({"type": "command"}, ""),
        ({"type": "openai", "command": "x"}, "command"),
        ({"type": "openai", "args": ["x"]}, "args"),
        ({"type": "openai", "timeout": 0}, "timeout"),
        ({"type": "openai", "concurrency": 0}, "concurrency"),
        ({"type": "openai", "concurrency": 1.5}, "concurrency"),
        ({"type": "openai", "recover": 1}, "recover"),
        ({"type": "openai", "env": {"a b": "x"}}, "env"),
        ({"type": "openai", "colour": 1}, "colour"),
        ({"type": "command", "command": "sh", "args": ["-c", "x"]}, "command"),
        ({"type": "command", "command": "x", "args": ["${SECRET_KEY}"]}, "args"),
    ],
)
async def test_a_bad_executor_is_refused_with_its_place(local: Coordinator, executor: Any, place: str) -> None:  # noqa: ANN401
    with pytest.raises(OutfitterError) as refused:
        await local.entries.create("agents", agent("a", executor=executor), ADMIN)
    error = refused.value
    first = error.problems[0] if isinstance(error, Refused) else error
    assert first.trail[:2] == (("executor", place) if place else ("executor",))
