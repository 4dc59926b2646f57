"""Tools are found by their words, and what a definition costs is measured without a tokenizer."""

from __future__ import annotations

import pytest

from outfitter.calls import (
    META_TOOLS,
    ToolFinder,
    ToolJson,
    definition_tokens,
    estimate_tokens,
    found_text,
    total_tokens,
)
from outfitter.catalog import JsonValue


def tool(name: str, description: str, **arguments: str) -> ToolJson:
    properties: dict[str, JsonValue] = {key: {"type": "string", "description": said} for key, said in arguments.items()}
    return {"name": name, "description": description, "inputSchema": {"type": "object", "properties": properties}}


TOOLS = [
    tool("github_createIssue", "Open a new issue in a repository.", title="What it is about."),
    tool("github_list_issues", "List issues of a repository, newest first.", label="Only those with this label."),
    tool("jira_create_issue", "Create a ticket in a project."),
    tool("mail_send", "Send a message to somebody.", recipient="Who gets it.", attachments="Files that go along."),
    tool("files_read", "Read a file. 读取文件", path="Where it is."),
    {"name": "nothing"},
]
FINDER = ToolFinder.of(TOOLS)


@pytest.mark.promise("SEARCH-WORDS")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create issue", "jira_create_issue"),
        ("CreateIssue", "jira_create_issue"),
        ("github create issues", "github_createIssue"),
        ("list_issues", "github_list_issues"),
        ("attachment", "mail_send"),
        ("send a message", "mail_send"),
        ("读取", "files_read"),
        ("repo label", "github_list_issues"),
    ],
)
def test_a_tool_is_found_by_the_words_of_its_name_its_text_and_its_arguments(query: str, first: str) -> None:
    assert FINDER.find(query, 3)[0]["name"] == first


@pytest.mark.parametrize("query", ["", "  ", "*:\"'(){}", "xyzzy", "a" * 100_000])
def test_a_query_that_says_nothing_finds_nothing(query: str) -> None:
    assert FINDER.find(query, 5) == []
    assert '"tools":[]' in (found_text(FINDER, {"query": query}) or "")


def test_the_answer_of_a_search_is_short_and_says_what_is_needed() -> None:
    needs: ToolJson = {
        "name": "x", "title": "X", "description": "word " * 500,
        "inputSchema": {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]},
    }  # fmt: skip
    text = found_text(ToolFinder.of([needs]), {"query": "word", "limit": 10**9})
    assert text is not None
    assert len(text) < 500
    assert '"arguments":["a?","b"]' in text
    assert found_text(FINDER, {"query": 1}) is None
    assert found_text(FINDER, {"query": "issue", "limit": True}) == found_text(FINDER, {"query": "issue"})


@pytest.mark.promise("TOKEN-METER")
@pytest.mark.parametrize(
    ("text", "counted"),
    [
        # What the o200k tokenizer counts.
        ("", 0),
        ("Create a new issue in a GitHub repository.", 10),
        ('{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}', 19),
        ("The quick brown fox jumps over the lazy dog. " * 20, 201),
    ],
)
def test_an_estimate_is_near_what_a_tokenizer_counts(text: str, counted: int) -> None:
    assert abs(estimate_tokens(text) - counted) <= max(2, counted * 0.15)
    assert estimate_tokens(text.encode()) == estimate_tokens(text)


def many_tools() -> list[ToolJson]:
    """Five hundred tools as public servers have them: the same verbs on many things of several services."""
    services = ("github", "jira", "notion", "slack", "postgres", "calendar", "drive", "grafana", "stripe", "kubernetes")
    things = ("issue", "page", "channel", "table", "event", "file", "dashboard", "invoice", "pod", "comment")
    verbs = {
        "create": "Create a new {} in {} and return its identifier",
        "list": "List every {} of {}, newest first, with paging",
        "get": "Get one {} from {} with all of its fields",
        "update": "Change fields of an existing {} in {}",
        "delete": "Delete a {} from {} for good",
    }
    return [
        tool(f"{service}_{verb}_{thing}", said.format(thing, service) + ". Needs a token with the right scope. " * 4,
             id=f"Which {thing} of {service}.", workspace="The workspace in which to look, by its identifier.",
             fields="A comma-separated list of the fields that the answer should have; all of them by default.")
        for service in services for thing in things for verb, said in verbs.items()
    ]  # fmt: skip


@pytest.mark.promise("SEARCH-WORDS")
def test_among_five_hundred_tools_the_right_one_is_found_and_nine_tenths_of_the_tokens_are_spared() -> None:
    tools = many_tools()
    finder = ToolFinder.of(tools)
    asked = [str(one["description"]).partition(". ")[0] for one in tools]
    right = sum(one in finder.find(text, 5) for one, text in zip(tools, asked, strict=True))
    assert (len(tools), right >= 0.95 * len(tools)) == (500, True), right
    assert total_tokens(META_TOOLS) <= 0.1 * total_tokens(tools)


def test_only_what_a_model_is_given_counts() -> None:
    plain = tool("x", "Says something.")
    assert definition_tokens({**plain, "annotations": {"title": "long " * 100}, "_meta": {}}) == definition_tokens(
        plain
    )
    assert estimate_tokens("\ud800 lone") > 0
    assert total_tokens(META_TOOLS) < 400
