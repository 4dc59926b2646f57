"""The integration section of document 3: lifecycle, filters, names, schemas, texts, and prompts made with it."""

from __future__ import annotations

import dataclasses
import logging
from dataclasses import replace

import pytest

from outfitter.bridge import McpConnectionPool, McpIntegrationSection
from outfitter.calls import ToolInvoked
from outfitter.catalog import MCPServer
from outfitter.errors import McpConnectionError, McpSchemaError, PromptValidationError
from outfitter.policy import SequentialDependencyPolicy
from outfitter.prompt import Prompt, PromptTemplate
from outfitter.session import InProcessDispatcher, Session
from outfitter.testing import Script, ScriptedTool
from outfitter.tools import execute
from tests.bridge.kit import DEAD, answering, call, last_event, quick_pool, scripted, structured, tool_of, value_of

ADD = next(tool for tool in Script().tools if tool.name == "add")
ECHO = next(tool for tool in Script().tools if tool.name == "echo")


@pytest.mark.promise("BRIDGE-LIFECYCLE")
def test_nothing_is_connected_before_it_is_asked_for() -> None:
    section = McpIntegrationSection(servers=[scripted()], session=Session())
    assert not section.connected
    with pytest.raises(McpConnectionError, match="not connected yet: one"):
        section.tools()
    with pytest.raises(McpConnectionError):
        section.render_body(None)
    section.disconnect()
    assert (section.key, section.title, section.mcps()) == ("mcp.integrations", "MCP Integrations", ())


@pytest.mark.promise("BRIDGE-LIFECYCLE")
def test_entering_connects_connecting_again_is_harmless_and_leaving_disconnects() -> None:
    with McpIntegrationSection(servers=[scripted()], session=Session()) as section:
        tools = section.tools()
        section.connect()
        assert section.connected
        assert section.tools() == tools
        assert call(section, "add", a=1, b=2).success
        stale = tool_of(section, "add")
    assert not section.connected
    section.disconnect()
    with pytest.raises(McpConnectionError):
        section.tools()
    assert execute(stale, {"a": 1, "b": 2}).code == "mcp_connection"
    section.connect()
    assert call(section, "add", a=1, b=2).success
    section.disconnect()


@pytest.mark.promise("BRIDGE-LIFECYCLE")
def test_a_section_can_connect_when_it_is_made() -> None:
    section = McpIntegrationSection(servers=[scripted()], session=Session(), connect_on_init=True)
    try:
        assert section.connected
    finally:
        section.disconnect()


@pytest.mark.promise("BRIDGE-LIFECYCLE")
def test_a_section_without_servers_has_no_tools() -> None:
    with McpIntegrationSection(servers=[], session=Session()) as section:
        assert section.connected
        assert section.tools() == ()
        assert section.render_body(None) == "No external tools are available."


