"""A catalog folder and the registry: what differs, what is applied, what is left alone."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.catalog import Catalog, JsonValue
from outfitter.coordinator import MASK, Author, Coordinator, Files, Followed, open_coordinator
from outfitter.errors import OutfitterError, VersionConflict
from outfitter.storage import KeyRing, Put, User, open_database
from tests.shelf import a_catalog, codes_of

pytestmark = pytest.mark.anyio
ME, FOLDER = Author("me", is_admin=True), Author("folder", is_admin=True)
SERVER: dict[str, JsonValue] = {
    "name": "X",
    "url": "http://localhost:9/mcp",
    "header_schema": {"X-API-Key": {"type": "string", "sensitive": True}},
    "default_headers": {"X-API-Key": "the-old-secret", "X-Open": "seen"},
}
PROGRAM: dict[str, JsonValue] = {"name": "P", "command": "npx", "args": ["-y", "thing"]}
OLD = "the-old-secret"
AGENT: dict[str, JsonValue] = {"mcpServers": {"x": {"ref": "x"}}}


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[tuple[Files, Coordinator]]:
    url = f"sqlite:///{folder / 'registry.sqlite'}"
    async with (
        open_database(url, KeyRing(folder / "registry.keys"), wait=30.0) as database,
        open_coordinator(database) as coordinator,
    ):
        yield Files(coordinator.entries, coordinator.live), coordinator


@pytest.fixture
async def place(tmp_path: Path) -> AsyncGenerator[tuple[Files, Coordinator]]:
    async with opened(tmp_path) as found:
        yield found


def catalog(description: str = "", secret: str = OLD, **servers: dict[str, JsonValue]) -> Catalog:
    headers: dict[str, JsonValue] = {"X-API-Key": secret, "X-Open": "seen"}
    server: dict[str, JsonValue] = {**SERVER, "description": description, "default_headers": headers}
    return a_catalog({"x": server, **servers}, {"a": AGENT})


def actions(plan: Any) -> dict[str, str]:  # noqa: ANN401 - a plan of files
    return {f"{step.name.kind}/{step.name.id}": step.action for step in plan.steps}


async def test_a_plan_names_every_field_that_differs_and_shows_no_secret(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    plan, waiting = await files.apply(catalog(), ME)
    assert actions(plan) == {"mcp-servers/x": "create", "agents/a": "create"}
    assert waiting == ()
    plan = await files.plan(catalog("new", "the-new-secret", p=PROGRAM))
    assert actions(plan) == {"mcp-servers/p": "create", "mcp-servers/x": "update", "agents/a": "unchanged"}
    (update,) = (step for step in plan.steps if step.action == "update")
    found = {one.path: (one.before, one.after) for one in update.differences}
    assert found == {"/description": (None, "new"), "/default_headers/X-API-Key": (MASK, MASK)}
    assert next(step for step in plan.steps if step.name.id == "p").command == "npx -y thing"
    assert "secret" not in repr(plan)
    assert coordinator.live.revision == 1, "a plan changes nothing"


async def test_a_new_entry_with_a_whole_shelf_of_secrets_shows_none(place: tuple[Files, Coordinator]) -> None:
    files, _ = place
    plan = await files.plan(catalog())
    assert "the-old-secret" not in repr([step.differences for step in plan.steps])
    assert MASK in repr([step.differences for step in plan.steps])


async def test_applying_is_all_or_nothing(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    await files.apply(catalog(), ME)
    broken = a_catalog({"x": {**SERVER, "description": "new"}}, {"a": {"mcpServers": {"x": {"ref": "gone"}}}})
    with pytest.raises(OutfitterError) as refused:
        await files.apply(broken, ME)
    assert "missing_ref" in codes_of(refused.value) or "unknown_server" in codes_of(refused.value)
    assert coordinator.live.revision == 1
    assert "description" not in (await coordinator.entries.get("mcp-servers", "x")).document


async def test_an_unchanged_catalog_makes_no_new_version(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    await files.apply(catalog("d"), ME)
    plan, _ = await files.apply(catalog("d"), ME)
    assert plan.changes == ()
    assert coordinator.live.revision == 1


async def test_only_prune_takes_away_and_not_what_is_used(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    await files.apply(catalog(y={**SERVER, "name": "Y"}), ME)
    await files.apply(catalog(), ME)
    assert User("mcp-servers", "y") in coordinator.live.entries
    plan, _ = await files.apply(catalog(), ME, prune=True)
    assert actions(plan)["mcp-servers/y"] == "delete"
    assert User("mcp-servers", "y") not in coordinator.live.entries
    only_agent = a_catalog({}, {"a": AGENT})
    with pytest.raises(OutfitterError):
        await files.apply(only_agent, ME, prune=True)


async def test_what_is_exported_comes_back_without_a_difference(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    given = a_catalog(
        {"x": SERVER, "p": {**PROGRAM, "env": {"A": "a-literal-secret", "B": "${B}"}}},
        {"a": {**AGENT, "capabilities": ["c"], "system_prompt": "Be brief."}},
        {"c": {"text": "Read.", "mcpServers": {"p": {"ref": "p"}}}},
    )
    await files.apply(given, ME)
    exported = await files.export()
    assert exported.hidden == ("mcp-servers/p/env/A", "mcp-servers/x/default_headers/X-API-Key")
    assert "secret" not in repr(exported).replace("$secret", "")
    shelves: dict[str, dict[str, Any]] = {"mcp-servers": {}, "capabilities": {}, "agents": {}}
    for name, document in exported.documents.items():
        shelves[name.kind][name.id] = document
    again = a_catalog(shelves["mcp-servers"], shelves["agents"], shelves["capabilities"])
    plan, _ = await files.apply(again, ME, prune=True)
    assert plan.changes == ()
    entry = coordinator.live.entries[User("mcp-servers", "p")]
    assert entry.document["env"] == {"A": "a-literal-secret", "B": "${B}"}, "a mask keeps what is stored"
    assert (await files.export(again)).known == frozenset(exported.documents)


async def test_a_mask_for_nothing_is_refused(place: tuple[Files, Coordinator]) -> None:
    files, _ = place
    with pytest.raises(OutfitterError, match="no stored value"):
        await files.plan(catalog(secret=MASK))


async def test_a_command_waits_unless_it_is_approved_with_it(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    _, waiting = await files.apply(catalog(p=PROGRAM), ME)
    assert waiting == ("p",)
    assert not coordinator.live.catalog.servers["p"].is_approved
    _, waiting = await files.apply(catalog(p={**PROGRAM, "args": ["-y", "other"]}), ME, approve=True)
    assert waiting == ()
    assert coordinator.live.catalog.servers["p"].is_approved


@pytest.mark.promise("F33")
async def test_ten_applies_at_once_come_one_after_the_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as (first, coordinator), opened(tmp_path) as (second, _):
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon((first, second)[number % 2].apply, catalog(f"input {number}"), ME)
        await coordinator.live.newest()
        history = await coordinator.entries.history("mcp-servers", "x")
        shown = await coordinator.entries.get("mcp-servers", "x")
    assert [change.version for change in history.items] == list(range(10, 0, -1))
    texts = [change.after["description"] for change in history.items if change.after is not None]
    assert sorted(texts) == [f"input {number}" for number in range(10)]
    assert shown.document["description"] == texts[0]


# ── a folder that goes on being edited ──


async def test_an_empty_registry_takes_the_whole_folder_and_its_commands(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    found = await files.follow(catalog(p=PROGRAM), None, FOLDER)
    assert {name.id for name in found.taken} == {"x", "p", "a"}
    assert coordinator.live.catalog.servers["p"].is_approved
    assert (await coordinator.entries.get("agents", "a")).updated_by == "folder"


async def test_a_registry_that_others_have_filled_takes_nothing_from_a_folder_it_does_not_know(
    place: tuple[Files, Coordinator],
) -> None:
    files, coordinator = place
    await files.apply(catalog("team"), ME)
    found = await files.follow(catalog("mine", p=PROGRAM), None, FOLDER)
    assert (found.taken, found.drifted) == ((), ())
    assert User("mcp-servers", "p") not in coordinator.live.entries
    found = await files.follow(catalog("mine again"), found.applied, FOLDER)
    assert [name.id for name in found.drifted] == ["x"]
    assert (await coordinator.entries.get("mcp-servers", "x")).document["description"] == "team"


async def test_a_changed_file_is_taken_if_nobody_changed_the_entry(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    found = await files.follow(catalog("one", y={**SERVER, "name": "Y"}), None, FOLDER)
    found = await files.follow(catalog("two", y={**SERVER, "name": "Y"}), found.applied, FOLDER)
    assert [name.id for name in found.taken] == ["x"]
    found = await files.follow(catalog("two"), found.applied, FOLDER)
    assert [name.id for name in found.taken] == ["y"], "a file that is gone takes its entry along"
    assert User("mcp-servers", "y") not in coordinator.live.entries
    assert (await files.follow(catalog("two"), found.applied, FOLDER)).taken == ()


async def test_an_entry_that_was_changed_elsewhere_is_not_overwritten(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    both = catalog("one", y={**SERVER, "name": "Y"})
    found = await files.follow(both, None, FOLDER)
    await files.apply(catalog("by the API", y={**SERVER, "name": "other"}), ME)
    assert (await files.follow(both, found.applied, FOLDER)).drifted == (), "no file has changed"
    found = await files.follow(catalog("two"), found.applied, FOLDER)
    assert {name.id for name in found.drifted} == {"x", "y"}
    assert found.taken == ()
    assert (await coordinator.entries.get("mcp-servers", "x")).document["description"] == "by the API"
    found = await files.follow(catalog("by the API", y={**SERVER, "name": "other"}), found.applied, FOLDER)
    assert (found.taken, found.drifted) == ((), ()), "they have met again"
    assert [n.id for n in (await files.follow(catalog("three"), found.applied, FOLDER)).taken] == ["x", "y"]


async def test_a_command_of_the_folder_is_approved_though_the_first_try_broke_off(
    place: tuple[Files, Coordinator],
) -> None:
    files, coordinator = place
    await files.apply(catalog(p=PROGRAM), FOLDER)
    assert not coordinator.live.catalog.servers["p"].is_approved
    await files.follow(catalog(p=PROGRAM), None, FOLDER)
    assert coordinator.live.catalog.servers["p"].is_approved


async def test_what_is_applied_is_the_plan_that_was_confirmed(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    await files.apply(catalog(), ME)
    plan = await files.plan(catalog("new"), prune=True)
    await coordinator.entries.create("agents", {"name": "late"}, ME)
    with pytest.raises(VersionConflict):
        await files.apply(catalog("new"), ME, prune=True, confirmed=plan.revision)
    assert User("agents", "late") in coordinator.live.entries, "nobody has seen that it would go"
    plan = await files.plan(catalog("new"), prune=True)
    done, _ = await files.apply(catalog("new"), ME, prune=True, confirmed=plan.revision)
    assert actions(done)["agents/late"] == "delete"


async def test_the_folder_is_compared_with_what_stands_there_when_its_turn_comes(
    place: tuple[Files, Coordinator],
) -> None:
    files, coordinator = place
    found = await files.follow(catalog("one"), None, FOLDER)
    results: list[Followed] = []

    async def follow() -> None:
        results.append(await files.follow(catalog("by the file"), found.applied, FOLDER))

    async with anyio.create_task_group() as group, coordinator.database.registry.changing("somebody") as writing:
        stored = await writing.entry("mcp-servers", "x")
        assert stored is not None
        group.start_soon(follow)
        for _ in range(20):
            await anyio.wait_all_tasks_blocked()
        document = {**stored.document, "description": "by the API"}
        await writing.put(Put("mcp-servers", "x", document, stored.sealed, stored.version))
    assert [(one.taken, [name.id for name in one.drifted]) for one in results] == [((), ["x"])]
    assert (await coordinator.entries.get("mcp-servers", "x")).document["description"] == "by the API"


async def test_an_empty_registry_takes_the_folder_whatever_was_taken_before(tmp_path: Path) -> None:
    async with opened(tmp_path / "old") as (files, _):
        known = (await files.follow(catalog(), None, FOLDER)).applied
    async with opened(tmp_path / "new") as (files, coordinator):
        assert {name.id for name in (await files.follow(catalog(), known, FOLDER)).taken} == {"x", "a"}
        assert set(coordinator.live.catalog.agents) == {"a"}


async def test_a_mask_in_a_file_is_kept_by_the_rules_of_the_api(place: tuple[Files, Coordinator]) -> None:
    files, coordinator = place
    await files.apply(catalog(), ME)
    header_schema: JsonValue = {"X-API-Key": {"type": "string", "sensitive": False}}
    headers: JsonValue = {"X-API-Key": MASK, "X-Open": "seen"}
    shown = a_catalog({"x": {**SERVER, "header_schema": header_schema, "default_headers": headers}}, {"a": AGENT})
    assert OLD not in repr((await files.plan(shown)).steps)
    with pytest.raises(OutfitterError, match="readable"):
        await files.apply(shown, ME)
    assert coordinator.live.revision == 1
