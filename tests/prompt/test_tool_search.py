"""Tools of a section that are searched instead of listed: open or closed, and nothing is started for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from outfitter.bridge import McpIntegrationSection
from outfitter.calls import META_TOOLS, ToolInvoked
from outfitter.catalog import Effect, ToolRule
from outfitter.errors import PromptValidationError
from outfitter.policy import RulePolicy
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate, RenderedPrompt, Section, SectionVisibility
from outfitter.session import Session
from outfitter.tools import Budget, Tool
from tests.prompt.counting import counting_server, starts

THREE = ["search_tools", "describe_tool", "call_tool"]


def ping(text: str = "pong") -> str:
    """Answer with a text."""
    return text


def count(words: str) -> int:
    """Count the words of a text."""
    return len(words.split())


def render(*sections: Section[Any], session: Session | None = None) -> RenderedPrompt[Any]:
    return Prompt(PromptTemplate(ns="t", key="t", sections=list(sections))).render(session=session)


def tools_section(visibility: SectionVisibility, **options: Any) -> MarkdownSection[None]:  # noqa: ANN401 - a section's
    return MarkdownSection(
        title="Tools", key="tools", template="all about tools", summary="There are tools.", visibility=visibility,
        tools=[Tool.wrap(ping), Tool.wrap(count)], tool_search=True, **options,
    )  # fmt: skip


@pytest.mark.promise("SEARCH-LIBRARY")
@pytest.mark.parametrize("visibility", list(SectionVisibility))
def test_the_tools_of_a_section_are_found_and_called_by_three_open_or_closed(visibility: SectionVisibility) -> None:
    session = Session()
    rendered = render(tools_section(visibility), session=session)
    names = [tool.name for tool in rendered.tools]
    assert names == (THREE if visibility is SectionVisibility.FULL else [*THREE, "open_sections"])
    assert [tool.input_schema for tool in rendered.tools[:3]] == [tool["inputSchema"] for tool in META_TOOLS]
    box = rendered.toolbox()
    found = json.loads(box.execute("search_tools", {"query": "count words"}).message)
    assert found["tools"][0]["name"] == "count"
    assert "words" in json.loads(box.execute("describe_tool", {"name": "count"}).message)["inputSchema"]["properties"]
    assert box.execute("call_tool", {"name": "count", "arguments": {"words": "a b c"}}).value == 3
    wrong = box.execute("call_tool", {"name": "count", "arguments": {"word": 1}})
    assert (wrong.success, wrong.code) == (False, "invalid_arguments")
    for unknown in ("open_sections", "call_tool", "Count"):
        assert box.execute("call_tool", {"name": unknown}).code == "unknown_tool"
    assert "count" in [event.name for event in session[ToolInvoked].all()]


def test_the_policies_of_a_closed_section_hold_for_its_tools_and_a_call_is_counted_once() -> None:
    closed = tools_section(
        SectionVisibility.SUMMARY, policies=[RulePolicy((ToolRule(("count",), Effect.DENY, reason="no counting"),))]
    )
    template = PromptTemplate[Any](ns="t", key="t", sections=[closed])
    box = Prompt(template).render(budget=Budget(max_tool_calls=2)).toolbox()
    assert box.execute("call_tool", {"name": "ping"}).value == "pong"
    assert box.execute("call_tool", {"name": "count", "arguments": {"words": "a"}}).code == "denied"
    assert box.execute("call_tool", {"name": "ping"}).code == "budget_spent"


def test_a_tool_cannot_have_the_name_of_one_that_searches() -> None:
    def call_tool() -> str:
        """Take its place."""
        return ""

    own = MarkdownSection[None](title="Own", key="own", template="x", tools=[Tool.wrap(call_tool)])
    assert [tool.name for tool in render(own).tools] == ["call_tool"]
    with pytest.raises(PromptValidationError, match="'call_tool' is reserved where tools are searched"):
        render(own, tools_section(SectionVisibility.SUMMARY))


@pytest.mark.promise("SEARCH-LIBRARY")
def test_a_closed_section_of_servers_starts_nothing_and_a_connected_one_is_searched(tmp_path: Path) -> None:
    log, session = tmp_path / "starts", Session()
    section = McpIntegrationSection(
        servers=[counting_server(log)], session=session, summary="Servers.", tool_search=True,
        visibility=SectionVisibility.SUMMARY,
    )  # fmt: skip
    assert [tool.name for tool in render(section).tools] == ["open_sections"]
    assert starts(log) == 0
    with section:
        rendered = render(section, session=session)
        assert [tool.name for tool in rendered.tools] == [*THREE, "open_sections"]
        box = rendered.toolbox()
        assert json.loads(box.execute("search_tools", {"query": "echo text"}).message)["searched"] > 5
        assert "hi" in box.execute("call_tool", {"name": "counted_echo", "arguments": {"text": "hi"}}).message
    assert starts(log) == 1
