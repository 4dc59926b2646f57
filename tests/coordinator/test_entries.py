"""The life of entries: versions, conflicts, users, history, rollback, many at once, approval of programs."""

from __future__ import annotations

import asyncio
import itertools
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.coordinator import Author, Coordinator, Draft, open_coordinator
from outfitter.errors import (
    AlreadyExists,
    CommandForbidden,
    Forbidden,
    InUse,
    Invalid,
    InvalidDocument,
    InvalidServer,
    LockedHeader,
    NotApproved,
    NotFound,
    PreconditionRequired,
    Refused,
    StorageUnavailable,
    UnknownAgent,
    UnknownCapability,
    UnknownServer,
    VersionConflict,
)
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.storage import KeyRing, User, open_database
from tests.coordinator.document4 import ADMIN, CONTEXT_STORE, EDITOR, agent, fill, fill_document_4, server

pytestmark = pytest.mark.anyio
PROGRAM = {"id": "files", "command": "npx", "args": ["-y", "@example/files@1.2.3", "docs"], "env": {"MODE": "ro"}}


@pytest.mark.promise("R13")
async def test_of_two_replaces_of_one_version_the_second_is_refused(coordinator: Coordinator) -> None:
    made = await coordinator.entries.create("mcp-servers", server("one"), EDITOR)
    first, second = server("one", description="first"), server("one", description="second")
    replaced = await coordinator.entries.replace("mcp-servers", "one", first, made.etag, EDITOR)
    assert replaced.etag == '"2"'
    with pytest.raises(VersionConflict) as refused:
        await coordinator.entries.replace("mcp-servers", "one", second, made.etag, EDITOR)
    assert refused.value.current == 2
    with pytest.raises(PreconditionRequired):
        await coordinator.entries.replace("mcp-servers", "one", second, None, EDITOR)
    with pytest.raises(PreconditionRequired):
        await coordinator.entries.delete("mcp-servers", "one", None, EDITOR)
    assert (await coordinator.entries.get("mcp-servers", "one")).document == first


@pytest.mark.parametrize(("if_match", "holds"), [('W/"1"', False), ('"7", "1"', True), ("*", True), ("1", False)])
async def test_if_match_is_read_as_http_writes_it(local: Coordinator, if_match: str, holds: bool) -> None:
    await local.entries.create("mcp-servers", server("one"), EDITOR)
    try:
        await local.entries.replace("mcp-servers", "one", server("one", description="new"), if_match, EDITOR)
    except VersionConflict:
        assert not holds
    else:
        assert holds


@pytest.mark.promise("F33")
async def test_ten_replaces_at_once_are_serial(coordinator: Coordinator) -> None:
    await coordinator.entries.create("mcp-servers", server("one"), EDITOR)
    inputs = [server("one", description=f"input {number}") for number in range(10)]
    revision = coordinator.live.revision

    async def replace(document: dict[str, Any]) -> None:
        while True:
            now = await coordinator.entries.get("mcp-servers", "one")
            try:
                await coordinator.entries.replace("mcp-servers", "one", document, now.etag, EDITOR)
            except VersionConflict:
                continue
            return

    async with anyio.create_task_group() as group:
        for document in inputs:
            group.start_soon(replace, document)
    last = await coordinator.entries.get("mcp-servers", "one")
    assert (last.version, coordinator.live.revision) == (11, revision + 10)
    assert last.document in inputs
    history = (await coordinator.entries.history("mcp-servers", "one")).items
    assert [change.version for change in history] == list(range(11, 0, -1))
    assert all(newer.before == older.after for newer, older in itertools.pairwise(history))
    assert history[0].after == last.document


async def test_ten_changes_of_one_version_at_once_let_one_through(coordinator: Coordinator) -> None:
    await coordinator.entries.create("mcp-servers", server("one"), EDITOR)
    documents = [server("one", description=str(number)) for number in range(10)]
    asked = [coordinator.entries.replace("mcp-servers", "one", document, '"1"', EDITOR) for document in documents]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, VersionConflict) for answer in answers) == 9
    assert (await coordinator.entries.get("mcp-servers", "one")).version == 2


