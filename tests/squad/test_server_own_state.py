"""Outfitter's own state where there is no ``.squad`` folder: the registry on both databases, or the catalog folder."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.app import Settings, open_team
from outfitter.basics import Secret
from outfitter.coordinator import Author, Coordinator, open_coordinator
from outfitter.errors import NotFound
from outfitter.squad import TeamState
from outfitter.storage import (
    Ending,
    Journal,
    KeyRing,
    RunEvent,
    RunRecord,
    Taking,
    Telling,
    TokenRecord,
    drain,
    open_audit,
    open_database,
)
from tests.squad.server_kit import LIMIT, SERVE, digest_of, speaking

pytestmark = pytest.mark.anyio
WHO = Author("ann", is_admin=True)
CANARY = "canary-of-a-header"


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a machine with a registry, in a file or in a PostgreSQL."""
    state = tmp_path / "state"
    state.mkdir()
    url = None if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    return Settings(tmp_path / "outfitter", tmp_path / "secrets", state, None if url is None else Secret(url))


def url_of(settings: Settings) -> str:
    return (
        f"sqlite:///{settings.state / 'registry.sqlite'}" if settings.database is None else settings.database.reveal()
    )


async def fill(settings: Settings) -> None:
    """A registry with two agents, a run that is done, one that waits, and two recorded calls."""
    keys = KeyRing(settings.state / "registry.keys")
    async with open_database(url_of(settings), keys) as database, open_coordinator(database) as coordinator:
        server = {"id": "docs", "url": "https://docs.example.com/mcp", "default_headers": {"X-Key": CANARY}}
        await coordinator.entries.create("mcp-servers", server, WHO)
        for name, role in (("writer", "Tester"), ("boss", "Lead")):
            document = {
                "name": name,
                "role": role,
                "description": f"the {role.lower()}",
            }
            await coordinator.entries.create("agents", document, WHO)
        done = await start(coordinator, "writer", "Write the report\nwith care")
        await start(coordinator, "boss", "Plan the week")
        await execute(coordinator, done)
    record_calls(settings)


async def start(coordinator: Coordinator, agent: str, prompt: str) -> str:
    asked = {"type": "start_session", "agent_name": agent, "prompt": prompt}
    return (await coordinator.runs.start(asked, WHO)).id


async def execute(coordinator: Coordinator, run_id: str) -> None:
    def tell(run: RunRecord) -> tuple[str, str, Mapping[str, Any]]:
        return f"run.{run.state}", f"runs/{run.id}", {"agent": run.agent_name}

    at, executing = "2026-11-16T08:00:00.000000Z", coordinator.database.executing
    token = TokenRecord("t", "digest", "agent", at, "ann", agent="writer", run_id=run_id)
    run = await executing.begin(run_id, Taking("runner", token), tell)
    usage = RunEvent("usage", at, {"input_tokens": 120, "output_tokens": 30})
    await executing.append(
        run_id, Telling(run.attempt, 1, [usage]), lambda one, _new: ("run.event", f"runs/{one.id}", {})
    )
    await executing.finish(run_id, Ending(run.attempt, "done", "the report"), tell)


def record_calls(settings: Settings) -> None:
    journal, audit = Journal(settings.state / "j"), open_audit(settings.state, settings.database)
    for number, outcome in enumerate(("done", "failed")):
        record = {"call_id": f"c{number}", "agent": "writer", "outcome": outcome, "started_at": 1.0e9, "duration": 0.5}
        journal.make_room()
        journal.append(json.dumps(record).encode() + b"\n")
    journal.close()
    drain(settings.state / "j", audit)
    audit.close()


