"""From blank to armed, once: another type, everything filled is a Secret, everything missing is told together."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.basics import Secret
from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.errors import Refused
from outfitter.resolution import ArmedPlan, ArmedRemote, ArmedStdio, RunPlan, Supply, arm, resolve, wants_of
from tests.shelf import a_catalog, codes_of, sent_headers, supply_of


def plan_of(*servers: MCPServer) -> RunPlan:
    agent = Agent("a", servers={server.name: ServerRef(server.name) for server in servers})
    return resolve(agent, Catalog.of([ServerEntry(server) for server in servers], [], [agent]))


@pytest.mark.promise("ARMED-ONCE")
def test_an_armed_plan_is_another_type_and_cannot_be_armed_again() -> None:
    plan = plan_of(MCPServer.http("s", "http://${HOST}/mcp"))
    armed = arm(plan, supply_of({"HOST": "${HOST}"}))
    assert isinstance(armed, ArmedPlan)
    assert not isinstance(armed, RunPlan)
    assert cast("ArmedRemote", armed.servers["s"].transport).url.reveal() == "http://${HOST}/mcp"
    with pytest.raises((AttributeError, TypeError)):
        arm(cast("RunPlan", armed), supply_of({"HOST": "again"}))


@pytest.mark.promise("ARMED-ONCE")
def test_everything_in_an_armed_transport_is_a_secret() -> None:
    local = MCPServer.stdio("l", "${CMD}", ("a", "${ARG}"), cwd="${DIR}", env={"E": "${ENV}", "F": "plain"})
    remote = MCPServer.http("r", "http://${HOST}/mcp")
    variables = {"CMD": "prog", "ARG": "x y; z", "DIR": "/srv", "ENV": "e", "HOST": "h"}
    armed = arm(plan_of(local, remote), supply_of(variables))
    stdio = cast("ArmedStdio", armed.servers["l"].transport)
    assert (stdio.command, stdio.args, stdio.cwd) == (Secret("prog"), (Secret("a"), Secret("x y; z")), Secret("/srv"))
    assert stdio.env == {"E": Secret("e"), "F": Secret("plain")}
    assert cast("ArmedRemote", armed.servers["r"].transport).url == Secret("http://h/mcp")


@pytest.mark.promise("ARMED-ONCE", "H15")
def test_everything_that_is_missing_is_told_at_once() -> None:
    local = MCPServer.stdio("l", "prog", ("${ARG}",), env={"E": "${ENV}"})
    remote = MCPServer.http("r", "http://${HOST}/mcp")
    plan = plan_of(local, remote)
    assert [(want.server, want.place) for want in wants_of(plan)] == [("l", "args/0"), ("l", "env/E"), ("r", "url")]
    with pytest.raises(Refused) as refused:
        arm(plan, Supply())
    assert codes_of(refused.value) == ["unresolved"] * 3


@pytest.mark.promise("ARMED-ONCE")
@pytest.mark.parametrize("url", ["ftp://h", "http://user:CNRY@h", "http://h/\nX: 1", "", "javascript:x", "http://"])
def test_a_url_that_a_variable_makes_invalid_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(Refused) as refused:
        arm(plan_of(MCPServer.http("s", "${URL}")), supply_of({"URL": url}))
    assert codes_of(refused.value) in (["invalid_server"], ["unresolved"])
    assert "CNRY" not in str(refused.value)


@pytest.mark.promise("ARMED-ONCE")
@pytest.mark.parametrize(
    ("kind", "value", "is_good"),
    [
        ("number", "12", True),
        ("number", "twelve", False),
        ("boolean", "true", True),
        ("boolean", "yes", False),
        ("json", '{"a":1}', True),
        ("json", "{", False),
    ],
)
def test_what_a_variable_brings_in_must_be_of_the_declared_type(kind: str, value: str, *, is_good: bool) -> None:
    entry = '{"url": "http://x/mcp", "header_schema": {"X-T": {"type": "%s"}}, "default_headers": {"X-T": "${V}"}}'
    plan = resolve("a", a_catalog({"s": entry % kind}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'}))
    if is_good:
        assert sent_headers(plan, "s", supply_of({"V": value})) == {"X-T": value}
    else:
        with pytest.raises(Refused, match="once filled"):
            arm(plan, supply_of({"V": value}))


@pytest.mark.promise("PLACEHOLDER-ONCE")
@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("${A}", "one"),
        ("${A}${A}", "oneone"),
        ("${NONE:-default}", "default"),
        ("${NONE:-}", ""),
        ("${EMPTY:-default}", "default"),
        ("${A:-default}", "one"),
        ("$${A}", "${A}"),
        ("$A $ {A} {A}", "$A $ {A} {A}"),
        ("${runtime.session_id}", "ses"),
        ("${AGENT_SESSION_ID}", "ses"),
    ],
)
def test_placeholders_are_filled_as_the_design_says(written: str, sent: str) -> None:
    plan = plan_of(MCPServer.stdio("l", "prog", (written,)))
    supply = supply_of({"A": "one", "EMPTY": ""}, runtime={"runtime.session_id": "ses"})
    assert cast("ArmedStdio", arm(plan, supply).servers["l"].transport).args == (Secret(sent),)


@pytest.mark.promise("PLACEHOLDER-ONCE")
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30).filter(bool))
def test_any_value_of_a_variable_arrives_unchanged(value: str) -> None:
    plan = plan_of(MCPServer.stdio("l", "prog", ("<${A}>",), env={"E": "${A}"}))
    transport = cast("ArmedStdio", arm(plan, supply_of({"A": value})).servers["l"].transport)
    assert (transport.args, transport.env) == ((Secret(f"<{value}>"),), {"E": Secret(value)})
