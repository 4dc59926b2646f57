"""The backlog of a live source: an MCP server of GitHub or Azure DevOps; the files when it fails."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from outfitter.catalog import JsonValue, MCPServer, ServerEntry
from outfitter.errors import Unavailable
from outfitter.resolution import ArmedServer
from outfitter.squad import (
    BacklogItem,
    McpBacklog,
    SquadFolder,
    Told,
    TrackerServer,
    backlog_target,
    find_squad,
    find_tracker,
)
from outfitter.testing import Script, ScriptedTool, http_server_definition, serve_http
from outfitter.upstream import Connection, Patience, Pool, arm_servers
from tests.squad.folders import new_folder, repository

pytestmark = pytest.mark.anyio
ISSUES: list[JsonValue] = [
    {"number": 12, "title": "Serve it", "state": "OPEN", "labels": [{"name": "squad"}, {"name": "squad:eecom"}],
     "html_url": "https://github.com/o/r/issues/12"},
    {"number": 13, "title": "Not ours", "state": "open", "labels": ["bug"]},
    {"number": 14, "title": "Done", "state": "closed", "labels": ["squad"]},
    {"number": 15, "title": "Untriaged", "state": "open", "labels": ["squad"], "assignee": {"login": "brady"}},
    {"number": 16, "title": "A pull request", "state": "open", "labels": ["squad"], "pull_request": {}},
    {"title": "no number"}, "nonsense",
]  # fmt: skip


def work(number: str, title: str, state: str, tags: str) -> JsonValue:
    return {"fields": {"system.id": number, "system.title": title, "system.state": state, "system.tags": tags}}


WORK_ITEMS: dict[str, JsonValue] = {
    "count": 3,
    "results": [
        work("7", "Pipe", "Active", "squad; squad:flight"),
        work("8", "squad in the title only", "New", ""),
        work("9", "Old", "Closed", "squad"),
    ],
}
FOUND = [("#12", "eecom", "https://github.com/o/r/issues/12"), ("#15", "brady", "")]


def answering(name: str, value: JsonValue, arguments: Sequence[str], **fields: JsonValue) -> ScriptedTool:
    text: JsonValue = {"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}
    known: dict[str, JsonValue] = {argument: {} for argument in arguments}
    schema: dict[str, JsonValue] = {"type": "object", "properties": known, "additionalProperties": False}
    return ScriptedTool(name, "", schema, kind="answer", result={"content": [text], **fields})


@asynccontextmanager
async def connected(*tools: ScriptedTool) -> AsyncGenerator[Connection]:
    async with serve_http(Script(tools=tools)) as serving, Pool() as pool:
        armed = arm_servers([http_server_definition("tracker", serving.url)])["tracker"]
        assert isinstance(armed, ArmedServer)
        yield pool.connect(armed)


def found(told: Told[tuple[BacklogItem, ...]]) -> list[tuple[str, str, str]]:
    return [(item.id, item.assignee, item.url) for item in told.value]


@pytest.mark.promise("SQUAD-BACKLOG")
@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("search_issues", ["query", "owner", "repo", "perPage"], {"total_count": 2, "items": ISSUES}),
        ("search_issues", ["q"], ISSUES),
        ("list_issues", ["owner", "repo", "labels", "state", "perPage"], {"issues": ISSUES}),
        ("list_issues", ["owner", "repo", "labels"], {"issues": {"nodes": ISSUES}}),
    ],
)
async def test_github_is_asked_for_the_labels_of_the_team(tool: str, arguments: list[str], answer: JsonValue) -> None:
    async with connected(answering(tool, answer, arguments)) as connection:
        told = await McpBacklog(connection, "github", "o/r").items([f"member-{number}" for number in range(30)])
    assert found(told) == FOUND
    assert told.notes[0] == f"asked with the tool {tool}"


@pytest.mark.promise("SQUAD-BACKLOG")
async def test_azure_devops_is_asked_by_search_and_only_tags_count() -> None:
    async with connected(answering("search_workitem", WORK_ITEMS, ["searchText", "project", "top"])) as connection:
        told = await McpBacklog(connection, "azure-devops", "Apollo").items(["flight"])
    assert found(told) == [("#7", "flight", "")]


async def test_azure_devops_with_a_query_tool_fetches_the_items_of_the_ids() -> None:
    full: list[JsonValue] = [
        {"id": 7, "fields": {"System.Title": "Pipe", "System.State": "Active", "System.Tags": "squad:flight"}}
    ]
    query = answering("wit_query_by_wiql", {"workItems": [{"id": 7}]}, ["wiql", "project"])
    batch = answering("wit_get_work_items_batch_by_ids", full, ["project", "ids"])
    async with connected(query, batch) as connection:
        told = await McpBacklog(connection, "azure-devops", "Apollo").items([])
    assert found(told) == [("#7", "flight", "")]


@pytest.mark.promise("SQUAD-BACKLOG")
async def test_the_folder_says_who_was_asked(tmp_path: Path) -> None:
    new_folder(tmp_path)
    async with connected(answering("list_issues", ISSUES, ["owner", "repo", "labels"])) as connection:
        told = await SquadFolder.find(tmp_path, McpBacklog(connection, "github", "o/r")).backlog()
    assert told.value.source == "github"
    assert [item.id for item in told.value.items] == ["#12", "#15"]


@dataclass
class Broken:
    """A source that cannot be asked."""

    name: str = "github"

    async def items(self, members: Sequence[str]) -> Told[tuple[BacklogItem, ...]]:
        raise Unavailable(f"no answer for {len(members)} members")


@pytest.mark.promise("SQUAD-BACKLOG")
async def test_a_source_that_fails_leaves_the_files_with_a_note(tmp_path: Path) -> None:
    new_folder(tmp_path)
    told = await SquadFolder.find(tmp_path, Broken()).backlog()
    assert told.value.source == "files"
    assert len(told.value.items) == 5
    assert told.notes[0].startswith("github could not be asked")


@pytest.mark.parametrize(
    "tool",
    [
        answering("list_issues", "rate limited", ["owner"], isError=True),
        answering("create_issue", "no", []),
    ],
    ids=["fails", "is missing"],
)
async def test_a_tool_that_fails_or_is_missing_is_unavailable(tool: ScriptedTool) -> None:
    async with connected(tool) as connection:
        with pytest.raises(Unavailable):
            await McpBacklog(connection, "github", "o/r").items([])


async def test_a_server_that_is_away_leaves_the_files(tmp_path: Path) -> None:
    new_folder(tmp_path)
    async with serve_http(Script()) as serving:
        definition = http_server_definition("tracker", serving.url)
    armed = arm_servers([definition])["tracker"]
    assert isinstance(armed, ArmedServer)
    async with Pool(patience=Patience(tries=1, first_wait=0.01, longest_wait=0.02, cooldown=30)) as pool:
        source = McpBacklog(pool.connect(armed), "azure-devops", "Apollo")
        told = await SquadFolder.find(tmp_path, source).backlog()
    assert told.value.source == "files"
    assert "azure-devops could not be asked" in told.notes[0]


@pytest.mark.parametrize(
    ("origin", "target"),
    [
        ("https://github.com/bradygaster/squad.git", ("github", "bradygaster/squad")),
        ("git@github.com:bradygaster/squad.js", ("github", "bradygaster/squad.js")),
        ("https://me@dev.azure.com/org/My%20Project/_git/repo", ("azure-devops", "My Project")),
        ("git@ssh.dev.azure.com:v3/org/Apollo/repo", ("azure-devops", "Apollo")),
        ("https://org.visualstudio.com/Apollo/_git/repo", ("azure-devops", "Apollo")),
        ("/srv/git/repo.git", None),
    ],
)
def test_the_address_of_the_repository_tells_who_to_ask(
    tmp_path: Path, origin: str, target: tuple[Literal["github", "azure-devops"], str] | None
) -> None:
    new_folder(tmp_path)
    repository(tmp_path)
    with (tmp_path / ".git/config").open("a") as file:
        file.write(f'[remote "origin"]\n\turl = {origin}\n')
    place = find_squad(tmp_path)
    assert place is not None
    assert backlog_target(place) == target
    servers = [
        MCPServer.stdio(
            "files", "npx", ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/github/azure-devops"]
        ),
        MCPServer.http("hub", "https://api.githubcopilot.com/mcp/"),
        MCPServer.stdio("boards", "npx", ["-y", "@azure-devops/mcp", "org"]),
    ]
    found = find_tracker(place, {server.name: ServerEntry(server) for server in servers})
    names = {"github": "hub", "azure-devops": "boards"}
    assert found == (None if target is None else TrackerServer(names[target[0]], *target))
    assert find_tracker(place, {"files": ServerEntry(servers[0])}) is None
