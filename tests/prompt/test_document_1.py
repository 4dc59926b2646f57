"""The examples of document 1, in our words and with its names: they run with only the import changed."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import pytest

from outfitter.policy import SequentialDependencyPolicy
from outfitter.prompt import MarkdownSection, MCPServer, Prompt, PromptTemplate, RenderedPrompt, SectionVisibility
from outfitter.session import Session


@dataclass(slots=True, frozen=True)
class DatabaseParams:
    db_path: str
    enable_write: bool = False


def render(*sections: MarkdownSection[None] | MarkdownSection[DatabaseParams]) -> RenderedPrompt[None]:
    return Prompt(PromptTemplate(ns="docs", key="one", sections=sections)).render()


@pytest.mark.promise("SECTION-MCPS")
def test_a_section_brings_its_server() -> None:
    git_section = MarkdownSection(
        title="Git Operations",
        key="git",
        template="""
        The git server is at hand.
        Look at the repository with it.
        """,
        mcps=[
            MCPServer.npm("git", "@anthropic/mcp-server-git"),
        ],
    )
    rendered = render(git_section)
    assert rendered.text == "## Git Operations\n\nThe git server is at hand.\nLook at the repository with it."
    assert rendered.mcps == (MCPServer.npm("git", "@anthropic/mcp-server-git"),)
    assert git_section.mcps()[0].args == ("-y", "@anthropic/mcp-server-git")


@pytest.mark.promise("SECTION-MCP-PARAMS")
def test_a_conditional_server_gets_its_arguments_from_the_parameters() -> None:
    database_section = MarkdownSection[DatabaseParams](
        title="Database Access",
        key="database",
        template="""
        Data is at: $db_path
        Writing: $enable_write
        """,
        enabled=lambda params: params.db_path is not None,
        mcps=[
            MCPServer.uvx(
                "sqlite",
                "mcp-server-sqlite",
                ("--db", "${db_path}"),
            ),
        ],
    )
    prompt = Prompt(PromptTemplate(ns="docs", key="data", sections=[database_section]))
    rendered = prompt.render(DatabaseParams("/srv/data.db"))
    assert rendered.text.endswith("Data is at: /srv/data.db\nWriting: False")
    assert rendered.mcps[0].args == ("mcp-server-sqlite", "--db", "/srv/data.db")


@pytest.mark.promise("DISCLOSURE-OPENS")
def test_a_section_that_has_only_servers_is_summarised_and_opens() -> None:
    advanced_section = MarkdownSection(
        title="Advanced Tools",
        key="advanced",
        template="""
        Files and data, for the harder cases.
        """,
        summary="Advanced tools available. Expand for details.",
        visibility=SectionVisibility.SUMMARY,
        mcps=[
            MCPServer.npm("fs", "@anthropic/mcp-server-filesystem", ("/data",)),
            MCPServer.uvx("sqlite", "mcp-server-sqlite"),
        ],
    )
    prompt, session = Prompt(PromptTemplate(ns="docs", key="adv", sections=[advanced_section])), Session()
    first = prompt.render(session=session)
    assert first.mcps == ()
    assert "Expand for details." in first.text
    assert "harder cases" not in first.text
    opened = first.toolbox(session).execute("open_sections", {"section_keys": ["advanced"], "reason": "files"})
    assert opened.success
    again = prompt.render(session=session)
    assert [server.name for server in again.mcps] == ["fs", "sqlite"]
    assert "harder cases" in again.text
    assert again.tools == ()


@pytest.mark.promise("SECTION-MCPS")
def test_one_section_serves_several_prompts() -> None:
    def git_section(repo_path: str) -> MarkdownSection[None]:
        return MarkdownSection(
            title="Git",
            key="git",
            template=f"The repository is at {repo_path}",
            mcps=[MCPServer.npm("git", "@anthropic/mcp-server-git")],
        )

    def changelog_section() -> MarkdownSection[None]:
        return MarkdownSection(
            title="Changelog",
            key="changelog",
            template="Write it for people.",
            mcps=[MCPServer.npm("git", "@anthropic/mcp-server-git")],
        )

    code_review_prompt = PromptTemplate(ns="reviews", key="code-review", sections=[git_section("/path/to/repo")])
    release_prompt = PromptTemplate(
        ns="releases",
        key="prepare-release",
        sections=[
            git_section("/path/to/repo"),
            changelog_section(),
        ],
    )
    for template in (code_review_prompt, release_prompt):
        assert [server.name for server in Prompt(template).render().mcps] == ["git"]


@pytest.mark.promise("SECTION-MCP-PARAMS")
def test_a_factory_makes_the_arguments_of_a_server() -> None:
    section = MarkdownSection[DatabaseParams](
        title="Data",
        key="data",
        template="Ask it.",
        mcps=[
            MCPServer.stdio(
                "sqlite",
                command="uvx",
                args_factory=lambda params: ("mcp-server-sqlite", "--db", params.db_path),
            ),
        ],
    )
    prompt = Prompt(PromptTemplate(ns="docs", key="factory", sections=[section]), DatabaseParams("/srv/a b.db"))
    (server,) = prompt.render().mcps
    assert (server.command, server.args) == ("uvx", ("mcp-server-sqlite", "--db", "/srv/a b.db"))
    assert server.args_factory is None


@pytest.mark.promise("SECTION-MCPS")
def test_policies_of_a_server_stay_with_its_definition() -> None:
    policy = SequentialDependencyPolicy(dependencies={"git_commit": {"git_diff"}})
    rendered = render(
        MarkdownSection(
            title="Git",
            key="git",
            template="Commit with care.",
            mcps=[
                MCPServer.npm("git", "@anthropic/mcp-server-git").with_policies(policy),
            ],
        )
    )
    assert rendered.mcps[0].policies == (policy,)
    assert rendered.policies == ()


@pytest.mark.promise("B15")
def test_of_two_servers_of_one_name_the_first_counts_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    one = MarkdownSection(title="One", key="one", template="1", mcps=[MCPServer.uvx("git", "first")])
    two = MarkdownSection(title="Two", key="two", template="2", mcps=[MCPServer.uvx("git", "second")])
    with caplog.at_level(logging.WARNING):
        rendered = render(one, two)
    assert [server.args for server in rendered.mcps] == [("first",)]
    (record,) = caplog.records
    assert record.getMessage().startswith("prompt.render.duplicate_mcp")
    assert getattr(record, "event", "") == "prompt.render.duplicate_mcp"
