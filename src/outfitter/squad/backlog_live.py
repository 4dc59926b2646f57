"""What do GitHub or Azure DevOps say is to be done? Their MCP server, asked for issues with the labels of a team.

Only tools that read are called, with the arguments that their schema names; which one was used is a note. Whoever makes
the connection decides what it may reach. What the answers mean is ``issues``; the files are ``tasks``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import anyio

from outfitter.errors import Unavailable
from outfitter.squad.folder_git import open_git
from outfitter.squad.folder_place import SquadPlace
from outfitter.squad.issues import github_item, objects_in, target_in, work_item
from outfitter.squad.team import BacklogItem, Told

if TYPE_CHECKING:
    from outfitter.catalog import ServerEntry
    from outfitter.upstream import Connection, Message

Tracker: TypeAlias = Literal["github", "azure-devops"]
LABEL = "squad"
_SECONDS = 30.0
_MOST = 100
_QUERY_SIZE = 200
_TOLD_SIZE = 200
_SIGNS: Mapping[Tracker, tuple[str, ...]] = {
    "github": ("github",),
    "azure-devops": ("azure-devops", "azuredevops", "dev.azure.com"),
}
"""What stands in the name or the host of a tracker's server."""
_PROGRAMS: Mapping[Tracker, frozenset[str]] = {
    "github": frozenset({"github-mcp-server", "server-github"}),
    "azure-devops": frozenset({"@azure-devops/mcp", "mcp-server-azuredevops"}),
}
_WIQL_ARGUMENTS = ("wiql", "query", "wiqlQuery")


@dataclass(frozen=True, slots=True)
class McpBacklog:
    """The issues of a repository (``owner/name`` on GitHub, a project on Azure DevOps), asked of an MCP server."""

    connection: Connection
    tracker: Tracker
    target: str

    @property
    def name(self) -> str:
        """Which tracker it is."""
        return self.tracker

    async def items(self, members: Sequence[str]) -> Told[tuple[BacklogItem, ...]]:
        """The open issues that carry a label of the team, each once; Unavailable when the server cannot tell."""
        with anyio.move_on_after(_SECONDS) as scope:
            listed = await self.connection.use(lambda link: link.list_tools())
            tools = {str(tool.get("name")): _properties(tool) for tool in listed}
            if self.tracker == "github":
                return await self._github(tools, members)
            return await self._work_items(tools)
        if scope.cancelled_caught:
            raise Unavailable(
                f"{self.tracker} did not tell its issues within {_SECONDS:g} s", where=self.connection.name
            )
        raise Unavailable(f"{self.tracker} told nothing", where=self.connection.name)

    # ── GitHub ──

    async def _github(
        self, tools: Mapping[str, Mapping[str, object]], members: Sequence[str]
    ) -> Told[tuple[BacklogItem, ...]]:
        labels = [LABEL, *(f"{LABEL}:{member}" for member in members)]
        for tool, asked in (("search_issues", self._searches(labels)), ("list_issues", self._lists(labels))):
            if tool in tools:
                found = [item for given in asked for item in await self._call(tool, tools[tool], given)]
                return _told([item for one in found if (item := github_item(one))], tool)
        raise Unavailable("the server has neither search_issues nor list_issues", where=self.connection.name)

    def _searches(self, labels: Sequence[str]) -> Iterator[dict[str, object]]:
        """Searches for any of the labels: as many in each as its length allows."""
        group: list[str] = []
        for label in (*labels, ""):
            if not label or sum(len(other) + 3 for other in group) + len(label) > _QUERY_SIZE:
                query = f"repo:{self.target} is:issue is:open label:{','.join(group)}"
                yield {"query": query, "q": query, "perPage": _MOST, "per_page": _MOST}
                group = []
            group.append(f'"{label}"')

    def _lists(self, labels: Sequence[str]) -> Iterator[dict[str, object]]:
        owner, _, repo = self.target.partition("/")
        for label in labels:
            yield {
                "owner": owner, "repo": repo, "labels": [label], "state": "open", "perPage": _MOST, "per_page": _MOST,
            }  # fmt: skip

    # ── Azure DevOps ──

    async def _work_items(self, tools: Mapping[str, Mapping[str, object]]) -> Told[tuple[BacklogItem, ...]]:
        wiql = next((tool for tool in tools if "wiql" in tool or tool == "wit_query"), None)
        if wiql is not None:
            found, used = await self._by_wiql(wiql, tools), wiql
        elif "search_workitem" in tools:
            used = "search_workitem"
            given: dict[str, object] = {"searchText": LABEL, "project": [self.target], "top": _MOST}
            found = await self._call(used, tools[used], given)
        else:
            raise Unavailable("the server has no tool that finds work items", where=self.connection.name)
        return _told([item for one in found if (item := work_item(one))], used)

    async def _by_wiql(self, tool: str, tools: Mapping[str, Mapping[str, object]]) -> list[Mapping[str, object]]:
        project = self.target.replace("'", "''")
        query = (
            "SELECT [System.Id], [System.Title], [System.State], [System.Tags] FROM WorkItems "  # noqa: S608 - see above
            f"WHERE [System.TeamProject] = '{project}' AND [System.Tags] CONTAINS '{LABEL}' "
            "AND [System.State] NOT IN ('Closed', 'Done', 'Removed') ORDER BY [System.ChangedDate] DESC"
        )
        asked: dict[str, object] = {**dict.fromkeys(_WIQL_ARGUMENTS, query), "project": self.target, "top": _MOST}
        found = await self._call(tool, tools[tool], asked)
        batch = "wit_get_work_items_batch_by_ids"
        ids = [one["id"] for one in found if isinstance(one.get("id"), int) and "fields" not in one][:_MOST]
        if ids and batch in tools:
            found = await self._call(batch, tools[batch], {"project": self.target, "ids": ids})
        return found

    async def _call(
        self, tool: str, known: Mapping[str, object], given: Mapping[str, object]
    ) -> list[Mapping[str, object]]:
        """What the tool answers, given those arguments that it knows."""
        arguments = {name: _fitting(value, known[name]) for name, value in given.items() if name in known}
        message = cast("Message", arguments)
        answer = await self.connection.use(lambda link: link.call_tool(tool, message))
        found, said = objects_in(answer)
        if answer.get("isError") is True:
            raise Unavailable(f"{tool} failed: {ascii(said)[:_TOLD_SIZE]}", where=self.connection.name)
        return found


