"""Catalog files: what is written reads as the same thing, and every fault is one clear error with its place."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outfitter.catalog import Agent, Capability, JsonValue, ServerEntry, ToolFilter
from outfitter.errors import OutfitterError
from outfitter.formats import (
    Syntax,
    read_agent,
    read_capability,
    read_document,
    read_entry,
    read_run,
    render_text,
    write_agent,
    write_capability,
    write_entry,
)
from tests.formats.strategies import AGENTS, CAPABILITIES, entries
from tests.shelf import an_agent, an_entry

FEWER = settings(max_examples=60)
SYNTAXES = st.sampled_from([Syntax.JSON, Syntax.JSONC, Syntax.YAML])


def _again(content: dict[str, JsonValue], syntax: Syntax, read: Callable[[object], object]) -> object:
    return read_document(render_text(content, syntax), "file", syntax, read)


def _has_null(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_null(item) for item in value.values())  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return value is None


@pytest.mark.promise("ROUND-TRIP")
@FEWER
@given(entries(), SYNTAXES)
def test_an_entry_that_is_written_reads_as_the_same_entry(entry: ServerEntry, syntax: Syntax) -> None:
    assert _again(write_entry(entry), syntax, lambda value: read_entry(value, entry.id, "file")) == entry


@pytest.mark.promise("ROUND-TRIP")
@FEWER
@given(AGENTS, SYNTAXES)
def test_an_agent_that_is_written_reads_as_the_same_agent(agent: Agent, syntax: Syntax) -> None:
    assert _again(write_agent(agent), syntax, lambda value: read_agent(value, agent.name, "file")) == agent


@pytest.mark.promise("ROUND-TRIP")
@FEWER
@given(CAPABILITIES, SYNTAXES)
def test_a_capability_that_is_written_reads_as_the_same_capability(capability: Capability, syntax: Syntax) -> None:
    read = _again(write_capability(capability), syntax, lambda value: read_capability(value, capability.name, "file"))
    assert read == capability


@pytest.mark.promise("ROUND-TRIP")
@FEWER
@given(entries() | AGENTS)
def test_toml_keeps_whatever_has_no_null(item: ServerEntry | Agent) -> None:
    written = write_entry(item) if isinstance(item, ServerEntry) else write_agent(item)
    name = item.id if isinstance(item, ServerEntry) else item.name
    reader = read_entry if isinstance(item, ServerEntry) else read_agent
    if _has_null(written):
        with pytest.raises(OutfitterError, match="TOML has no null"):
            render_text(written, Syntax.TOML)
        return
    assert _again(written, Syntax.TOML, lambda value: reader(value, name, "file")) == item


@pytest.mark.promise("ROUND-TRIP")
def test_one_entry_is_the_same_in_json_toml_and_yaml() -> None:
    json_text = '{"url": "http://h/mcp", "default_headers": {"X-Scope": "a"}, "tools": {"exclude": ["delete_*"]}}'
    toml = 'url = "http://h/mcp"\n[default_headers]\nX-Scope = "a"\n[tools]\nexclude = ["delete_*"]\n'
    yaml = "url: http://h/mcp\ndefault_headers: {X-Scope: a}\ntools:\n  exclude: ['delete_*']\n"
    texts = {Syntax.JSON: json_text, Syntax.TOML: toml, Syntax.YAML: yaml}
    found = [read_document(t, "f", s, lambda value: read_entry(value, "e", "f")) for s, t in texts.items()]
    assert found[0] == found[1] == found[2]


@pytest.mark.promise("ONE-FILTER")
@pytest.mark.parametrize(
    ("written", "include", "exclude"),
    [
        ({}, None, ()),
        ({"tools": ["*"]}, ("*",), ()),
        ({"tools": []}, (), ()),
        ({"tools": ["a", "get_*"]}, ("a", "get_*"), ()),
        ({"tools": {"include": ["a"], "exclude": ["b"]}}, ("a",), ("b",)),
        ({"tools": {"exclude": ["b"]}}, None, ("b",)),
        ({"enabled_tools": ["a"], "disabled_tools": ["b"]}, ("a",), ("b",)),
        ({"tools": ["a"], "disabled_tools": ["b"]}, ("a",), ("b",)),
    ],
)
def test_every_dialect_is_read_into_one_filter(
    written: dict[str, JsonValue], include: tuple[str, ...] | None, exclude: tuple[str, ...]
) -> None:
    assert an_entry("e", {"url": "http://h/mcp", **written}).server.tools == ToolFilter(include, exclude)


SERVER = '{\n  "url": "http://h/mcp"%s\n}'
AGENT = '{\n  "mcpServers": {\n    "s": %s\n  }%s\n}'
LONG = "x" * 1_000_000


@pytest.mark.promise("BAD-INPUT-SHAPE", "BAD-INPUT-UNKNOWN-FIELD", "BAD-INPUT-DUPLICATE", "BAD-INPUT-IDS")
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        (',\n "urll": "x"', "3 at /urll"),
        (',\n "id": "other"', "3 at /id"),
        (',\n "id": 7', "3 at /id"),
        (',\n "id": null', "3 at /id"),
        (',\n "url": "http://h/2"', "3 at /url"),
        (',\n "command": "npx"', "1"),
        (',\n "type": "stdio"', "3 at /type"),
        (',\n "type": "ftp"', "3 at /type"),
        (',\n "type": ["http"]', "3 at /type"),
        (',\n "env": {\n "A": []}', "4 at /env/A"),
        (',\n "env": "A=1"', "3 at /env"),
        (',\n "tools": "get_*"', "3 at /tools"),
        (',\n "tools": [1]', "3 at /tools/0"),
        (',\n "tools": {"inlcude": []}', "3 at /tools/inlcude"),
        (',\n "tools": {"include": []},\n "disabled_tools": ["a"]', "4 at /disabled_tools"),
        (',\n "tools": ["a"],\n "enabled_tools": ["b"]', "4 at /enabled_tools"),
        (',\n "timeout": "30s"', "3 at /timeout"),
        (',\n "timeout": true', "3 at /timeout"),
        (',\n "required": "yes"', "3 at /required"),
        (',\n "header_schema": []', "3 at /header_schema"),
        (',\n "header_schema": {\n"X-A": {"type": "text"}}', "4 at /header_schema/X-A/type"),
        (',\n "header_schema": {\n"X-A": {"secret": true}}', "4 at /header_schema/X-A/secret"),
        (',\n "header_schema": {\n"X-A": {"merge": "shallow"}}', "4 at /header_schema/X-A"),
        (',\n "header_schema": {\n"X_A": {}}', "4 at /header_schema/X_A"),
        (',\n "default_headers": {\n"X-A": "a\\nb"}', "4 at /default_headers/X-A"),
        (',\n "default_headers": {\n"Host": "b"}', "4 at /default_headers/Host"),
        (',\n "default_headers": {\n"X-A": {"$secret": 1}}', "4 at /default_headers/X-A/$secret"),
        (',\n "default_headers": {\n"X-A": {"$secret": "../x"}}', "4 at /default_headers/X-A"),
        (',\n "default_headers": {\n"X-A": {"$secret": "x", "y": 1}}', "4 at /default_headers/X-A/y"),
        (',\n "auth": {\n"type": "oauth3"}', "4 at /auth/type"),
        (',\n "auth": {\n"type": "none", "type": "none"}', "4 at /auth/type"),
        (',\n "known_tools": {"a": 1}', "3 at /known_tools"),
    ],
)
def test_a_fault_in_an_entry_is_told_with_file_line_and_pointer(fields: str, place: str) -> None:
    with pytest.raises(OutfitterError) as error:
        an_entry("e", SERVER % fields)
    assert error.value.where == f"mcp-servers/e.json:{place}"


@pytest.mark.promise("BAD-INPUT-SHAPE", "BAD-INPUT-UNKNOWN-FIELD")
@pytest.mark.parametrize(
    ("use", "more", "place"),
    [
        ("[]", "", "3 at /mcpServers/s"),
        ('{"reff": "x"}', "", "3 at /mcpServers/s/reff"),
        ('{"ref": "x",\n "url": "http://h"}', "", "3 at /mcpServers/s"),
        ('{"ref": 1}', "", "3 at /mcpServers/s/ref"),
        ('{"url": "ftp://h"}', "", "3 at /mcpServers/s/url"),
        ('{"url": "http://user:CNRY@h"}', "", "3 at /mcpServers/s/url"),
        ('{"command": "npx; touch x"}', "", "3 at /mcpServers/s/command"),
        ('{"ref": "x",\n "headers": {"X-A": "a\\r\\nb"}}', "", "4 at /mcpServers/s/headers/X-A"),
        ('{"ref": "x",\n "headers": {"X-A": "1",\n "x-a": "2"}}', "", "5 at /mcpServers/s/headers/x-a"),
        ('{"url": "http://h",\n "headers": {"X_A": "1"}}', "", "4 at /mcpServers/s/headers/X_A"),
        ('{"ref": "x"}', ',\n "rules": [{"tools": []}]', "5 at /rules/0"),
        ('{"ref": "x"}', ',\n "rules": [{"tools": ["a"],\n "effect": "maybe"}]', "6 at /rules/0/effect"),
        ("{}", ',\n "rules": [{"tools": ["a"], "arguments": {\n"/p": [1]}}]', "6 at /rules/0/arguments/~1p/0"),
        ("{}", ',\n "rules": [{"tools": ["a"], "arguments": {\n"/p": 1}}]', "6 at /rules/0/arguments/~1p"),
        ('{"ref": "x"}', ',\n "budgets": {\n"call": 1}', "6 at /budgets/call"),
        ('{"ref": "x"}', ',\n "budgets": {\n"calls_per_day": "1"}', "6 at /budgets/calls_per_day"),
        ('{"ref": "x"}', ',\n "budgets": {\n"calls_per_day": -1}', "6 at /budgets/calls_per_day"),
        ('{"ref": "x"}', ',\n "budgets": {"per_tool": {\n"x": {}}}', "6 at /budgets/per_tool/x"),
        ("{}", ',\n "budgets": {"per_server": {"x": {\n"repeats": 3}}}', "6 at /budgets/per_server/x/repeats"),
        ('{"ref": "x"}', ',\n "tool_search": "often"', "5 at /tool_search"),
        ('{"ref": "x"}', ',\n "result_limit": 10', "5 at /result_limit"),
        ('{"ref": "x", "overrides": {"t": {\n"hide": []}}}', "", "4 at /mcpServers/s/overrides/t/hide"),
        ("{}", ',\n "rules": [{"tools": ["a"], "unless_read_only": true}]', "5 at /rules/0"),
        ('{"ref": "x"}', ',\n "records": {\n"argument": true}', "6 at /records/argument"),
        ('{"ref": "x"}', ',\n "records": {\n"results": 1}', "6 at /records/results"),
        ('{"ref": "x"}', ',\n "records": true', "5 at /records"),
        ('{"ref": "x"}', ',\n "capabilities": "c"', "5 at /capabilities"),
        ('{"ref": "x"}', ',\n "name": "other"', "5 at /name"),
        ('{"ref": "x"}', ',\n "system_prompt": 1', "5 at /system_prompt"),
        ('{"ref": "x"}', ',\n "system_prompt": "a", "system_prompt_file": "b"', "5 at /system_prompt"),
    ],
)  # fmt: skip
def test_a_fault_in_an_agent_is_told_with_file_line_and_pointer(use: str, more: str, place: str) -> None:
    with pytest.raises(OutfitterError) as error:
        an_agent("a", AGENT % (use, more))
    assert error.value.where == f"agents/a.json:{place}"
    assert "CNRY" not in str(error.value)


@pytest.mark.promise("BAD-INPUT-SHAPE")
@pytest.mark.parametrize(
    ("run", "place"),
    [
        ('{"prompt": "x"}', "1"),
        ('{"agent_name": 1}', "1 at /agent_name"),
        ('{"agent_name": "a",\n"mcp_headers": []}', "2 at /mcp_headers"),
        ('{"agent_name": "a",\n"mcp_headers": {"s":\n 1}}', "2 at /mcp_headers/s"),
        ('{"agent_name": "a",\n"mcp_headers": {"s":\n{"Host": "x"}}}', "3 at /mcp_headers/s/Host"),
        ('{"agent_name": "a",\n"credentials": {"s": {"k": 1}}}', "2 at /credentials/s/k"),
        ('{"agent_name": "a",\n"credentials": {"s": {"k": "a\\nb"}}}', "2 at /credentials/s/k"),
        ('{"agent_name": "a",\n"type": "stop"}', "2 at /type"),
        ('{"agent_name": "a",\n"session_id": "a b"}', "2 at /session_id"),
        ('{"agent_name": "a",\n"headers": {}}', "2 at /headers"),
    ],
)
def test_a_fault_in_a_run_is_told_with_file_line_and_pointer(run: str, place: str) -> None:
    with pytest.raises(OutfitterError) as error:
        read_document(run, "run.json", Syntax.JSON, lambda value: read_run(value, "run.json"))
    assert error.value.where == f"run.json:{place}"


@pytest.mark.promise("BAD-INPUT-LONG")
@pytest.mark.parametrize(
    "content",
    [
        {"id": LONG},
        {"name": [LONG]},
        {"type": LONG},
        {"url": f"{LONG} "},
        {LONG: 1},
        {"tools": [LONG]},
        {"default_headers": {"X-A": LONG}},
        {"default_headers": {LONG: "a"}},
        {"header_schema": {LONG: {}}},
        {"header_schema": {"X-A": {"type": LONG}}},
        {"header_schema": {"X-A": {LONG: 1}}},
        {"auth": {"type": LONG}},
        {"tool_prefix": {"a": LONG}},
    ],
)
def test_a_value_of_one_megabyte_gives_a_short_error(content: dict[str, JsonValue]) -> None:
    with pytest.raises(OutfitterError) as error:
        an_entry("e", json.dumps({"url": "http://h/mcp"} | content))
    assert len(str(error.value)) < 1000


@pytest.mark.promise("BAD-INPUT-LONG")
@pytest.mark.parametrize(
    "content",
    [
        {"name": LONG},
        {"mcpServers": {LONG: {"ref": "a"}}},
        {"mcpServers": {"a": {"url": LONG}}},
        {"budgets": {LONG: 1}},
        {"rules": [{"tools": ["a"], "effect": LONG}]},
        {"rules": [{"tools": ["a"], "arguments": {LONG: "x"}}]},
    ],
)
def test_a_long_value_in_an_agent_gives_a_short_error(content: dict[str, JsonValue]) -> None:
    with pytest.raises(OutfitterError) as error:
        an_agent("a", json.dumps(content))
    assert len(str(error.value)) < 1000


@pytest.mark.promise("BAD-INPUT-ENCODING", "BAD-INPUT-CYCLE", "BAD-INPUT-DUPLICATE")
@pytest.mark.parametrize(
    ("data", "syntax", "place"),
    [
        (b'{"url":\n "\xff"}', Syntax.JSON, "f:2"),
        ('{"url": "x"}'.encode("utf-16"), Syntax.JSON, "f:1"),
        (b"url: &a\n  x: *a\n", Syntax.YAML, "f:2 at /url/x"),
        (b"url: a\nurl: b\n", Syntax.YAML, "f:2 at /url"),
        (b'{"url": "a",\n"url": "b"}', Syntax.JSON, "f:2 at /url"),
        (b'url = "a"\nurl = "b"\n', Syntax.TOML, "f:2"),
        (b"[1]", Syntax.JSON, "f:1"),
        (b"", Syntax.YAML, "f"),
        (b'{"url": NaN}', Syntax.JSON, "f:1 at /url"),
    ],
)
def test_text_that_cannot_be_read_is_one_error_with_its_place(data: bytes, syntax: Syntax, place: str) -> None:
    with pytest.raises(OutfitterError) as error:
        read_document(data, "f", syntax, lambda value: read_entry(value, "e", "f"))
    assert error.value.code == "invalid_document"
    assert error.value.where.startswith(place)