@pytest.mark.promise("R14")
async def test_what_is_used_is_not_deleted_and_forced_it_fails_closed(coordinator: Coordinator) -> None:
    await fill_document_4(coordinator)
    await coordinator.entries.create("capabilities", {"name": "c", "mcpServers": {"x": {"ref": "atlassian"}}}, EDITOR)
    with pytest.raises(InUse) as refused:
        await coordinator.entries.delete("mcp-servers", "atlassian", '"1"', EDITOR)
    users = [User("agents", "project-researcher"), User("capabilities", "c")]
    assert list(refused.value.users) == users
    assert (await coordinator.entries.get("mcp-servers", "atlassian")).users == 2
    await coordinator.entries.delete("mcp-servers", "atlassian", '"1"', EDITOR, force=True)
    with pytest.raises(Refused) as broken:
        await coordinator.blueprints.of("project-researcher")
    assert [problem.code for problem in broken.value.problems] == ["missing_ref"]
    with pytest.raises(Refused):
        await coordinator.runs.start({"agent_name": "project-researcher"}, EDITOR)
    assert (await coordinator.runs.list()).items == ()
    other = await coordinator.entries.create("mcp-servers", server("other"), EDITOR)
    assert other.version == 1, "what was broken before does not stand in anybody's way"


async def test_a_stale_ref_is_refused_when_it_is_written(local: Coordinator) -> None:
    uses = {"x": {"ref": "nowhere"}}
    for kind, document in (
        ("agents", agent("a", mcpServers=uses)),
        ("capabilities", {"name": "c", "mcpServers": uses}),
    ):
        with pytest.raises(UnknownServer):
            await local.entries.create(kind, document, EDITOR)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UnknownCapability):
        await local.entries.create("agents", agent("a", capabilities=["nothing"]), EDITOR)
    assert local.live.entries == {}


async def test_a_server_may_not_be_changed_so_that_its_users_break(coordinator: Coordinator) -> None:
    await fill_document_4(coordinator)
    locked = {**CONTEXT_STORE, "header_schema": {"X-Context-Namespace": {"type": "string", "locked": True}}}
    with pytest.raises(LockedHeader):
        await coordinator.entries.replace("mcp-servers", "context-store", locked, '"1"', EDITOR)
    assert (await coordinator.entries.get("mcp-servers", "context-store")).document == CONTEXT_STORE


async def test_an_id_is_taken_once_and_unknown_ones_are_told(coordinator: Coordinator) -> None:
    await coordinator.entries.create("agents", agent("one"), EDITOR)
    with pytest.raises(AlreadyExists):
        await coordinator.entries.create("agents", agent("one", role="other"), EDITOR)
    for kind, error in (("agents", UnknownAgent), ("capabilities", UnknownCapability), ("mcp-servers", UnknownServer)):
        with pytest.raises(error):
            await coordinator.entries.get(kind, "two")  # pyright: ignore[reportArgumentType]
        with pytest.raises(error):
            await coordinator.entries.delete(kind, "two", "*", EDITOR)  # pyright: ignore[reportArgumentType]


async def test_history_and_rollback(coordinator: Coordinator) -> None:
    first = server("one", default_headers={"X-API-Key": "CNRY-first"})
    await coordinator.entries.create("mcp-servers", first, EDITOR)
    await coordinator.entries.replace("mcp-servers", "one", server("one"), '"1"', Author("max"))
    back = await coordinator.entries.rollback("mcp-servers", "one", 1, '"2"', EDITOR)
    assert back.version == 3
    assert coordinator.live.entries[User("mcp-servers", "one")].document == first
    page = await coordinator.entries.history("mcp-servers", "one", limit=2)
    assert [(change.action, change.who) for change in page.items] == [("rollback", "eve"), ("update", "max")]
    rest = await coordinator.entries.history("mcp-servers", "one", cursor=page.next_cursor)
    assert [(change.action, change.before) for change in rest.items] == [("create", None)]
    assert rest.next_cursor is None
    assert "CNRY" not in repr((page, rest, back))
    for version in (9, 0, -1, 2**40, 2**70):
        with pytest.raises(NotFound):
            await coordinator.entries.rollback("mcp-servers", "one", version, '"3"', EDITOR)
    for name in ("a\0", "\ud800", "x" * 500):
        with pytest.raises(UnknownServer):
            await coordinator.entries.history("mcp-servers", name)
        with pytest.raises(UnknownServer):
            await coordinator.entries.get("mcp-servers", name)
    assert await coordinator.events.after(2**70) == ()
    await coordinator.entries.delete("mcp-servers", "one", '"3"', EDITOR)
    assert (await coordinator.entries.history("mcp-servers", "one", limit=1)).items[0].action == "delete"