@pytest.fixture
async def team(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A filled registry, in a folder without a ``.squad``."""
    monkeypatch.chdir(tmp_path)
    await fill(settings)
    return settings


@pytest.mark.promise("SQUAD-OWN")
async def test_agents_runs_changes_and_calls_are_the_team(team: Settings) -> None:
    async with open_team(team) as opened:
        state = opened.state
        members = {member.id: member for member in (await state.roster()).value}
        history = (await state.history("writer")).value
        backlog = (await state.backlog()).value
        metrics = (await state.metrics()).value
        status = {name: (await state.status(name)).value for name in members}
        decisions = (await state.decisions()).value
        found = (await state.search("tester")).value
        with pytest.raises(NotFound):
            await state.history("ghost")
        told = opened.told
    assert told.startswith("Outfitter's own state, by the registry")
    assert {name: member.role for name, member in members.items()} == {"writer": "Tester", "boss": "Lead"}
    assert (history[0].title.split(" (")[0], history[0].text) == (
        "done: Write the report",
        "Asked: Write the report\nwith care\nResult: the report",
    )
    assert [(item.title, item.assignee, item.state) for item in backlog.items] == [("Plan the week", "boss", "pending")]
    assert {one.agent: (one.tasks, one.input_tokens, one.calls, one.failed_calls) for one in metrics.usage} == {
        "writer": (1, 120, 2, 1),
        "boss": (1, 0, 0, 0),
    }
    assert (status["writer"].last_outcome, status["boss"].status) == ("done", "waiting")
    assert [decision.title.split(" (")[0] for decision in decisions] == [
        "Created agents/boss",
        "Created agents/writer",
        "Created mcp-servers/docs",
    ]
    assert {decision.author for decision in decisions} == {"ann"}
    assert [one.decision.title.split(" (")[0] for one in found] == ["Created agents/writer"]
    assert CANARY not in repr(decisions) + "".join(decision.text for decision in decisions)


@pytest.mark.promise("SQUAD-OWN")
async def test_what_changes_in_the_registry_is_told(team: Settings) -> None:
    keys = KeyRing(team.state / "registry.keys")
    async with (
        open_team(team) as opened,
        open_database(url_of(team), keys) as database,
        open_coordinator(database) as coordinator,
    ):
        entries = coordinator.entries
        heard = await changes_after(
            opened.state, lambda number: entries.create("agents", {"name": f"third-{number}"}, WHO)
        )
        assert {"squad://roster", "squad://agents", "squad://decisions"} <= heard
        assert "third-0" in {member.id for member in (await opened.state.roster()).value}
        heard = await changes_after(opened.state, lambda _: start(coordinator, "third-0", "Go"))
        assert {"squad://backlog", "squad://agents/third-0/history", "squad://agents/third-0/status"} <= heard


async def changes_after(state: TeamState, act: Callable[[int], Awaitable[object]]) -> set[str]:
    """What is told of first when something is done, again and again until somebody listens."""
    heard, told = set[str](), anyio.Event()
    async with aclosing(state.changes()) as changes:

        async def hear() -> None:
            heard.update(await anext(changes))
            told.set()

        with anyio.fail_after(LIMIT):
            async with anyio.create_task_group() as group:
                group.start_soon(hear)
                for number in itertools.count():
                    await act(number)
                    with anyio.move_on_after(2):
                        await told.wait()
                        break
    return heard


@pytest.mark.promise("SQUAD-OWN")
async def test_without_a_registry_the_catalog_folder_is_the_team(tmp_path: Path) -> None:
    agents = tmp_path / "outfitter" / "agents"
    agents.mkdir(parents=True)
    (agents / "tester.json").write_text(json.dumps({"name": "tester", "role": "Tester", "description": "tests"}))
    before = digest_of(agents / "tester.json")
    async with speaking("legacy", SERVE, tmp_path, {"OUTFITTER_CATALOG": str(tmp_path / "outfitter")}) as lines:
        listed = (await lines.ask("resources/list"))["result"]["resources"]
        texts = {one["uri"]: await _text(lines, one["uri"]) for one in listed}
        (agents / "second.json").write_text(json.dumps({"name": "second"}))
        again = (await lines.ask("resources/list"))["result"]["resources"]
        (agents / "second.json").unlink()
    assert [member["id"] for member in texts["squad://roster"]["members"]] == ["tester"]
    assert texts["squad://backlog"]["source"] == "catalog"
    assert "no registry" in texts["squad://agents/tester/history"]["notes"][0]
    assert "squad://agents/second/status" in [one["uri"] for one in again]
    assert "by the catalog folder" in "".join(lines.said)
    assert digest_of(tmp_path / "outfitter" / "agents" / "tester.json") == before
    assert not await anyio.Path(tmp_path / "state").exists(), "nothing is made"


async def _text(lines: Any, uri: str) -> dict[str, Any]:  # noqa: ANN401 - the kit's
    answer = await lines.ask("resources/read", {"uri": uri})
    return json.loads(answer["result"]["contents"][0]["text"])


@pytest.mark.promise("SQUAD-OWN")
async def test_a_catalog_that_cannot_be_read_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outfitter" / "agents").mkdir(parents=True)
    (tmp_path / "outfitter" / "agents" / "broken.json").write_text("{")
    async with open_team(Settings(tmp_path / "outfitter", tmp_path / "secrets", tmp_path / "state")) as opened:
        told = await opened.state.roster()
    assert told.value == ()
    assert "cannot be read" in told.notes[0]
