"""What holds for every catalog, run and parent: the properties of resolution."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from outfitter.basics import Level, Secret
from outfitter.catalog import (
    Agent,
    Catalog,
    HeaderSettings,
    JsonValue,
    MCPServer,
    RunRequest,
    ServerEntry,
    ServerRef,
)
from outfitter.errors import Refused
from outfitter.policy import Allow, Ask, Decision
from outfitter.resolution import PlannedServer, RunPlan, explain, parse_template, resolve, text_of
from tests.resolution.worlds import PATHS, TOOLS, World, worlds
from tests.shelf import sent_headers, supply_of

FEWER = settings(max_examples=60)  # making a world takes longer than resolving it


def _level_settings(world: World, number: int) -> list[HeaderSettings]:
    """What registry, capabilities, agent and run say about server 's', in the order of the chain."""
    run = world.runs[number]
    agent = world.catalog.agents[run.agent_name]
    said = [world.catalog.servers["s"].default_headers]
    said += [world.catalog.capabilities[name].servers["s"].headers for name in agent.capabilities]
    return [*said, agent.servers["s"].headers, run.mcp_headers.get("s", {})]


def _first_value(world: World, number: int, header: str) -> JsonValue:
    for level in _level_settings(world, number):
        for name, value in level.items():
            if name.lower() == header.lower() and value is not None:
                assert not isinstance(value, Secret)
                return value if isinstance(value, str | list) else None
    return None


def _shown(server: PlannedServer, header: str) -> str | None:
    found = server.headers.get(header)
    return None if found is None else text_of(found.value)


def _items(text: str | None) -> set[str]:
    if text is None:
        return set()
    return set(json.loads(text)) if text.startswith("[") else set(text.split(","))


@pytest.mark.promise("RESOLVE-DETERMINISTIC")
@FEWER
@given(worlds(), st.randoms(use_true_random=False))
def test_the_same_input_gives_the_same_plan_in_whatever_order_the_catalog_was_loaded(
    world: World, random: Random
) -> None:
    plan = world.plan()
    event("refused" if plan is None else "resolved")
    agents, capabilities = list(world.catalog.agents.values()), list(world.catalog.capabilities.values())
    random.shuffle(agents)
    random.shuffle(capabilities)
    again = World(Catalog.of(world.catalog.servers.values(), capabilities, agents), world.runs).plan()
    assert again == plan
    if plan is not None and again is not None:
        assert json.dumps(explain(again).to_json()) == json.dumps(explain(plan).to_json())


@pytest.mark.promise("RESOLVE-DETERMINISTIC")
@FEWER
@given(worlds())
def test_resolving_leaves_its_input_as_it_was(world: World) -> None:
    before = repr(world), [dict(level) for level in _level_settings(world, 0)]
    world.plan()
    assert (repr(world), [dict(level) for level in _level_settings(world, 0)]) == before


@pytest.mark.promise("LOCK-HOLDS")
@FEWER
@given(worlds())
def test_no_later_level_changes_or_removes_a_locked_header(world: World) -> None:
    plan = world.plan()
    first = _first_value(world, 0, "X-Locked")
    if plan is None or first is None:
        return
    assert _shown(plan.servers["s"], "X-Locked") == first


@pytest.mark.promise("NARROW-HOLDS")
@FEWER
@given(worlds(), st.sampled_from(["X-List", "X-Json-List"]))
def test_no_later_level_widens_or_removes_a_narrowed_header(world: World, header: str) -> None:
    plan = world.plan()
    first = _first_value(world, 0, header)
    if plan is None or first is None:
        return
    kept = _items(_shown(plan.servers["s"], header))
    assert kept
    assert kept <= _items(first if isinstance(first, str) else json.dumps(first))


@pytest.mark.promise("NARROW-HOLDS")
@FEWER
@given(worlds(), worlds(), st.sampled_from(["X-List", "X-Json-List"]))
def test_adding_a_level_never_adds_a_member(world: World, other: World, header: str) -> None:
    with_run = world.plan()
    bare = replace(world.runs[0], mcp_headers=other.runs[0].mcp_headers)
    another = World(world.catalog, (bare,)).plan()
    first = _first_value(World(world.catalog, (RunRequest("root"),)), 0, header)
    without = World(world.catalog, (RunRequest("root"),)).plan()
    if first is None or without is None:
        return
    for plan in (plan for plan in (with_run, another) if plan is not None):
        assert _items(_shown(plan.servers["s"], header)) <= _items(_shown(without.servers["s"], header))


@pytest.mark.promise("FILTER-NARROWS")
@FEWER
@given(worlds())
def test_a_tool_that_any_level_keeps_out_is_kept_out(world: World) -> None:
    plan = world.plan()
    if plan is None:
        return
    agent = plan.agent
    uses = [world.catalog.capabilities[name].servers["s"] for name in agent.capabilities] + [agent.servers["s"]]
    filters = [world.catalog.servers["s"].server.tools, *(use.tools for use in uses if isinstance(use, ServerRef))]
    server = plan.servers["s"]
    for tool in TOOLS:
        assert server.allows(tool) == all(level.allows(tool) for level in filters)
        assert server.allows(tool) or not isinstance(server.decide(tool, {}), Allow | Ask)
    assert server.offered_tools() == tuple(tool for tool in TOOLS if server.allows(tool))


def _strictness(decision: Decision) -> int:
    return 0 if isinstance(decision, Allow) else 1 if isinstance(decision, Ask) else 2


def _assert_within(child: RunPlan, parent: RunPlan) -> None:
    """The child's server gives nothing that the parent's does not."""
    inner, outer = child.servers["s"], parent.servers["s"]
    supply = supply_of({"VAR": "v", "KEY": "k"}, runtime={"runtime.session_id": child.session_id or ""})
    parents = supply_of({"VAR": "v", "KEY": "k"}, runtime={"runtime.session_id": parent.session_id or ""})
    mine, theirs = sent_headers(child, "s", supply), sent_headers(parent, "s", parents)
    for name, value in theirs.items():
        if name in {"X-List", "X-Json-List"}:
            assert _items(mine[name]) <= _items(value)
        else:
            assert mine[name] == value
    assert not {name.lower() for name in outer.removed} & {name.lower() for name in inner.headers}
    for tool in TOOLS:
        assert outer.allows(tool) or not inner.allows(tool)
        for path in PATHS:
            arguments: dict[str, JsonValue] = {"path": path}
            assert _strictness(inner.decide(tool, arguments)) >= _strictness(outer.decide(tool, arguments))


@pytest.mark.promise("CHILD-WITHIN-PARENT", "H11")
@settings(max_examples=120)
@given(worlds())
def test_every_descendants_plan_is_within_the_plans_of_all_its_ancestors(world: World) -> None:
    lineage = world.lineage()
    event(f"{len(lineage)} deep")
    for depth, child in enumerate(lineage):
        for parent in lineage[:depth]:
            _assert_within(child, parent)


@pytest.mark.promise("ONE-HEADER-PER-NAME")
@FEWER
@given(worlds())
def test_case_variants_never_give_two_headers(world: World) -> None:
    for plan in world.lineage():
        server = plan.servers["s"]
        names = [name.lower() for name in (*server.headers, *server.removed)]
        assert len(names) == len(set(names))


@pytest.mark.promise("RESOLVE-EXPLAINED")
@FEWER
@given(worlds())
def test_every_value_names_a_level_that_really_gave_it(world: World) -> None:
    plan = world.plan()
    if plan is None:
        return
    given_at = {
        Level.REGISTRY: world.catalog.servers["s"].default_headers,
        Level.AGENT: plan.agent.servers["s"].headers,
        Level.RUN: world.runs[0].mcp_headers.get("s", {}),
    } | {Level.CAPABILITY: {n: v for c in plan.agent.capabilities for n, v in _capability(world, c).items()}}
    for name, header in plan.servers["s"].headers.items():
        spoken = {spelled.lower() for spelled in given_at[header.origin.level]}
        assert name.lower() in spoken
        assert all(name.lower() in {n.lower() for n in given_at[o.origin.level]} for o in header.overruled)


def _capability(world: World, name: str) -> HeaderSettings:
    return world.catalog.capabilities[name].servers["s"].headers


@pytest.mark.promise("PLACEHOLDER-ONCE", "H14")
@given(st.text(st.sampled_from("AB${}:-x "), max_size=30), st.text(st.sampled_from("AB${}"), max_size=10))
def test_a_text_is_cut_so_that_filling_it_needs_one_pass_only(text: str, value: str) -> None:
    try:
        parts = parse_template(text)
    except ValueError:
        return
    filled = "".join(part if isinstance(part, str) else value for part in parts)
    count = sum(not isinstance(part, str) for part in parts)
    assert len(filled) == sum(len(part) for part in parts if isinstance(part, str)) + count * len(value)
    assert "".join(part for part in parts if isinstance(part, str)).count("${") == text.count("$${")


@pytest.mark.promise("PLACEHOLDER-ONCE", "H13")
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40))
def test_whatever_a_run_says_is_sent_as_it_is(value: str) -> None:
    entry = _one_server()
    run = RunRequest("a", mcp_headers={"s": {"X-Plain": value}})
    plan = resolve("a", entry, run)
    assert sent_headers(plan, "s", supply_of({"A": "filled", "B": "filled"})) == {"X-Plain": value}


def _one_server() -> Catalog:
    """One agent with one server and no headers."""
    entry = ServerEntry(MCPServer.http("s", "http://localhost:1/mcp"))
    return Catalog.of([entry], [], [Agent("a", servers={"s": ServerRef("s")})])


@pytest.mark.promise("RESOLVE-DETERMINISTIC")
@FEWER
@given(worlds())
def test_a_refusal_is_the_same_every_time(world: World) -> None:
    messages: list[str] = []
    for _ in range(2):
        try:
            resolve("root", world.catalog, world.runs[0])
        except Refused as refused:
            messages.append(str(refused))
    assert len(messages) in {0, 2}
    assert len(set(messages)) <= 1