async def test_a_rollback_to_what_does_not_hold_any_more_is_refused(local: Coordinator) -> None:
    await fill(local, ("mcp-servers", server("one")), ("agents", agent("a", mcpServers={"x": {"ref": "one"}})))
    await local.entries.replace("agents", "a", agent("a"), '"1"', EDITOR)
    await local.entries.delete("mcp-servers", "one", '"1"', EDITOR)
    with pytest.raises(UnknownServer):
        await local.entries.rollback("agents", "a", 1, '"2"', EDITOR)


async def test_many_changes_are_kept_together_or_not_at_all(coordinator: Coordinator) -> None:
    uses = {"x": {"ref": "one"}}
    drafts = [Draft("agents", agent("a", mcpServers=uses)), Draft("mcp-servers", server("one"))]
    applied = await coordinator.entries.apply(drafts, [], EDITOR)
    assert [(shown.id, shown.version) for shown in applied] == [("a", 1), ("one", 1)]
    revision = coordinator.live.revision
    again = await coordinator.entries.apply(drafts, [], EDITOR)
    assert ([shown.version for shown in again], coordinator.live.revision) == ([1, 1], revision)
    with pytest.raises(UnknownServer):
        await coordinator.entries.apply([Draft("mcp-servers", server("two"))], [User("mcp-servers", "one")], EDITOR)
    with pytest.raises(Invalid):
        await coordinator.entries.apply([Draft("mcp-servers", server("two"))] * 2, [], EDITOR)
    assert {name.id for name in coordinator.live.entries} == {"a", "one"}
    await coordinator.entries.apply([Draft("agents", agent("a"))], [User("mcp-servers", "one")], EDITOR)
    assert {name.id for name in coordinator.live.entries} == {"a"}


async def test_many_changes_at_once_are_told_one_by_one(local: Coordinator) -> None:
    drafts = [Draft("mcp-servers", server(f"s{number:03}")) for number in range(300)]
    await local.entries.apply(drafts, [], EDITOR)
    await local.entries.create("agents", agent("a"), EDITOR)
    told = await local.events.after(0, 1000)
    assert [event.seq for event in told] == list(range(1, 302))
    subjects = [f"mcp-servers/s{number:03}" for number in range(300)]
    assert [event.subject for event in told] == [*subjects, "agents/a"]


