"""Migration turns inline definitions into entries with refs, and no agent gets anything else for it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outfitter.catalog import Agent, Capability, Catalog, InlineServer, MCPServer, ServerEntry, ServerRef, ServerUse
from outfitter.errors import Refused
from outfitter.formats import migrate
from outfitter.resolution import RunPlan, resolve
from tests.formats.strategies import FILTERS, SETTINGS
from tests.shelf import a_catalog

URLS = ("http://one/mcp", "http://two/mcp")
TOOLS = ("a", "b c", "get_x", "[x]", "x")


@st.composite
def _inline(draw: st.DrawFn, alias: str) -> ServerUse:
    server = MCPServer.http(
        alias, draw(st.sampled_from(URLS)), tools=draw(FILTERS), timeout=draw(st.sampled_from([5, 30]))
    )
    return InlineServer(server, draw(SETTINGS))


@st.composite
def catalogs(draw: st.DrawFn) -> Catalog:
    """A catalog with inline servers and entries that look like them."""
    entries = [
        ServerEntry(
            MCPServer.http(name, draw(st.sampled_from(URLS)), tools=draw(FILTERS)), default_headers=draw(SETTINGS)
        )
        for name in draw(st.lists(st.sampled_from(["docs", "x", "docs-2"]), max_size=2, unique=True))
    ]
    capability = Capability("c", servers={"docs": draw(_inline("docs"))} if draw(st.booleans()) else {})
    agents = [
        Agent(name, capabilities=draw(st.sampled_from([(), ("c",)])), servers={"x": draw(_inline("x"))})
        for name in ("ann", "bob")
    ]
    return Catalog.of(entries, [capability], agents)


def _got(plan: RunPlan) -> object:
    return {
        alias: (
            server.definition.value.transport,
            server.definition.value.limits,
            server.headers,
            server.removed,
            [tool for tool in TOOLS if server.allows(tool)],
        )
        for alias, server in plan.servers.items()
    }


@pytest.mark.promise("MIGRATE-KEEPS")
@settings(max_examples=60)
@given(catalogs())
def test_every_agent_gets_the_same_before_and_after(catalog: Catalog) -> None:
    after = migrate(catalog).catalog
    for name in catalog.agents:
        try:
            before = resolve(name, catalog)
        except Refused:
            with pytest.raises(Refused):
                resolve(name, after)
            continue
        plan = resolve(name, after)
        assert _got(plan) == _got(before)
        assert not [notice for notice in plan.notices if notice.code == "inline_server"]


@pytest.mark.promise("MIGRATE-KEEPS")
@settings(max_examples=40)
@given(catalogs())
def test_migrating_again_changes_nothing(catalog: Catalog) -> None:
    once = migrate(catalog).catalog
    assert migrate(once).moves == ()
    assert migrate(once).catalog == once


@pytest.mark.promise("MIGRATE-KEEPS")
def test_document_4s_scattered_urls_become_one_entry_each() -> None:
    neo4j = '{"mcpServers": {"neo4j": {"type": "http", "url": "http://localhost:9003/mcp/"}}}'
    catalog = a_catalog(
        {},
        {
            "atlassian-agent": '{"mcpServers": {"atlassian": {"type": "http", "url": "http://localhost:9000/mcp"}}}',
            "neo4j-agent": neo4j,
        },
        {"neo4j-knowledge-graph": neo4j},
    )
    migration = migrate(catalog)
    assert set(migration.catalog.servers) == {"neo4j", "atlassian"}
    assert [(move.user, move.entry_id, move.is_new) for move in migration.moves] == [
        ("capability 'neo4j-knowledge-graph'", "neo4j", True),
        ("agent 'atlassian-agent'", "atlassian", True),
        ("agent 'neo4j-agent'", "neo4j", False),
    ]


@pytest.mark.promise("MIGRATE-KEEPS")
def test_an_entry_that_would_add_headers_is_pointed_out_and_not_reused() -> None:
    entry = ServerEntry(MCPServer.http("docs", "http://one/mcp"), default_headers={"X-A": "1"})
    agent = Agent("a", servers={"docs": InlineServer(MCPServer.http("docs", "http://one/mcp"))})
    migration = migrate(Catalog.of([entry], [], [agent]))
    (move,) = migration.moves
    assert (move.entry_id, move.is_new, move.similar) == ("docs-2", True, "docs")
    assert migration.catalog.agents["a"].servers["docs"] == ServerRef("docs-2")