def _told(items: Sequence[BacklogItem], tool: str) -> Told[tuple[BacklogItem, ...]]:
    once = {item.id: item for item in reversed(items)}
    notes = [f"asked with the tool {tool}"]
    if len(items) >= _MOST:
        notes.append(f"there may be more: at most {_MOST} are asked for at a time")
    return Told(tuple(reversed(once.values())), tuple(notes))


def _properties(tool: Mapping[str, object]) -> Mapping[str, object]:
    schema = tool.get("inputSchema")
    found = cast("Mapping[str, object]", schema).get("properties") if isinstance(schema, dict) else None
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _fitting(value: object, schema: object) -> object:
    """The value in the spelling that an enum of the schema has."""
    choices = cast("Mapping[str, object]", schema).get("enum") if isinstance(schema, dict) else None
    if isinstance(value, str) and isinstance(choices, list):
        return next((one for one in cast("list[object]", choices) if str(one).lower() == value.lower()), value)
    return value


@dataclass(frozen=True, slots=True)
class TrackerServer:
    """Which server of a catalog keeps the issues of a team, and under which name it knows the repository."""

    server: str
    tracker: Tracker
    target: str


def find_tracker(place: SquadPlace, servers: Mapping[str, ServerEntry]) -> TrackerServer | None:
    """The server to ask for the backlog: that of the tracker where the repository is; None without one."""
    found = backlog_target(place)
    if found is None:
        return None
    tracker, target = found
    for name, entry in servers.items():
        said = f"{name} {urlsplit(entry.server.url or '').hostname}".lower()
        started = {part for word in (entry.server.command or "", *entry.server.args) for part in (word, _last(word))}
        if any(sign in said for sign in _SIGNS[tracker]) or started & _PROGRAMS[tracker]:
            return TrackerServer(name, tracker, target)
    return None


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def backlog_target(place: SquadPlace) -> tuple[Tracker, str] | None:
    """The tracker of the repository that the team works in, and its name there; None when git does not tell."""
    git = open_git(place.project)
    return None if git is None else target_in(git.origin())
