"""The header cases H01-H20 of the abuse list that need no network, at every level where a header can be given."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

import pytest

from outfitter.basics import Secret, SecretRef, Sourced
from outfitter.catalog import (
    Agent,
    Capability,
    Catalog,
    HeaderSchema,
    HeaderSetting,
    HeaderSettings,
    HeaderType,
    JsonValue,
    MCPServer,
    RunRequest,
    ServerEntry,
    ServerRef,
)
from outfitter.errors import Invalid, InvalidHeader, InvalidRun, OutfitterError, Refused
from outfitter.policy import Allow
from outfitter.resolution import Plain, RunPlan, Supply, arm, explain, resolve
from tests.shelf import a_catalog, a_run, blank_headers, codes_of, sent_headers, supply_of

LEVELS = ("registry", "capability", "agent", "run", "credential")
URL = "http://localhost:9501/mcp"


def plan_with(level: str, headers: HeaderSettings, schema: Mapping[str, HeaderSchema] | None = None) -> RunPlan:
    """The plan of one agent with one server 's', where these headers are given at this level."""
    at: dict[str, HeaderSettings] = {name: {} for name in LEVELS}
    at[level] = headers
    credentials = {name: Secret(str(value)) for name, value in at["credential"].items()}
    secret = {name: HeaderSchema(sensitive=True) for name in at["credential"]}
    entry = ServerEntry(
        MCPServer.http("s", URL), header_schema=secret | dict(schema or {}), default_headers=at["registry"]
    )
    capability = Capability("c", servers={"s": ServerRef("s", at["capability"])})
    agent = Agent("a", capabilities=("c",), servers={"s": ServerRef("s", at["agent"])})
    run = RunRequest(
        "a",
        mcp_headers={"s": at["run"]} if at["run"] else {},
        credentials={"s": credentials} if credentials else {},
    )
    return resolve(agent, Catalog.of([entry], [capability], [agent]), run)


BAD_VALUES = {
    "header injection": "a\r\nX-Admin: 1",
    "LF": "a\nb",
    "CR": "a\rb",
    "NUL": "a\0b",
    "U+0085": "a\u0085b",
    "U+2028": "a\u2028b",
    "leading space": " CNRY",
    "trailing space": "CNRY ",
    "tab": "a\tb",
    "DEL": "a\x7fb",
    "non-ASCII": "é",
    "too long": "a" * 8193,
}


@pytest.mark.promise("H01", "H02")
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", BAD_VALUES)
def test_a_value_that_no_header_can_carry_is_refused_where_it_is_written(level: str, kind: str) -> None:
    with pytest.raises(InvalidHeader) as error:
        plan_with(level, {"X-Scope": BAD_VALUES[kind]})
    assert "X-Scope" in str(error.value)
    assert BAD_VALUES[kind] not in str(error.value)


def _slip_in(level: str, value: str) -> Callable[[], RunPlan]:
    """A plan whose header value was changed behind the back of the checks, by whoever kept the mapping."""
    settings: dict[str, HeaderSetting] = {"X-Scope": "fine"}
    at: dict[str, HeaderSettings] = {name: {} for name in LEVELS}
    at[level] = settings
    entry = ServerEntry(MCPServer.http("s", URL), default_headers=at["registry"])
    capability = Capability("c", servers={"s": ServerRef("s", at["capability"])})
    agent = Agent("a", capabilities=("c",), servers={"s": ServerRef("s", at["agent"])})
    run = RunRequest("a", mcp_headers={"s": at["run"]})
    settings["X-Scope"] = value
    return lambda: resolve(agent, Catalog.of([entry], [capability], [agent]), run)


@pytest.mark.promise("H01")
@pytest.mark.parametrize("level", ["registry", "capability", "agent", "run"])
def test_an_injected_header_is_refused_again_when_it_is_resolved(level: str) -> None:
    with pytest.raises(Refused) as refused:
        _slip_in(level, "a\r\nX-Admin: 1")()
    assert codes_of(refused.value) == ["invalid_header"]


@pytest.mark.promise("H01")
def test_an_injected_header_of_a_parent_is_refused_when_the_child_is_resolved() -> None:
    parent = plan_with("agent", {"X-Scope": "fine"})
    server = parent.servers["s"]
    bad = Sourced(Plain("a\r\nX-Admin: 1", authored=False), server.headers["X-Scope"].origin)
    forged = replace(parent, servers={"s": replace(server, headers={"X-Scope": bad})})
    with pytest.raises(Refused) as refused:
        resolve("a", parent.catalog, RunRequest("a"), forged)
    assert codes_of(refused.value) == ["invalid_header"]


@pytest.mark.promise("H01", "H02")
@pytest.mark.parametrize("kind", BAD_VALUES)
def test_a_value_that_a_variable_brings_in_is_judged_when_it_is_filled(kind: str) -> None:
    plan = plan_with("agent", {"X-Scope": "${SCOPE}"})
    with pytest.raises(Refused) as refused:
        arm(plan, supply_of({"SCOPE": BAD_VALUES[kind]}))
    assert codes_of(refused.value) == ["invalid_header"]
    assert BAD_VALUES[kind] not in str(refused.value)


@pytest.mark.promise("H02")
@pytest.mark.parametrize("level", ["registry", "capability", "agent", "run"])
def test_a_json_header_takes_any_text_and_escapes_it(level: str) -> None:
    plan = plan_with(level, {"X-Json": {"k": "a\r\n\u2028é"}}, {"X-Json": HeaderSchema(HeaderType.JSON)})
    assert sent_headers(plan, "s") == {"X-Json": '{"k":"a\\r\\n\\u2028\\u00e9"}'}


@pytest.mark.promise("H02")
def test_a_variable_inside_a_json_header_cannot_break_out_of_its_text() -> None:
    plan = plan_with("agent", {"X-Json": {"k": "${V}"}}, {"X-Json": HeaderSchema(HeaderType.JSON)})
    (text,) = sent_headers(plan, "s", supply_of({"V": '","admin":"yes'})).values()
    assert json.loads(text) == {"k": '","admin":"yes'}


@pytest.mark.promise("H03", "H05", "H07")
@pytest.mark.parametrize("level", ["registry", "capability", "agent", "run", "schema"])
@pytest.mark.parametrize(
    "name",
    [
        "X Scope", "X:Scope", "X,Scope", "", "X-Scöpe", "X-Scope\r\nX-Admin", "X-Scope\n", "X-" + "a" * 200,
        "Mcp-Method", "Mcp-Name", "Mcp-Param-Region", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID",
        "Accept", "Content-Type", "content-length", "Host", "Connection", "Keep-Alive", "Proxy-Authorization", "TE",
        "Trailer", "Transfer-Encoding", "UPGRADE", "X_API_Key", "X-API_Key",
    ],
)  # fmt: skip
def test_a_name_that_no_level_may_set_is_refused_at_every_level(level: str, name: str) -> None:
    with pytest.raises(InvalidHeader):
        plan_with(level, {name: "v"}, {name: HeaderSchema()} if level == "schema" else None)


@pytest.mark.promise("H06")
def test_case_variants_at_two_levels_give_one_header_and_explain_shows_both() -> None:
    catalog = a_catalog(
        {"s": '{"url": "http://x/mcp", "default_headers": {"x-scope": "first"}}'},
        {"a": '{"mcpServers": {"s": {"ref": "s", "headers": {"X-Scope": "second"}}}}'},
    )
    plan = resolve("a", catalog)
    assert blank_headers(plan, "s") == {"X-Scope": "second"}
    (header,) = explain(plan).servers[0].headers
    assert (header.value, [value for value, _ in header.overruled]) == ("second", ["first"])


@pytest.mark.promise("H06")
@pytest.mark.parametrize("level", ["registry", "capability", "agent", "run"])
def test_case_variants_inside_one_level_are_refused(level: str) -> None:
    with pytest.raises(InvalidHeader, match="given twice"):
        plan_with(level, {"X-Scope": "1", "x-scope": "2"})


@pytest.mark.promise("H09")
@pytest.mark.parametrize("level", ["capability", "agent", "run"])
@pytest.mark.parametrize("value", [None, "other"])
def test_a_locked_header_is_neither_removed_nor_changed(level: str, value: str | None) -> None:
    entry = (
        '{"url": "http://x/mcp", "header_schema": {"X-Scope": {"locked": true}}, "default_headers": {"X-Scope": "v"}}'
    )
    headers: dict[str, JsonValue] = {"x-SCOPE": value}
    use: dict[str, JsonValue] = {"ref": "s", "headers": headers}
    catalog = a_catalog(
        {"s": entry},
        {"a": {"capabilities": ["c"], "mcpServers": {"s": use if level == "agent" else {"ref": "s"}}}},
        {"c": {"mcpServers": {"s": use if level == "capability" else {"ref": "s"}}}},
    )
    run = a_run({"agent_name": "a", "mcp_headers": {"s": headers} if level == "run" else {}})
    with pytest.raises(Refused) as refused:
        resolve("a", catalog, run)
    assert codes_of(refused.value) == ["locked_header"]


@pytest.mark.promise("H09")
def test_a_run_that_removes_a_required_header_is_refused() -> None:
    entry = '{"url": "http://x/mcp", "header_schema": {"X-S": {"required": true}}, "default_headers": {"X-S": "v"}}'
    catalog = a_catalog({"s": entry}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    with pytest.raises(Refused) as refused:
        resolve("a", catalog, a_run('{"agent_name": "a", "mcp_headers": {"s": {"X-S": null}}}'))
    assert codes_of(refused.value) == ["missing_header"]


NARROW = """{"url": "http://x/mcp", "header_schema": {"X-Projects": {"type": "%s", "narrow": "list"}},
             "default_headers": {"X-Projects": %s}}"""


@pytest.mark.promise("H10")
@pytest.mark.parametrize(
    ("kind", "allowed", "asked", "given"),
    [
        ("string", "ALPHA,BETA", "ALPHA,GAMMA", "ALPHA"),
        ("string", "ALPHA, BETA", "BETA", "BETA"),
        ("string", "ALPHA,BETA", "BETA,ALPHA", "ALPHA,BETA"),
        ("json", ["ALPHA", "BETA"], ["GAMMA", "BETA"], '["BETA"]'),
        ("json", [1, 2], [2, 3], "[2]"),
    ],
)
def test_a_narrowed_list_keeps_only_what_was_allowed(
    kind: str, allowed: JsonValue, asked: JsonValue, given: str
) -> None:
    catalog = a_catalog({"s": NARROW % (kind, json.dumps(allowed))}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    plan = resolve("a", catalog, a_run({"agent_name": "a", "mcp_headers": {"s": {"X-Projects": asked}}}))
    assert sent_headers(plan, "s") == {"X-Projects": given}


@pytest.mark.promise("H10")
@pytest.mark.parametrize("asked", ["GAMMA", "", "${ALPHA}", None, "alpha"])
def test_nothing_left_of_a_narrowed_list_is_an_error(asked: str | None) -> None:
    catalog = a_catalog({"s": NARROW % ("string", '"ALPHA,BETA"')}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    with pytest.raises(Refused) as refused:
        resolve("a", catalog, a_run({"agent_name": "a", "mcp_headers": {"s": {"X-Projects": asked}}}))
    assert codes_of(refused.value) == ["narrowed_header"]


def _runs_with(value: JsonValue) -> RunRequest:
    return a_run({"agent_name": "a", "mcp_headers": {"s": {"X-Projects": value}}})


@pytest.mark.promise("H11")
def test_three_deep_every_level_that_tries_to_widen_is_held_to_the_roots_scope() -> None:
    catalog = a_catalog({"s": NARROW % ("string", '"ALPHA,BETA,GAMMA"')}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    root = resolve("a", catalog, _runs_with("ALPHA,BETA"))
    child = resolve("a", catalog, _runs_with("BETA,GAMMA"), root)
    grandchild = resolve("a", catalog, _runs_with("ALPHA,BETA,GAMMA"), child)
    assert blank_headers(child, "s") == {"X-Projects": "BETA"}
    assert blank_headers(grandchild, "s") == {"X-Projects": "BETA"}
    with pytest.raises(Refused):
        resolve("a", catalog, _runs_with("GAMMA"), child)


@pytest.mark.promise("H11")
def test_three_deep_an_ordinary_header_stays_the_roots() -> None:
    catalog = a_catalog({"s": '{"url": "http://x/mcp"}'}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    root = resolve("a", catalog, _runs_with("root"))
    child = resolve("a", catalog, _runs_with("child"), root)
    grandchild = resolve("a", catalog, _runs_with(None), child)
    assert blank_headers(grandchild, "s") == {"X-Projects": "root"}
    origin = grandchild.servers["s"].headers["X-Projects"].origin
    assert [str(origin.level), str(origin.via.level if origin.via else "")] == ["parent", "parent"]


@pytest.mark.promise("H13", "PLACEHOLDER-ONCE")
@pytest.mark.parametrize("value", ["${SECRET_CANARY}", "${runtime.session_id}", "Bearer ${SECRET_CANARY:-x}", "$${A}"])
def test_a_value_that_came_with_a_run_stays_literal_for_the_run_and_its_children(value: str) -> None:
    catalog = a_catalog({"s": '{"url": "http://x/mcp"}'}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    run = a_run({"agent_name": "a", "mcp_headers": {"s": {"X-Scope": value}}})
    supply = supply_of({"SECRET_CANARY": "CNRY"}, runtime={"runtime.session_id": "CNRY"})
    parent = resolve("a", catalog, run)
    child = resolve("a", catalog, a_run('{"agent_name": "a"}'), parent)
    assert sent_headers(parent, "s", supply) == sent_headers(child, "s", supply) == {"X-Scope": value}


@pytest.mark.promise("H13")
@pytest.mark.parametrize("kind", ["json", "string"])
def test_a_secret_reference_in_a_run_stays_literal_or_is_refused(kind: str) -> None:
    entry: dict[str, JsonValue] = {"url": URL, "header_schema": {"X-Scope": {"type": kind}}}
    catalog = a_catalog({"s": entry}, {"a": '{"mcpServers": {"s": {"ref": "s"}}}'})
    run = a_run({"agent_name": "a", "mcp_headers": {"s": {"X-Scope": {"$secret": "env:SECRET_CANARY"}}}})
    supply = supply_of({"SECRET_CANARY": "CNRY"}, {"env:SECRET_CANARY": "CNRY"})
    if kind == "json":
        assert sent_headers(resolve("a", catalog, run), "s", supply) == {"X-Scope": '{"$secret":"env:SECRET_CANARY"}'}
    else:
        with pytest.raises(Refused) as refused:
            resolve("a", catalog, run)
        assert codes_of(refused.value) == ["invalid_header"]


@pytest.mark.promise("H13")
def test_a_run_made_in_python_cannot_carry_a_secret_reference_either() -> None:
    with pytest.raises(InvalidRun):
        RunRequest("a", mcp_headers={"s": {"X-Scope": SecretRef("SECRET_CANARY", "env")}})


@pytest.mark.promise("H14", "PLACEHOLDER-ONCE")
@pytest.mark.parametrize("level", ["registry", "capability", "agent"])
def test_what_comes_out_of_a_variable_is_never_looked_at_again(level: str) -> None:
    plan = plan_with(level, {"X-Scope": "${A}"})
    for value in ("${B}", "${A}", "$${B}", '{"$secret": "b"}'):
        assert sent_headers(plan, "s", supply_of({"A": value, "B": "${A}"})) == {"X-Scope": value}


@pytest.mark.promise("H15")
@pytest.mark.parametrize("level", ["registry", "capability", "agent"])
@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("${MISSING}", "MISSING"),
        ({"k": ["${MISSING}"]}, "MISSING"),
        (SecretRef("gone"), "gone"),
        ("${AGENT_SESSION_ID}", "runtime.session_id"),
    ],
)
def test_what_is_unset_is_named_with_its_server_and_level_and_never_sent(
    level: str, value: JsonValue | SecretRef, name: str
) -> None:
    plan = plan_with(level, {"X-Json": value}, {"X-Json": HeaderSchema(HeaderType.JSON)})
    with pytest.raises(Refused) as refused:
        arm(plan, Supply())
    assert codes_of(refused.value) == ["unresolved"]
    message = str(refused.value.problems[0])
    assert message.startswith("unresolved: ")
    assert all(word in message for word in (name, "server 's'", level))


@pytest.mark.promise("H15")
def test_a_placeholder_inside_a_sensitive_json_header_is_filled_and_never_sent_as_it_is_written() -> None:
    schema = {"X-Auth": HeaderSchema(HeaderType.JSON, sensitive=True)}
    plan = plan_with("agent", {"X-Auth": {"key": "${API_KEY}"}}, schema)
    with pytest.raises(Refused) as refused:
        arm(plan, Supply())
    assert codes_of(refused.value) == ["unresolved"]
    assert sent_headers(plan, "s", supply_of({"API_KEY": "k"})) == {"X-Auth": '{"key":"k"}'}


@pytest.mark.promise("H15")
@pytest.mark.parametrize("supply", [{"variables": {"V": ""}}, {"secrets": {"env:V": ""}}])
@pytest.mark.parametrize("value", ["${V}", SecretRef("V", "env")])
def test_an_empty_variable_or_secret_counts_as_unset(value: str | SecretRef, supply: dict[str, dict[str, str]]) -> None:
    with pytest.raises(Refused) as refused:
        arm(plan_with("agent", {"X-Scope": value}), supply_of(**supply))
    assert codes_of(refused.value) == ["unresolved"]


@pytest.mark.promise("H15")
@pytest.mark.parametrize("text", ["${}", "${1A}", "${A", "${A B}", "${A:=x}", "${runtime.other}"])
def test_a_malformed_placeholder_is_refused_with_its_place(text: str) -> None:
    plan = plan_with("agent", {"X-Scope": text})
    with pytest.raises(Refused) as refused:
        arm(plan, supply_of({"A": "v"}))
    (problem,) = refused.value.problems
    assert problem.code == "unresolved"
    assert all(word in str(problem) for word in ("'s'", "headers/X-Scope", "agent 'a'"))


@pytest.mark.promise("H18")
def test_tool_arguments_never_reach_the_headers() -> None:
    plan = plan_with("agent", {"X-Scope": "v"})
    before = sent_headers(plan, "s")
    arguments = cast("Mapping[str, JsonValue]", {"headers": {"X-Scope": "w"}, "_meta": {}, "Authorization": "x"})
    assert isinstance(plan.servers["s"].decide("tool", arguments), Allow)
    assert sent_headers(plan, "s") == before == {"X-Scope": "v"}


@pytest.mark.promise("H09")
@pytest.mark.parametrize("level", ["capability", "agent", "run"])
def test_all_headers_together_have_a_limit(level: str) -> None:
    with pytest.raises(Refused) as refused:
        plan_with(level, {f"X-{number}": "v" * 8000 for number in range(3)})
    assert "invalid_header" in codes_of(refused.value)


@pytest.mark.promise("H01")
def test_every_refusal_of_a_header_is_the_authors_to_mend() -> None:
    with pytest.raises(OutfitterError) as error:
        plan_with("run", {"X-Scope": "a\nb"})
    assert isinstance(error.value, Invalid | ValueError)
