"""A tracker in the manner of Jira and Confluence, whose projects and spaces are scoped by headers.

    ATLASSIAN_API_KEY=... python -m examples.servers.tracker --port 9000 --data tracker.sqlite --demo

* ``X-Jira-Projects``: the projects that a call may see, separated by commas. Without it there is none.
* ``X-Confluence-Spaces``: the same for the spaces of pages.
* ``X-API-Key``: checked when the server was started with one.

A project that is not allowed and one that does not exist give the same answer. ``front`` reads headers, ``queries``
reads searches, ``issues`` keeps issues and pages, ``demo`` has some to begin with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from examples.servers.demo import DEMO_ISSUES, DEMO_PAGES, DEMO_PROJECTS
from examples.servers.front import Program, header_of
from examples.servers.issues import Keys, StoredIssue, TrackerStore
from examples.servers.queries import UnreadableQuery, read_query

PROJECTS = "X-Jira-Projects"
SPACES = "X-Confluence-Spaces"
_KEY = re.compile(r"[A-Z][A-Z0-9_]*(-[A-Z0-9_]+)*", re.ASCII)

Key = Annotated[str, Field(min_length=1, max_length=100)]
Limit = Annotated[int, Field(ge=1, le=100, description="How many at most")]
PageId = Annotated[int, Field(ge=1, le=2**53, description="As list_pages gives it")]


class IssueSummary(BaseModel):
    """An issue without its comments."""

    model_config = ConfigDict(frozen=True)

    key: str
    project: str
    summary: str
    status: str


class Issue(IssueSummary):
    """An issue."""

    comments: list[str]


class Issues(BaseModel):
    """Issues, by project and number."""

    model_config = ConfigDict(frozen=True)

    issues: list[IssueSummary]


class PageSummary(BaseModel):
    """A page without its text."""

    model_config = ConfigDict(frozen=True)

    id: int
    space: str
    title: str


class Page(PageSummary):
    """A page."""

    text: str


class Pages(BaseModel):
    """Pages, by space and title."""

    model_config = ConfigDict(frozen=True)

    pages: list[PageSummary]


def allowed_of(ctx: Context[Any, Any], header: str) -> Keys:
    """The keys in this header of the request that carries the call; an error when there is none."""
    listed = (key.strip().upper() for key in (header_of(ctx, header) or "").split(","))
    keys = frozenset(key for key in listed if key)
    if not keys:
        raise ToolError(f"nothing here is open to this request: its {header} header is missing or empty")
    # The error does not quote the header: its value is none of a model's business.
    if not all(_KEY.fullmatch(key) for key in keys):
        raise ToolError(f"the {header} header is not a list of keys, separated by commas")
    return keys


@dataclass(frozen=True, slots=True)
class TrackerTools:
    """The tools. An argument may name a project; whether there is one is a matter of the request's headers."""

    store: TrackerStore

    def search_issues(
        self,
        ctx: Context[Any, Any],
        query: Annotated[
            str, Field(max_length=500, description='Words, project=KEY, status=NAME; "quotes" around spaces')
        ] = "",
        limit: Limit = 50,
    ) -> Issues:
        """Find issues by words of their summary, project and status; an empty query finds all you have."""
        try:
            meant = read_query(query)
        except UnreadableQuery as error:
            raise ToolError(str(error)) from None
        found = self.store.search(allowed_of(ctx, PROJECTS), meant, limit)
        return Issues(issues=[IssueSummary.model_validate(one, from_attributes=True) for one in found])

    def get_issue(self, ctx: Context[Any, Any], key: Key) -> Issue:
        """Read one issue with its comments, by a key such as ALPHA-1."""
        return _issue(self.store.get(allowed_of(ctx, PROJECTS), key.upper()), f"there is no issue {key!r}")

    def create_issue(
        self, ctx: Context[Any, Any], project: Key, summary: Annotated[str, Field(min_length=1, max_length=200)]
    ) -> Issue:
        """Open a new issue in a project."""
        made = self.store.create(allowed_of(ctx, PROJECTS), project.upper(), summary)
        return _issue(made, f"there is no project {project!r}")

    def comment(
        self, ctx: Context[Any, Any], key: Key, text: Annotated[str, Field(min_length=1, max_length=10_000)]
    ) -> Issue:
        """Add a comment to an issue."""
        said = self.store.comment(allowed_of(ctx, PROJECTS), key.upper(), text)
        return _issue(said, f"there is no issue {key!r}")

    def list_pages(self, ctx: Context[Any, Any], limit: Limit = 50) -> Pages:
        """List the pages you have."""
        found = self.store.pages(allowed_of(ctx, SPACES), most=limit)
        return Pages(pages=[PageSummary.model_validate(one, from_attributes=True) for one in found])

    def read_page(self, ctx: Context[Any, Any], page_id: PageId) -> Page:
        """Read one page."""
        found = self.store.pages(allowed_of(ctx, SPACES), page_id=page_id)
        if not found:
            raise ToolError(f"there is no page {page_id}")
        return Page.model_validate(found[0], from_attributes=True)


def _issue(found: StoredIssue | None, otherwise: str) -> Issue:
    if found is None:
        raise ToolError(otherwise)
    return Issue.model_validate(found, from_attributes=True)


def _fill(store: TrackerStore) -> None:
    for project in DEMO_PROJECTS:
        store.add_project(project)
    for issue in DEMO_ISSUES:
        store.create(frozenset({issue.project}), issue.project, issue.summary, issue.status)
    for page in DEMO_PAGES:
        store.add_page(page.space, page.title, page.text)


def make_server(file: Path, is_demo: bool = False) -> MCPServer[Any]:
    """The tracker on this file."""
    store = TrackerStore(file)
    if store.prepare() and is_demo:
        _fill(store)
    tools = TrackerTools(store)
    server: MCPServer[Any] = MCPServer("tracker", version="1", log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    adds = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
    for tool in (tools.search_issues, tools.get_issue, tools.list_pages, tools.read_page):
        server.add_tool(tool, annotations=reads)
    for tool in (tools.create_issue, tools.comment):
        server.add_tool(tool, annotations=adds)
    return server


def main() -> None:
    """Serve the tracker."""
    Program(
        name="tracker",
        module="examples.servers.tracker",
        story=f"Issues and pages over streamable HTTP. {PROJECTS} and {SPACES} say which of them a call may see.",
        port=9000,
        key_variable="ATLASSIAN_API_KEY",
        make=make_server,
    ).run()


if __name__ == "__main__":
    main()