async def test_the_wait_for_a_busy_database_is_bounded_however_many_wait(tmp_path: Path, keys: KeyRing) -> None:
    path = tmp_path / "busy.db"
    async with open_database(f"sqlite:///{path}", keys, wait=0.3) as database, open_coordinator(database) as busy:
        with closing(sqlite3.connect(path, isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            asked = [busy.entries.create("mcp-servers", server(f"s{number}"), EDITOR) for number in range(20)]
            with anyio.fail_after(4):
                answers = await asyncio.gather(*asked, return_exceptions=True)
            holder.execute("ROLLBACK")
        assert all(isinstance(answer, StorageUnavailable) for answer in answers)
        await busy.entries.create("mcp-servers", server("one"), EDITOR)


async def test_lists_come_in_pages_and_can_be_searched(coordinator: Coordinator) -> None:
    for number in range(25):
        more = {"description": "Special" if number % 10 == 3 else "plain"}
        await coordinator.entries.create("mcp-servers", server(f"s{number:02}", **more), EDITOR)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await coordinator.entries.list("mcp-servers", cursor=cursor, limit=10)
        seen += [shown.id for shown in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [f"s{number:02}" for number in range(25)]
    page = await coordinator.entries.list("mcp-servers", text="sPECIal", limit=2)
    assert ([shown.id for shown in page.items], page.next_cursor) == (["s03", "s13"], "s13")
    page = await coordinator.entries.list("mcp-servers", text="special", limit=2, cursor="s13")
    assert ([shown.id for shown in page.items], page.next_cursor) == (["s23"], None)
    assert (await coordinator.entries.list("agents")).items == ()
    for limit in (0, -1, 1001):
        with pytest.raises(Invalid):
            await coordinator.entries.list("mcp-servers", limit=limit)


async def test_a_program_is_registered_by_an_admin_and_started_once_approved(coordinator: Coordinator) -> None:
    with pytest.raises(Forbidden):
        await coordinator.entries.create("mcp-servers", PROGRAM, EDITOR)
    made = await coordinator.entries.create("mcp-servers", PROGRAM, ADMIN)
    assert made.approved is False
    await coordinator.entries.create("agents", agent("a", mcpServers={"files": {"ref": "files"}}), EDITOR)
    explained = await coordinator.blueprints.explain("a")
    assert [notice["code"] for notice in explained["notices"]] == ["not_approved"]
    assert isinstance(_armed(coordinator), NotApproved)
    with pytest.raises(Forbidden):
        await coordinator.entries.approve("files", "*", EDITOR)
    with pytest.raises(PreconditionRequired):
        await coordinator.entries.approve("files", None, ADMIN)
    with pytest.raises(VersionConflict):
        await coordinator.entries.approve("files", '"7"', ADMIN)
    assert (await coordinator.entries.approve("files", made.etag, ADMIN)).approved is True
    with pytest.raises(Forbidden):
        await coordinator.entries.delete("mcp-servers", "files", "*", EDITOR, force=True)
    with pytest.raises(Forbidden):
        await coordinator.entries.apply([Draft("agents", agent("a"))], [User("mcp-servers", "files")], EDITOR)
    assert not isinstance(_armed(coordinator), Exception)
    with pytest.raises(Forbidden):
        await coordinator.entries.replace("mcp-servers", "files", server("files"), "*", EDITOR)
    same = {**PROGRAM, "description": "the same command", "env": {"MODE": "rw"}}
    assert (await coordinator.entries.replace("mcp-servers", "files", same, "*", ADMIN)).approved is True
    for changed in ({"args": ["-y", "other@1.0.0"]}, {"cwd": "/srv"}, {"env": {"MODE": "ro", "MORE": "1"}}):
        shown = await coordinator.entries.replace("mcp-servers", "files", {**PROGRAM, **changed}, "*", ADMIN)
        assert shown.approved is False
        assert isinstance(_armed(coordinator), NotApproved)


def _armed(coordinator: Coordinator) -> object:
    return arm_each(resolve("a", coordinator.live.catalog), Supply())["files"]


@pytest.mark.promise("P02")
async def test_programs_that_run_anything_and_programs_in_place_are_refused(local: Coordinator) -> None:
    for command, args in (("sh", ["-c", "touch M"]), ("python", ["-c", "1"]), ("env", ["X=1", "sh"])):
        with pytest.raises(CommandForbidden):
            await local.entries.create("mcp-servers", {"id": "x", "command": command, "args": args}, ADMIN)
    inline = agent("a", mcpServers={"x": {"command": "npx", "args": ["-y", "p@1.0.0"]}})
    with pytest.raises(InvalidServer):
        await local.entries.create("agents", inline, ADMIN)
    with pytest.raises(InvalidDocument):
        await local.entries.create("agents", agent("a", system_prompt_file="/etc/passwd"), ADMIN)
    assert local.live.entries == {}


async def test_a_change_of_another_coordinator_is_seen(
    coordinator: Coordinator, database_url: str, keys: KeyRing
) -> None:
    heard: asyncio.Queue[int] = asyncio.Queue()
    coordinator.live.on_change(lambda _catalog, revision: heard.put_nowait(revision))
    async with open_database(database_url, keys) as database, open_coordinator(database) as other:
        await other.entries.create("mcp-servers", server("one"), EDITOR)
        with anyio.fail_after(10):
            assert await heard.get() == 1
    assert "one" in coordinator.live.catalog.servers


async def test_every_change_is_told_once_and_without_values(coordinator: Coordinator) -> None:
    await coordinator.entries.create("mcp-servers", server("one", default_headers={"X-API-Key": "CNRY-1"}), EDITOR)
    await coordinator.entries.replace("mcp-servers", "one", server("one"), '"1"', EDITOR)
    await coordinator.entries.delete("mcp-servers", "one", '"2"', EDITOR)
    told = await coordinator.events.after(0)
    assert [(event.kind, event.subject) for event in told] == [
        ("entry.created", "mcp-servers/one"),
        ("entry.updated", "mcp-servers/one"),
        ("entry.deleted", "mcp-servers/one"),
    ]
    assert "CNRY" not in repr(told)
    stream = coordinator.events.follow(1)
    with anyio.fail_after(10):
        assert [(await anext(stream)).seq, (await anext(stream)).seq] == [2, 3]
        await coordinator.events.publish("test.done", "x", {})
        assert (await anext(stream)).kind == "test.done"
    await stream.aclose()
