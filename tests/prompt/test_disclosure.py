"""Progressive disclosure: what a summary hides, how it is opened or read, and what a failure leaves."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from outfitter.calls import ToolResult
from outfitter.policy import SequentialDependencyPolicy
from outfitter.prompt import (
    MarkdownSection,
    MCPServer,
    OpenedSections,
    Prompt,
    PromptTemplate,
    RenderedPrompt,
    Section,
    SectionVisibility,
)
from outfitter.session import Session
from outfitter.tools import Tool, Toolbox, ToolContext

SUMMARY = SectionVisibility.SUMMARY


@dataclass(frozen=True)
class Where:
    path: str


def ping(text: str = "pong") -> str:
    """Answer."""
    return text


def tools_section(*children: Section[None]) -> MarkdownSection[None]:
    return MarkdownSection(
        title="Tools",
        key="tools",
        template="all about tools",
        summary="There are tools.",
        visibility=SUMMARY,
        tools=[Tool.wrap(ping)],
        mcps=[MCPServer.uvx("git", "mcp-server-git")],
        policies=[SequentialDependencyPolicy({})],
        children=children,
    )


def text_section(*children: Section[None], key: str = "manual") -> MarkdownSection[None]:
    return MarkdownSection(
        title=key.title(),
        key=key,
        template=f"the whole {key}",
        summary=f"There is a {key}.",
        visibility=SUMMARY,
        children=children,
    )


def prompt_of(*sections: Section[None] | Section[Where], key: str = "disclosure") -> Prompt[None]:
    return Prompt(PromptTemplate(ns="tests", key=key, sections=sections))


def ask_open(rendered: RenderedPrompt[None], session: Session, *keys: str) -> ToolResult[OpenedSections]:
    return rendered.toolbox(session).execute("open_sections", {"section_keys": list(keys), "reason": "needed"})


def names(rendered: RenderedPrompt[None]) -> list[str]:
    return [tool.name for tool in rendered.tools]


@pytest.mark.promise("DISCLOSURE-HIDES")
def test_a_summary_contributes_nothing_and_neither_does_what_lies_below_it() -> None:
    child = MarkdownSection(title="Below", key="below", template="below", mcps=[MCPServer.uvx("fs", "x")])
    rendered = prompt_of(tools_section(child)).render()
    assert (rendered.mcps, rendered.policies, rendered.resources) == ((), (), {})
    assert names(rendered) == ["open_sections"]
    assert rendered.summarised == ("tools",)
    assert "There are tools." in rendered.text
    assert 'open_sections with "tools"' in rendered.text
    assert "all about tools" not in rendered.text
    assert "below" not in rendered.text.lower()


@pytest.mark.promise("DISCLOSURE-OPENS")
def test_opening_is_remembered_in_the_session_and_the_next_rendering_shows_it() -> None:
    prompt, session = prompt_of(tools_section(), text_section()), Session()
    result = ask_open(prompt.render(session=session), session, "tools")
    assert result.success
    assert result.value == OpenedSections("tests:disclosure", ("tools",), "needed")
    again = prompt.render(session=session)
    assert names(again) == ["ping", "read_section"]
    assert [server.name for server in again.mcps] == ["git"]
    assert len(again.policies) == 1
    assert again.summarised == ("manual",)
    assert prompt.render().summarised == ("tools", "manual")


def test_opening_in_one_prompt_opens_nothing_in_another() -> None:
    session = Session()
    ask_open(prompt_of(tools_section()).render(session=session), session, "tools")
    assert prompt_of(tools_section(), key="other").render(session=session).summarised == ("tools",)


def test_a_section_of_mere_text_opens_when_one_below_it_has_servers() -> None:
    child = MarkdownSection(title="Below", key="below", template="below", mcps=[MCPServer.uvx("fs", "x")])
    prompt, session = prompt_of(text_section(child)), Session()
    rendered = prompt.render()
    assert names(rendered) == ["open_sections"]
    assert ask_open(rendered, session, "manual").success
    assert [server.name for server in prompt.render(session=session).mcps] == ["fs"]


def test_opening_a_section_opens_what_it_lies_in() -> None:
    prompt, session = prompt_of(text_section(tools_section())), Session()
    assert ask_open(prompt.render(), session, "manual.tools").success
    assert prompt.render(session=session).summarised == ()


def test_a_key_with_a_dot_lies_in_nothing_but_its_own_parents() -> None:
    prompt, session = prompt_of(text_section(), tools_section().clone(key="manual.tools")), Session()
    assert ask_open(prompt.render(), session, "manual.tools").success
    assert prompt.render(session=session).summarised == ("manual",)


def test_a_section_below_an_opened_one_keeps_its_own_visibility() -> None:
    prompt, session = prompt_of(text_section(tools_section())), Session()
    assert ask_open(prompt.render(), session, "manual").success
    assert prompt.render(session=session).summarised == ("manual.tools",)


@pytest.mark.promise("DISCLOSURE-REFUSES")
@pytest.mark.parametrize(
    ("keys", "told"),
    [(("tols",), "did you mean 'tools'"), (("tools", "nothing"), "no section 'nothing'"), ((), "known: tools")],
)
def test_an_unknown_key_fails_with_a_suggestion_and_opens_nothing(keys: tuple[str, ...], told: str) -> None:
    prompt, session = prompt_of(tools_section()), Session()
    result = ask_open(prompt.render(session=session), session, *keys)
    assert (result.success, result.code) == (False, "unknown_section")
    assert told in result.message
    assert prompt.render(session=session).summarised == ("tools",)


def test_a_disabled_section_cannot_be_opened_or_told_from_a_missing_one() -> None:
    hidden = tools_section().clone(key="hidden", enabled=lambda: False)
    rendered = prompt_of(tools_section(), hidden).render()
    found, missing = (ask_open(rendered, Session(), key).message for key in ("hidden", "hiddex"))
    assert found == missing.replace("hiddex", "hidden")


@pytest.mark.promise("DISCLOSURE-REFUSES")
def test_a_call_that_fails_later_leaves_nothing_open() -> None:
    prompt, session = prompt_of(tools_section()), Session()
    rendered = prompt.render(session=session)
    opener = next(tool for tool in rendered.tools if tool.name == "open_sections")

    def open_and_fail(text: str, context: ToolContext) -> str:
        """Open, then break."""
        opener.handler(opener.params.load({"section_keys": ["tools"], "reason": text}), context=context)
        raise RuntimeError("broken")

    box = Toolbox.of([Tool.wrap(open_and_fail)], ToolContext(session=session))
    assert not box.execute("open_and_fail", {"text": "x"}).success
    assert session[OpenedSections].all() == ()
    assert prompt.render(session=session).summarised == ("tools",)


def test_a_section_whose_parameters_are_missing_is_not_opened() -> None:
    child = MarkdownSection[Where](title="C", key="c", template="$path", mcps=[MCPServer.uvx("fs", "x")])
    parent = MarkdownSection(title="P", key="p", template="p", summary="s", visibility=SUMMARY, children=[child])
    prompt, session = prompt_of(parent), Session()
    result = ask_open(prompt.render(session=session), session, "p")
    assert not result.success
    assert "needs parameters of type Where" in result.message
    assert prompt.render(session=session).summarised == ("p",)
    assert ask_open(prompt.render(Where("x"), session=session), session, "p").success


@pytest.mark.promise("DISCLOSURE-READS")
def test_reading_gives_the_whole_text_and_changes_nothing() -> None:
    prompt, session = prompt_of(text_section(text_section(key="annex"))), Session()
    rendered = prompt.render(session=session)
    assert names(rendered) == ["read_section"]
    assert 'read_section with "manual"' in rendered.text
    box = rendered.toolbox(session)
    before = session.snapshot()
    result = box.execute("read_section", {"section_key": "manual"})
    assert result.message.startswith("## Manual\n\nthe whole manual\n\n### Annex\n\nThere is a annex.")
    assert 'read_section with "manual.annex"' in result.message
    assert box.execute("read_section", {"section_key": "manual.annex"}).message == "### Annex\n\nthe whole annex"
    assert session.snapshot() == before
    assert prompt.render(session=session).text == rendered.text


def test_reading_takes_the_parameters_of_the_rendering() -> None:
    section = MarkdownSection[Where](title="S", key="s", template="at $path", summary="s", visibility=SUMMARY)
    box = prompt_of(section).render(Where("home")).toolbox()
    assert box.execute("read_section", {"section_key": "s"}).value == "## S\n\nat home"


def test_reading_refuses_unknown_sections_and_those_with_tools() -> None:
    box = prompt_of(tools_section(), text_section()).render().toolbox()
    unknown = box.execute("read_section", {"section_key": "manuel"})
    assert (unknown.code, "did you mean 'manual'" in unknown.message) == ("unknown_section", True)
    assert box.execute("read_section", {"section_key": "tools"}).code == "section_has_tools"


def test_what_is_opened_may_be_closed_again_at_render_time() -> None:
    prompt, session = prompt_of(tools_section()), Session()
    ask_open(prompt.render(session=session), session, "tools")
    assert prompt.render(session=session, visibility={"tools": SUMMARY}).summarised == ("tools",)


def test_a_full_prompt_has_no_disclosing_tools() -> None:
    section = MarkdownSection(title="S", key="s", template="x", summary="short", tools=[Tool.wrap(ping)])
    assert names(prompt_of(section).render()) == ["ping"]
