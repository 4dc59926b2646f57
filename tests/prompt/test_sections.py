"""Sections by themselves: what they refuse, what they fill in, and how they are cloned."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import InvalidName, PromptValidationError
from outfitter.prompt import MarkdownSection, MCPServer, Prompt, PromptTemplate, Section, SectionVisibility
from outfitter.tools import Tool


@dataclass(frozen=True)
class Place:
    path: str
    branch: str = "main"


def text_of(section: Section[Place], params: Place) -> str:
    return Prompt(PromptTemplate(ns="t", key="t", sections=[section]), params).render().text


def on(template: str) -> MarkdownSection[Place]:
    return MarkdownSection[Place](title="T", key="t", template=template)


@pytest.mark.promise("PROMPT-TEXT")
@given(path=st.text(), branch=st.text())
def test_values_are_data_and_are_never_looked_at_again(path: str, branch: str) -> None:
    written = "100% at $path on ${branch}; $$5, {x}, %s, $path"
    expected = Template(written).substitute(path=path, branch=branch)
    assert text_of(on(written), Place(path, branch)) == f"## T\n\n{expected}"


def test_a_value_that_looks_like_a_field_stays_what_it_is() -> None:
    assert text_of(on("$path"), Place("$branch ${branch} $$ %s")).endswith("\n\n$branch ${branch} $$ %s")


def test_a_dollar_sign_that_names_nothing_stands_for_itself() -> None:
    assert text_of(on("It costs $5 or ${ or $."), Place("x")).endswith("It costs $5 or ${ or $.")


def test_a_template_is_dedented_before_it_is_filled() -> None:
    text = text_of(on("\n        First: $path\n          - second\n    "), Place("a\n  b"))
    assert text == "## T\n\nFirst: a\n  b\n  - second"


@pytest.mark.parametrize("key", ["", "Git", ".a", "a b", "a" * 65, "ä", "a\n"])
def test_a_key_that_breaks_the_rule_is_refused(key: str) -> None:
    with pytest.raises(PromptValidationError, match="section key"):
        MarkdownSection(title="T", key=key, template="x")


@pytest.mark.parametrize("title", ["", "  ", "two\nlines"])
def test_a_title_is_one_line(title: str) -> None:
    with pytest.raises(PromptValidationError, match="title"):
        MarkdownSection(title=title, key="t", template="x")


def test_an_argument_nobody_knows_is_refused() -> None:
    with pytest.raises(TypeError, match="mcp_servers"):
        MarkdownSection(title="T", key="t", template="x", mcp_servers=[])  # pyright: ignore[reportCallIssue]


def test_what_is_no_server_and_no_tool_is_refused() -> None:
    with pytest.raises(TypeError, match="MCPServer"):
        MarkdownSection(title="T", key="t", template="x", mcps=["git"])  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(TypeError, match="Tool"):
        MarkdownSection(title="T", key="t", template="x", tools=[print])  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_a_server_twice_in_one_section_is_refused_even_when_equal() -> None:
    git = MCPServer.uvx("git", "mcp-server-git")
    with pytest.raises(PromptValidationError, match="'git' twice"):
        MarkdownSection(title="T", key="t", template="x", mcps=[git, git])


@pytest.mark.parametrize("name", ["wink", "wink-1"])
def test_a_reserved_server_name_fails_where_it_is_declared(name: str) -> None:
    with pytest.raises(InvalidName, match="reserved"):
        MCPServer.uvx(name, "mcp-server-git")


def test_a_summary_section_needs_a_summary() -> None:
    with pytest.raises(PromptValidationError, match="has none"):
        MarkdownSection(title="T", key="t", template="x", visibility=SectionVisibility.SUMMARY)


def test_a_clone_keeps_everything_and_clones_its_children() -> None:
    child = MarkdownSection(title="C", key="c", template="child")
    section = MarkdownSection[Place](
        title="T",
        key="t",
        template="at $path",
        children=[child],
        summary="s",
        default_params=Place("here"),
        mcps=[MCPServer.uvx("git", "mcp-server-git")],
        accepts_overrides=False,
    )
    clone = section.clone()
    assert isinstance(clone, MarkdownSection)
    assert (clone.title, clone.key, clone.template, clone.summary) == ("T", "t", "at $path", "s")
    assert clone.mcps() == section.mcps()
    assert clone.params_type is Place
    assert clone.default_params == Place("here")
    assert not clone.accepts_overrides
    assert clone.children[0] is not child
    assert clone.children[0].key == "c"


def test_a_clone_takes_changes_and_leaves_the_first_alone() -> None:
    section = on("at $path")
    clone = section.clone(template="in $branch", key="other", mcps=[MCPServer.uvx("git", "mcp-server-git")])
    assert text_of(clone, Place("p", "b")) == "## T\n\nin b"
    assert text_of(section, Place("p", "b")) == "## T\n\nat p"
    assert (clone.key, section.key) == ("other", "t")
    assert (len(clone.mcps()), len(section.mcps())) == (1, 0)
    with pytest.raises(TypeError, match="colour"):
        section.clone(colour="red")


def test_a_subclass_may_declare_its_parameters_and_give_its_own_text() -> None:
    class Shouting(Section[Place]):
        def render_body(self, params: Place | None) -> str:
            return "" if params is None else params.path.upper()

    assert Shouting(title="S", key="s").params_type is Place
    assert text_of(Shouting(title="S", key="s"), Place("src")) == "## S\n\nSRC"


def test_whether_a_section_has_tools_is_known_without_asking_it() -> None:
    class Live(Section[None]):
        def tools(self) -> tuple[Tool[None, str], ...]:
            raise AssertionError("nobody may connect only to render a summary")

    assert Live(title="L", key="l").brings_tools
    assert not on("x").brings_tools
    live = Live(title="L", key="l", summary="live", visibility=SectionVisibility.SUMMARY)
    rendered = Prompt(PromptTemplate(ns="t", key="t", sections=[live])).render()
    assert [tool.name for tool in rendered.tools] == ["open_sections"]
