"""Document 4's examples through the use cases: servers, agents, the resolved blueprint, three agents on one server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outfitter.coordinator import Coordinator, Draft
from outfitter.storage import User
from tests.coordinator.document4 import (
    ADMIN,
    ATLASSIAN,
    BLUEPRINT,
    CONTEXT_STORE,
    EDITOR,
    NEO4J,
    ORCHESTRATOR,
    RESEARCHER,
    RUN,
    agent,
    fill,
    fill_document_4,
    headers_of,
)

pytestmark = pytest.mark.anyio


@pytest.mark.promise("COORDINATOR-DOC4")
async def test_every_server_of_the_document_is_given_back_as_it_was_given(coordinator: Coordinator) -> None:
    for document in (CONTEXT_STORE, ATLASSIAN, NEO4J, ORCHESTRATOR):
        made = await coordinator.entries.create("mcp-servers", document, EDITOR)
        got = await coordinator.entries.get("mcp-servers", document["id"])
        assert made == got
        assert (json.dumps(got.document), got.etag, got.updated_by) == (json.dumps(document), '"1"', "eve")
    page = await coordinator.entries.list("mcp-servers")
    assert [shown.id for shown in page.items] == ["atlassian", "context-store", "neo4j", "orchestrator"]


@pytest.mark.promise("COORDINATOR-DOC4")
async def test_the_resolved_blueprint_is_the_printed_one_byte_for_byte(coordinator: Coordinator) -> None:
    await fill_document_4(coordinator)
    first = await coordinator.blueprints.of("project-researcher")
    assert first == BLUEPRINT
    assert await coordinator.blueprints.of("project-researcher") is first


async def test_a_change_is_in_the_next_blueprint(coordinator: Coordinator) -> None:
    await fill_document_4(coordinator)
    await coordinator.blueprints.of("project-researcher")
    moved = {**CONTEXT_STORE, "url": "https://context.example/mcp"}
    await coordinator.entries.replace("mcp-servers", "context-store", moved, '"1"', EDITOR)
    assert b"https://context.example/mcp" in await coordinator.blueprints.of("project-researcher")


@pytest.mark.promise("COORDINATOR-DOC4")
async def test_a_run_overrides_the_agent_as_the_document_says(coordinator: Coordinator) -> None:
    await fill_document_4(coordinator)
    run = await coordinator.runs.start(RUN, EDITOR)
    assert (run.state, run.agent_name, run.prompt) == ("pending", "project-researcher", "Research the API design")
    plan = (await coordinator.runs.session(run.session_id)).plan
    assert headers_of(plan, "context-store") == {
        "X-Context-Namespace": "project-beta",
        "X-Context-Scope-Filters": '{"sprint":"sprint-5"}',
        "X-API-Key": "${CONTEXT_STORE_API_KEY}",
    }
    assert headers_of(plan, "atlassian")["X-Jira-Projects"] == "BETA,BETA-OPS"


@pytest.mark.promise("COORDINATOR-DOC4")
async def test_example_1_resolves_through_a_capability_with_a_bare_alias(coordinator: Coordinator) -> None:
    store = {key: CONTEXT_STORE[key] for key in ("id", "url", "default_headers")}
    store["header_schema"] = {
        "X-Context-Namespace": {"type": "string", "required": True},
        "X-Context-Scope-Filters": {"type": "json", "required": False},
    }
    docs = {"ref": "context-store", "headers": {"X-Context-Namespace": "research-docs"}}
    refined = {"headers": {"X-Context-Scope-Filters": {"type": "sprint-artifact"}}}
    await fill(
        coordinator,
        ("mcp-servers", store),
        ("capabilities", {"name": "research-capability", "mcpServers": {"docs": docs}}),
        ("agents", agent("sprint-researcher", capabilities=["research-capability"], mcpServers={"docs": refined})),
    )
    asked = {
        "agent_name": "sprint-researcher",
        "mcp_headers": {"docs": {"X-Context-Scope-Filters": {"sprint_id": "sprint-42"}}},
    }
    assert headers_of(await coordinator.blueprints.explain("sprint-researcher", asked), "docs") == {
        "X-Context-Namespace": "research-docs",
        "X-Context-Scope-Filters": '{"sprint_id":"sprint-42"}',
    }


@pytest.mark.promise("COORDINATOR-DOC4")
async def test_three_agents_share_a_server_with_different_scopes(coordinator: Coordinator) -> None:
    await coordinator.entries.create("mcp-servers", NEO4J, EDITOR)
    scopes: dict[str, dict[str, Any]] = {
        "team-alpha-analyst": {"X-Neo4j-Partition": "team-alpha"},
        "team-beta-analyst": {"X-Neo4j-Partition": "team-beta"},
        "global-analyst": {},
    }
    for name, headers in scopes.items():
        document = agent(name, mcpServers={"kg": {"ref": "neo4j", "headers": headers}})
        await coordinator.entries.create("agents", document, EDITOR)
    for name, headers in scopes.items():
        shown = json.loads(await coordinator.blueprints.of(name))
        assert shown["mcp_servers"]["kg"] == {"type": "http", "url": "http://localhost:9003/mcp/", "headers": headers}
    users = await coordinator.entries.users("mcp-servers", "neo4j")
    assert [user.id for user in users.items] == ["global-analyst", "team-alpha-analyst", "team-beta-analyst"]


async def test_what_if_shows_before_and_after_and_stores_nothing(coordinator: Coordinator) -> None:
    await fill_document_4(coordinator)
    revision = coordinator.live.revision
    moved = {**CONTEXT_STORE, "url": "https://elsewhere.example/mcp"}
    seen = await coordinator.blueprints.what_if("project-researcher", puts=[Draft("mcp-servers", moved)])
    targets = [seen[when]["servers"][0]["target"] for when in ("before", "after")]
    assert targets == ["http://localhost:9501/mcp", "https://elsewhere.example/mcp"]
    gone = await coordinator.blueprints.what_if("project-researcher", deletes=[User("mcp-servers", "atlassian")])
    assert [problem["code"] for problem in gone["after"]["problems"]] == ["missing_ref"]
    assert "servers" in gone["before"]
    assert await coordinator.database.registry.revision() == revision
    assert (await coordinator.entries.get("mcp-servers", "context-store")).version == 1
    assert (await coordinator.entries.get("agents", "project-researcher")).document == RESEARCHER
    assert (await coordinator.entries.create("agents", agent("other"), ADMIN)).version == 1
