"""What a role may do with one kind of server: lists of real tool names, and rules about their arguments.

Each value here is one kind of cell of document 5's security table; which role has which cell is ``presets``. The lists
name tools that read; what is not named is not offered, so a server that grows a new tool gives nothing away.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from outfitter.catalog import ALL_TOOLS, Effect, ServerEntry, StdioTransport, ToolFilter, ToolRule

_NO_TOOLS = ToolFilter(())
_PACKAGE = re.compile(r"[\w.-]*(?:mcp|server-)[\w.-]*")
_PROGRAMS = (".js", ".cjs", ".mjs", ".ts", ".py")
_GLOB_LETTER = re.compile(r"[*?\[]")


class Kind(StrEnum):
    """The columns of the table."""

    GITHUB = "github"
    FILESYSTEM = "filesystem"
    DATABASE = "database"
    DEPLOY = "deploy"


@dataclass(frozen=True, slots=True)
class Access:
    """One cell: its words in the document, the tools it lets through, and the rules about their arguments."""

    words: str
    tools: ToolFilter = ALL_TOOLS
    rules: tuple[ToolRule, ...] = ()


FULL = Access("Full access")
NONE = Access("None", _NO_TOOLS)

# ── GitHub: github-mcp-server, today's names and those before issue_read and pull_request_read ──────────────────────

_ISSUE_READS = (
    *("issue_read", "list_issues", "search_issues", "list_issue_types", "get_label", "list_label"),
    *("get_issue", "get_issue_comments", "list_sub_issues"),
)
_ISSUE_WRITES = (
    *("issue_write", "add_issue_comment", "sub_issue_write", "label_write"),
    *("create_issue", "update_issue", "add_sub_issue", "remove_sub_issue", "reprioritize_sub_issue"),
)
_PULL_REQUESTS = (
    *("pull_request_read", "list_pull_requests", "search_pull_requests", "create_pull_request", "update_pull_request"),
    *("update_pull_request_branch", "merge_pull_request", "pull_request_review_write", "add_comment_to_pending_review"),
    *("add_reply_to_pull_request_comment", "get_pull_request", "get_pull_request_comments", "get_pull_request_diff"),
    *("get_pull_request_files", "get_pull_request_reviews", "get_pull_request_status"),
    *("create_pending_pull_request_review", "create_and_submit_pull_request_review"),
    *("submit_pending_pull_request_review", "delete_pending_pull_request_review"),
)
ISSUES_READ = Access("Issues (read)", ToolFilter(_ISSUE_READS))
ISSUES_AND_PULL_REQUESTS = Access("Issues, PRs", ToolFilter((*_ISSUE_READS, *_ISSUE_WRITES, *_PULL_REQUESTS)))

# ── files: @modelcontextprotocol/server-filesystem ───────────────────────────────────────────────────────────────────

_FILE_READS = (
    *("read_file", "read_text_file", "read_media_file", "read_multiple_files", "list_directory"),
    *("list_directory_with_sizes", "directory_tree", "search_files", "get_file_info", "list_allowed_directories"),
)
_FILE_WRITES = ("write_file", "edit_file")
_BACKSLASH = ("text:**\\**",)


def read_and_write(words: str, folder: str) -> Access:
    """Read everything, write under this folder only; moving needs both ends there."""
    under, reason = (f"{folder}/**",), f"writes only under {folder}/**"
    slashes = f"writes only paths with forward slashes, under {folder}/**"
    rules = [
        ToolRule(_FILE_WRITES, arguments={"/path": under}, reason=reason),
        ToolRule(("create_directory",), arguments={"/path": (folder, *under)}, reason=reason),
        ToolRule(("move_file",), arguments={"/source": under, "/destination": under}, reason=reason),
    ]
    # To a glob a backslash parts folders; to a server on Linux it is a letter, and the file would lie elsewhere.
    for pointer in ("/path", "/source", "/destination"):
        writes = (*_FILE_WRITES, "create_directory") if pointer == "/path" else ("move_file",)
        rules.append(ToolRule(writes, Effect.DENY, arguments={pointer: _BACKSLASH}, reason=slashes))
    return Access(words, ToolFilter((*_FILE_READS, *_FILE_WRITES, "create_directory", "move_file")), tuple(rules))


def folders_of(entry: ServerEntry | None, root: str | None = None) -> tuple[str, ...]:
    """The folders, as absolute paths, that a filesystem server is started with; ``root`` is what its variable means."""
    args = entry.server.args if entry is not None else ()
    named = [root if root is not None and "${WORKSPACE_ROOT" in argument else argument for argument in args]
    return tuple(posixpath.normpath(path) for path in named if path.startswith("/") and not path.endswith(_PROGRAMS))


def under_folders(rule: ToolRule, folders: Iterable[str]) -> ToolRule:
    """The rule, opened for the same paths written absolutely; one that closes stays as it is."""
    if rule.effect is not Effect.ALLOW:
        return rule
    places = [_GLOB_LETTER.sub(r"[\g<0>]", folder.rstrip("/")) for folder in folders]
    arguments = {
        pointer: (*globs, *(f"{place}/{glob}" for place in places for glob in globs))
        for pointer, globs in rule.arguments.items()
    }
    return replace(rule, arguments=arguments)


# ── databases: those of `outfitter add`, the reference servers of PostgreSQL and SQLite, MySQL ────────────────────────

_DATABASE_READS = (
    *("list_tables", "describe_table", "list_schemas", "list_objects", "get_object_details", "get_top_queries"),
    *("analyze_db_health", "get_schema_info", "get_table_sample"),
    *("find", "count", "list-databases", "list-collections", "list-connections", "collection-schema"),
    *("collection-indexes", "collection-storage-size", "db-stats"),
)
_SQL_TOOLS = {"query": "/sql", "execute_sql": "/sql", "read_query": "/query"}
"""Tools that take any SQL, and the argument in which each takes it."""
_NO_PLAIN_SELECT = ("text:**;**", "text:**--**", "text:**/[*]**", "text:**into**")


def _read_only() -> Access:
    rules: list[ToolRule] = []
    for tool, pointer in _SQL_TOOLS.items():
        other = "/query" if pointer == "/sql" else "/sql"
        reason = "database read-only: one plain SELECT, without comments, ';' and INTO"
        rules.append(ToolRule((tool,), arguments={pointer: ("text:select[!a-z0-9_]**",)}, reason=reason))
        rules.append(ToolRule((tool,), Effect.DENY, arguments={pointer: _NO_PLAIN_SELECT}, reason=reason))
        # A server that reads the other argument would run what nobody has looked at.
        rules.append(ToolRule((tool,), Effect.DENY, arguments={other: ("text:**",)}, reason=reason))
    for stage in ("$out", "$merge"):
        reason = f"database read-only: no {stage} stage, which writes"
        rules.append(ToolRule(("aggregate",), Effect.DENY, arguments={f"/pipeline/*/{stage}": ("**",)}, reason=reason))
    return Access("Read-only", ToolFilter((*_DATABASE_READS, *_SQL_TOOLS, "aggregate")), tuple(rules))


READ_ONLY = _read_only()

# ── deployments: there is no common server; these are the names that approving goes by ──────────────────────────────

APPROVE_ONLY = Access(
    "Approve only",
    ToolFilter(
        (
            *("approve_deployment", "reject_deployment", "list_deployments", "get_deployment", "get_deployment_status"),
            *("approve_release", "reject_release", "list_releases", "get_release"),
        )
    ),
)

# ── which kind a server is ───────────────────────────────────────────────────────────────────────────────────────────

_WORDS = {
    Kind.GITHUB: ("github",),
    Kind.FILESYSTEM: ("filesystem", "fs", "files"),
    Kind.DATABASE: (
        *("database", "db", "postgres", "postgresql", "pg", "mysql", "mariadb", "sqlite", "mssql", "sql"),
        *("mongo", "mongodb", "redis", "neo4j", "supabase"),
    ),
    Kind.DEPLOY: ("deploy", "deployment", "deployments", "vercel", "netlify", "railway", "heroku", "argocd"),
}


def kind_of(alias: str, entry: ServerEntry | None = None) -> Kind | None:
    """The column a server stands in, told by its name, its package or its URL; None for any other server."""
    found = _told_by(alias)
    return found if found is not None or entry is None else _told_by(entry.id) or _told_by(_definition(entry))


def _told_by(text: str) -> Kind | None:
    words = "".join(letter if letter.isalnum() else " " for letter in text.lower()).split()
    return next((kind for kind, known in _WORDS.items() if any(word in known for word in words)), None)


def _definition(entry: ServerEntry) -> str:
    """What names the program: the host, or the command and the arguments that look like a package of a server."""
    transport = entry.server.transport
    if not isinstance(transport, StdioTransport):
        return transport.url.partition("://")[2].partition("/")[0].replace("githubcopilot", "github")
    packages = [name for argument in transport.args for name in _PACKAGE.findall(argument)]
    return " ".join((transport.command.rpartition("/")[2], *packages))