@pytest.mark.promise("BRIDGE-TYPED")
def test_a_foreign_tool_has_typed_arguments_and_a_typed_result() -> None:
    extra = {"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]}
    adding = replace(ADD, extra={"outputSchema": extra, "title": "Sum", "annotations": {"readOnlyHint": True}})
    session = Session()
    with McpIntegrationSection(servers=[scripted("calc", adding)], session=session) as section:
        tool = tool_of(section, "add")
        assert [field.name for field in dataclasses.fields(tool.params_type)] == ["a", "b"]
        assert (tool.name, tool.server, tool.source, tool.title) == ("calc_add", "calc", "mcp", "Sum")
        assert tool.annotations == {"readOnlyHint": True}
        assert tool.input_schema == ADD.schema
        result = call(section, "add", a=1, b=2)
        assert (result.success, value_of(result).sum) == (True, 3)
        assert result.raw is not None
    event = last_event(session)
    assert (event.name, event.source, event.mcp_server, event.adapter) == ("calc_add", "mcp", "calc", "mcp:calc")
    assert event.params == {"a": 1, "b": 2}


@pytest.mark.promise("BRIDGE-TYPED")
def test_the_example_of_document_3_becomes_its_dataclass() -> None:
    text = {"type": "string"}
    properties = {"owner": text, "repo": text, "title": text}
    schema = {"type": "object", "properties": properties, "required": ["owner", "repo", "title"]}
    creating = ScriptedTool("create_issue", "Create a new issue", schema, "echo")
    with McpIntegrationSection(servers=[scripted("github", creating)], session=Session()) as section:
        tool = tool_of(section, "create_issue")
        assert (tool.name, tool.params_type.__name__) == ("github_create_issue", "GithubCreateIssueParams")
        assert {field.name: field.type for field in dataclasses.fields(tool.params_type)} == dict.fromkeys(
            properties, str
        )
        params = tool.params_type(owner="a", repo="b", title="c")
        assert structured(execute(tool, params)) == {"owner": "a", "repo": "b", "title": "c"}


@pytest.mark.promise("BRIDGE-LIFECYCLE")
def test_a_template_may_be_written_before_its_servers_are_connected() -> None:
    section = McpIntegrationSection(servers=[scripted("one", ADD)], session=Session())
    prompt = Prompt(PromptTemplate(ns="demo", key="mcp", sections=[section]))
    with section:
        assert "one_add" in prompt.render().text


@pytest.mark.promise("BRIDGE-FILTERS")
def test_allow_and_block_lists_choose_the_tools() -> None:
    base = scripted()
    server = MCPServer(
        "one", base.transport, enabled_tools=("add", "echo", "fail"), disabled_tools=("fail",), tool_prefix="my"
    )
    bare = MCPServer("two", base.transport, enabled_tools=("add",), tool_prefix="")
    with McpIntegrationSection(servers=[server, bare], session=Session()) as section:
        assert [tool.name for tool in section.tools()] == ["my_echo", "my_add", "add"]


@pytest.mark.promise("BRIDGE-NAMES")
def test_equal_names_and_unfit_names_get_a_tail_that_stays() -> None:
    odd = answering("do it! " + "x" * 80, {"content": []})
    servers = [
        replace(scripted("a", ADD), tool_prefix="same"),
        replace(scripted("b", ADD, odd), tool_prefix="same"),
    ]
    with McpIntegrationSection(servers=servers, session=Session()) as section:
        names = [tool.name for tool in section.tools()]
        assert len(set(names)) == 3
        assert all(len(name) <= 64 and name.startswith("same_") for name in names)
        assert [tool.server for tool in section.tools()] == ["a", "b", "b"]
        assert call(section, odd.name).success
        section.disconnect()
        section.connect()
        assert [tool.name for tool in section.tools()] == names


@pytest.mark.promise("BRIDGE-NAMES")
def test_descriptions_are_whole_unless_a_limit_is_set() -> None:
    long = ScriptedTool("long", "word " * 100, kind="echo")
    with McpIntegrationSection(servers=[scripted("one", long)], session=Session()) as section:
        assert section.tools()[0].description == long.description
    with McpIntegrationSection(servers=[scripted("one", long)], session=Session(), description_limit=200) as section:
        assert len(section.tools()[0].description) <= 200
        assert section.tools()[0].description.endswith("…")


@pytest.mark.promise("BRIDGE-REJECTED")
def test_a_tool_with_an_unusable_schema_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    bad = ScriptedTool("bad", "Refers elsewhere", {"type": "object", "$ref": "http://example.com/schema.json"}, "echo")
    with (
        caplog.at_level(logging.WARNING, "outfitter"),
        McpIntegrationSection(servers=[scripted("one", ADD, bad)], session=Session()) as section,
    ):
        assert [tool.tool for tool in section.tools()] == ["add"]
        (rejected,) = section.rejected
        assert isinstance(rejected, McpSchemaError)
        assert (rejected.server_name, rejected.tool_name) == ("one", "bad")
        assert rejected.reason
        assert call(section, "add", a=1, b=1).success
    assert "tool 'bad'" in caplog.text


@pytest.mark.promise("BRIDGE-TEMPLATE")
def test_the_default_text_is_an_inventory() -> None:
    two = ScriptedTool("silent", "", kind="echo")
    more = ScriptedTool("wordy", "First line of $cost\nSecond line", kind="echo")
    with McpIntegrationSection(servers=[scripted("calc", ADD), scripted("b", two, more)], session=Session()) as section:
        rendered = Prompt(PromptTemplate(ns="demo", key="mcp", sections=[section])).render()
        assert rendered.text == (
            "## MCP Integrations\n\nThe following external tools are available via MCP:\n\n"
            "### calc\n\n- `calc_add` - Adds two numbers\n\n"
            "### b\n\n- `b_silent`\n- `b_wordy` - First line of $cost"
        )
        assert [tool.name for tool in rendered.tools] == ["calc_add", "b_silent", "b_wordy"]
        assert rendered.resources[McpConnectionPool] is section.pool


@pytest.mark.promise("BRIDGE-TEMPLATE")
def test_a_template_knows_servers_count_and_tools() -> None:
    template = """
        Servers: ${server_names}; tools: $tool_count.
        ${tools_by_server}
        """
    servers = [scripted("calc", ADD), scripted("echoing", ECHO)]
    with McpIntegrationSection(servers=servers, session=Session(), template=template) as section:
        assert section.render_body(None) == ("Servers: calc, echoing; tools: 2.\ncalc: calc_add\nechoing: echoing_echo")
        names = {server: [tool.name for tool in tools] for server, tools in section.tools_by_server.items()}
        assert names == {"calc": ["calc_add"], "echoing": ["echoing_echo"]}
        for wrong in ("${nobody}", "costs 5$"):
            section.template = wrong
            with pytest.raises(PromptValidationError, match=r"mcp\.integrations"):
                section.render_body(None)


@pytest.mark.promise("BRIDGE-FAILURES")
def test_one_dead_server_leaves_the_others_and_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with quick_pool() as pool, caplog.at_level(logging.WARNING, "outfitter"):
        section = McpIntegrationSection(servers=[DEAD, scripted("one", ADD)], session=Session(), pool=pool)
        section.connect()
        assert not section.connected
        assert isinstance(section.failures["dead"], McpConnectionError)
        assert "server 'dead'" in caplog.text
        assert [tool.name for tool in section.tools()] == ["one_add"]
        assert "### dead" not in section.render_body(None)
        section.connect()
        assert list(section.failures) == ["dead"]
        assert call(section, "add", a=1, b=2).success


@pytest.mark.promise("BRIDGE-FAILURES")
def test_a_required_server_takes_the_section_with_it() -> None:
    with quick_pool() as pool:
        servers = [scripted("one", ADD), replace(DEAD, required=True)]
        section = McpIntegrationSection(servers=servers, session=Session(), pool=pool)
        with pytest.raises(McpConnectionError) as raised:
            section.connect()
        assert (raised.value.server_name, raised.value.transport) == ("dead", DEAD.transport)
        assert pool.connections() == ()
        with pytest.raises(McpConnectionError):
            section.tools()


@pytest.mark.promise("BRIDGE-FAILURES")
def test_a_secret_that_is_missing_is_named_and_one_that_is_there_is_not_shown() -> None:
    server = replace(scripted(), env={"TOKEN": "${NO_SUCH_TOKEN}"})
    remote = MCPServer.http("remote", DEAD.url or "", headers={"Authorization": "Bearer CNRY-7f3a91c2"})
    section = McpIntegrationSection(servers=[server], session=Session())
    with pytest.raises(McpConnectionError, match="NO_SUCH_TOKEN"):
        section.connect()
    with quick_pool() as pool, pytest.raises(McpConnectionError) as raised:
        McpIntegrationSection(servers=[remote], session=Session(), pool=pool, connect_on_init=True)
    assert "CNRY" not in f"{raised.value} {raised.value!r} {raised.value.transport!r} {vars(raised.value)}"


@pytest.mark.promise("BRIDGE-POLICIES")
def test_the_policies_of_a_server_hold_for_its_tools() -> None:
    session = Session(bus=InProcessDispatcher())
    policy = SequentialDependencyPolicy({"add": {"echo"}})
    server = scripted("one", ADD, ECHO).with_policies(policy)
    with McpIntegrationSection(servers=[server], session=session) as section:
        assert call(section, "add", a=1, b=2).code == "denied"
        assert call(section, "echo", text="hi").success
        assert call(section, "add", a=1, b=2).success
    assert [event.decision for event in session[ToolInvoked].all()] == ["deny", "allow", "allow"]


def test_a_server_stands_in_a_section_once() -> None:
    with pytest.raises(PromptValidationError, match="twice"):
        McpIntegrationSection(servers=[scripted("a"), scripted("a")], session=Session())


def test_a_clone_connects_by_itself() -> None:
    with McpIntegrationSection(servers=[scripted("one", ADD)], session=Session(), template="$tool_count") as section:
        other = Session()
        clone = section.clone(key="mcp.other", session=other)
        with pytest.raises(McpConnectionError):
            clone.tools()
        with clone:
            assert (clone.key, clone.render_body(None), clone.session) == ("mcp.other", "1", other)
        assert section.connected
