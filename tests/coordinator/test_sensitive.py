"""Sensitive literals: sealed at rest, masked wherever they are shown, kept when the mask comes back."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from outfitter.coordinator import MASK, Coordinator
from outfitter.errors import Invalid, InvalidDocument
from outfitter.storage import User
from tests.coordinator.document4 import ADMIN, ATLASSIAN, EDITOR, agent, files_with, fill, server, text_of

pytestmark = pytest.mark.anyio
CANARY = "CNRY-4711"


def _secretive() -> list[tuple[Any, dict[str, Any]]]:
    """One document of each kind of place that holds a secret."""
    schema = {"X-Tenant": {"type": "string", "sensitive": True}, "X-Open": {"type": "string"}}
    auth = {"type": "oauth2_client_credentials", "token_url": "https://a.example/t", "client_id": "id"}
    uses = {"s": {"ref": "plain", "headers": {"X-Tenant": f"{CANARY}-agent", "X-Open": "seen"}}}
    return [
        ("mcp-servers", server("plain", header_schema=schema, default_headers={"X-Tenant": f"{CANARY}-registry"})),
        ("mcp-servers", server("named", default_headers={"X-Secret-Token": f"{CANARY}-named"})),
        ("mcp-servers", server("oauth", auth={**auth, "client_secret": f"{CANARY}-auth"})),
        ("mcp-servers", server("mixed", default_headers={"Authorization": f"Bearer {CANARY}-a${{X}}"})),
        ("mcp-servers", {"id": "program", "command": "npx", "env": {"TOKEN": f"{CANARY}-env", "FROM": "${TOKEN}"}}),
        ("capabilities", {"name": "c", "mcpServers": uses}),
        ("agents", agent("a", capabilities=["c"], mcpServers={"s": {"headers": {"X-Tenant": f"{CANARY}-bare"}}})),
        ("agents", agent("inline", mcpServers={"i": {"url": "https://i.example/", "headers": {"X-Api-Key": CANARY}}})),
    ]


@pytest.mark.promise("H17")
async def test_a_sensitive_literal_is_in_no_answer_event_log_or_file(
    coordinator: Coordinator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[object] = []
    with caplog.at_level(logging.DEBUG):
        for kind, document in _secretive():
            seen.append(await coordinator.entries.create(kind, document, ADMIN))
            name = document.get("id") or document["name"]
            seen.append((await coordinator.entries.history(kind, name)).items)
            seen.append((await coordinator.entries.list(kind)).items)
        for name in ("a", "inline"):
            seen.append((await coordinator.blueprints.of(name)).decode())
            seen.append(await coordinator.blueprints.explain(name))
            run = await coordinator.runs.start({"agent_name": name}, EDITOR)
            seen += [
                run,
                await coordinator.runs.session(run.session_id),
                await coordinator.runs.plan_of(run.session_id),
            ]
        seen += await coordinator.events.after(0, 1000)
    assert CANARY not in "".join(text_of(item) for item in seen)
    assert CANARY not in caplog.text
    assert files_with(tmp_path, CANARY) == []
    entry = coordinator.live.entries[User("mcp-servers", "named")]
    assert entry.document["default_headers"] == {"X-Secret-Token": f"{CANARY}-named"}, "it is kept, only not shown"


async def test_references_and_open_values_stay_readable(local: Coordinator) -> None:
    document = server(
        "one",
        header_schema={"X-API-Key": {"type": "string"}, "X-Not-A-Key": {"type": "string", "sensitive": False}},
        default_headers={"X-API-Key": {"$secret": "file:key"}, "X-Not-A-Key": "open", "Authorization": "Bearer ${T}"},
    )
    shown = await local.entries.create("mcp-servers", document, EDITOR)
    assert shown.document == document
    program = {"id": "p", "command": "npx", "env": {"A": "${A}", "B": {"$secret": "b"}, "C": "literal", "D": "${D:-x}"}}
    shown = await local.entries.create("mcp-servers", program, ADMIN)
    assert shown.document["env"] == {"A": "${A}", "B": {"$secret": "b"}, "C": MASK, "D": MASK}


async def test_a_mask_that_comes_back_keeps_what_is_stored(coordinator: Coordinator) -> None:
    for kind, document in _secretive():
        shown = await coordinator.entries.create(kind, document, ADMIN)
        assert MASK in json.dumps(shown.document)
        edited = {**shown.document, "description": "edited"}
        again = await coordinator.entries.replace(kind, shown.id, edited, shown.etag, ADMIN)
        assert again.document == edited
        stored = coordinator.live.entries[User(kind, shown.id)].document
        assert {**stored, "description": None} == {**document, "description": None}


async def test_a_mask_for_nothing_is_refused(local: Coordinator) -> None:
    document = server("one", default_headers={"X-API-Key": MASK})
    with pytest.raises(InvalidDocument) as refused:
        await local.entries.create("mcp-servers", document, EDITOR)
    assert refused.value.path == "/default_headers/X-API-Key"
    await local.entries.create("mcp-servers", server("one"), EDITOR)
    with pytest.raises(InvalidDocument):
        await local.entries.replace("mcp-servers", "one", document, '"1"', EDITOR)


async def test_a_sealed_value_cannot_be_brought_along(local: Coordinator) -> None:
    document = server("one", default_headers={"X-API-Key": {"$sealed": "abc.def"}})
    with pytest.raises(Invalid):
        await local.entries.create("mcp-servers", document, EDITOR)


async def test_what_a_schema_declares_sensitive_later_is_masked_and_sealed_from_then_on(
    coordinator: Coordinator,
) -> None:
    local = coordinator
    uses = {"x": {"ref": "atlassian", "headers": {"X-Jira-Projects": "ALPHA"}}}
    await fill(local, ("mcp-servers", ATLASSIAN), ("agents", agent("a", mcpServers=uses)))
    schema = {**ATLASSIAN["header_schema"], "X-Jira-Projects": {"type": "string", "sensitive": True}}
    await local.entries.replace("mcp-servers", "atlassian", {**ATLASSIAN, "header_schema": schema}, "*", EDITOR)
    assert (await local.entries.get("agents", "a")).document["mcpServers"]["x"]["headers"]["X-Jira-Projects"] == MASK
    assert b"ALPHA" not in await local.blueprints.of("a")
    again, first = (await local.entries.history("agents", "a")).items
    assert "ALPHA" not in repr((again, first))
    kept = await local.database.registry.changes()
    assert "ALPHA" not in repr([(change.before, change.after) for change in kept if change.kind == "agents"])
    past = await local.database.registry.past("agents", "a", 1)
    assert past is not None
    assert past.document["mcpServers"] == uses, "who rolls back has it still"
    sealed = frozenset({"/mcpServers/x/headers/X-Jira-Projects"})
    assert local.live.entries[User("agents", "a")].sealed == sealed
    told = [(event.kind, event.subject) for event in await local.events.after(2)]
    assert told == [("entry.updated", "mcp-servers/atlassian"), ("entry.updated", "agents/a")]
