"""Which servers does a team add with one command? Document 5's patterns A to D, with real packages and tool names.

Each pattern says how its servers are started, which variables they need, and which role gets which of their tools.
Writing a pattern into a squad file or a catalog is ``adding``; what a role may do with a server is ``presets``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outfitter.catalog import ALL_TOOLS, MCPServer, ServerEntry, TimeLimits, ToolFilter
from outfitter.squad.access import ISSUES_AND_PULL_REQUESTS, ISSUES_READ, read_and_write

EVERYBODY = "*"
_DATABASE_LIMITS = TimeLimits.of(30)


@dataclass(frozen=True, slots=True)
class Share:
    """Who gets which tools of one server of a pattern; of several shares of a server the first that fits counts."""

    server: str
    roles: tuple[str, ...]
    tools: ToolFilter = ALL_TOOLS


@dataclass(frozen=True, slots=True)
class Pattern:
    """One thing to add: its servers, who gets them, what must be set, and what anybody else may be given of it."""

    name: str
    group: str
    title: str
    servers: tuple[ServerEntry, ...]
    shares: tuple[Share, ...]
    variables: Mapping[str, str]
    """The variables it needs, each with where its value comes from."""
    guest: Share
    """What an agent gets that is named and whose role has no share: what reads, and no more."""

    def shares_of(self, role: str) -> tuple[Share, ...]:
        """What this role gets, at most one share of each server."""
        found: dict[str, Share] = {}
        for share in self.shares:
            if role in share.roles or EVERYBODY in share.roles:
                found.setdefault(share.server, share)
        return tuple(found.values())


_PROJECTS, _DATABASES, _TALK = "A: project management", "B: database", "C: communication"
_DOCUMENTS, _CODE, _WATCHING = "D: documentation", "code and files", "observability"


def _projects(
    entry: ServerEntry, title: str, reads: tuple[str, ...], variables: Mapping[str, str], group: str = _PROJECTS
) -> Pattern:
    """Lead all tools, scribe what reads."""
    name, reading = entry.id, ToolFilter(reads)
    shares = (Share(name, ("lead",)), Share(name, ("scribe",), reading))
    return Pattern(name, group, title, (entry,), shares, variables, Share(name, (), reading))


def _database(
    servers: tuple[ServerEntry, ServerEntry], title: str, reads: ToolFilter, variables: Mapping[str, str]
) -> Pattern:
    """Backend developer all tools; lead and tester a second server that cannot write."""
    full, reading = servers
    shares = (Share(full.id, ("backend-dev",)), Share(reading.id, ("lead", "tester"), reads))
    return Pattern(full.id, _DATABASES, title, servers, shares, variables, Share(reading.id, (), reads))


def _talk(entry: ServerEntry, title: str, reads: tuple[str, ...], variables: Mapping[str, str]) -> Pattern:
    """Lead and scribe only."""
    shares = (Share(entry.id, ("lead", "scribe")),)
    return Pattern(entry.id, _TALK, title, (entry,), shares, variables, Share(entry.id, (), ToolFilter(reads)))


def _documents(entry: ServerEntry, title: str, reads: tuple[str, ...], variables: Mapping[str, str]) -> Pattern:
    """Scribe all tools, everybody else what reads."""
    reading = Share(entry.id, (EVERYBODY,), ToolFilter(reads))
    shares = (Share(entry.id, ("scribe",)), reading)
    return Pattern(entry.id, _DOCUMENTS, title, (entry,), shares, variables, reading)


def _trello() -> Pattern:
    variables = {
        "TRELLO_API_KEY": "the API key of a Power-Up: https://trello.com/power-ups/admin",
        "TRELLO_TOKEN": "a token for that key; the page of the key has the link",
    }
    env = {name: f"${{{name}}}" for name in variables}
    entry = ServerEntry(MCPServer.npm("trello", "@delorenj/mcp-server-trello", env=env))
    return _projects(entry, "Boards, lists and cards of Trello", ("get_*", "list_*", "find_*", "search_*"), variables)


def _azure_devops() -> Pattern:
    variables = {
        "AZURE_DEVOPS_ORG": "the name of the organization, as in https://dev.azure.com/NAME",
        "ADO_MCP_AUTH_TOKEN": "a token of Azure DevOps: User settings, Personal access tokens",
    }
    args = ("${AZURE_DEVOPS_ORG}", "--authentication", "envvar")
    env = {"ADO_MCP_AUTH_TOKEN": "${ADO_MCP_AUTH_TOKEN}"}
    reads = (
        *("core_list_*", "core_get_*", "work_list_*", "work_get_*", "pipelines_list_*", "pipelines_get_*"),
        *("repo_list_*", "repo_get_*", "repo_search_*", "wit_list_*", "wit_get_*", "wit_my_work_items"),
        *("wiki_list_*", "wiki_get_*", "testplan_list_*", "testplan_show_*", "search_*", "advsec_get_*"),
    )
    entry = ServerEntry(MCPServer.npm("azure-devops", "@azure-devops/mcp", args, env=env))
    return _projects(entry, "Work items, repositories and pipelines of Azure DevOps", reads, variables)


def _linear() -> Pattern:
    server = MCPServer.http("linear", "https://mcp.linear.app/mcp", description="MCP server of Linear")
    entry = ServerEntry(server, default_headers={"Authorization": "Bearer ${LINEAR_API_KEY}"})
    variables = {"LINEAR_API_KEY": "a personal API key: Linear, Settings, Security & access"}
    reads = ("get_*", "list_*", "search_documentation")
    return _projects(entry, "Issues, projects and cycles of Linear", reads, variables)


def _atlassian(name: str, what: str, variables: Mapping[str, str]) -> ServerEntry:
    """The server serves both products; it is given the variables of one, and only that one's tools are meant."""
    env = {variable: f"${{{variable}}}" for variable in variables}
    description = f"MCP server: mcp-atlassian, {what} only"
    return ServerEntry(
        MCPServer.uvx(name, "mcp-atlassian", env=env, tools=ToolFilter((f"{name}_*",)), description=description)
    )


def _atlassian_variables(product: str, path: str) -> dict[str, str]:
    return {
        f"{product}_URL": f"where it is, such as https://NAME.atlassian.net{path}",
        f"{product}_USERNAME": "the mail address of the account",
        f"{product}_API_TOKEN": "an API token: https://id.atlassian.com/manage-profile/security/api-tokens",
    }


def _jira() -> Pattern:
    variables = _atlassian_variables("JIRA", "")
    reads = ("jira_get_*", "jira_search", "jira_search_*", "jira_batch_get_changelogs")
    return _projects(_atlassian("jira", "Jira", variables), "Issues and boards of Jira", reads, variables)


def _confluence() -> Pattern:
    variables = _atlassian_variables("CONFLUENCE", "/wiki")
    reads = ("confluence_get_*", "confluence_search", "confluence_search_*", "confluence_list_page_templates")
    return _documents(_atlassian("confluence", "Confluence", variables), "Pages of Confluence", reads, variables)


def _postgres() -> Pattern:
    def server(name: str, mode: str) -> ServerEntry:
        env, args = {"DATABASE_URI": "${DATABASE_URL}"}, (f"--access-mode={mode}",)
        return ServerEntry(MCPServer.uvx(name, "postgres-mcp", args, env=env, limits=_DATABASE_LIMITS))

    variables = {"DATABASE_URL": "postgresql://USER:PASSWORD@HOST:5432/DATABASE; a user that may no more than it must"}
    servers = server("postgres", "unrestricted"), server("postgres-read", "restricted")
    return _database(servers, "A PostgreSQL database", ALL_TOOLS, variables)


def _mongodb() -> Pattern:
    def server(name: str, *args: str) -> ServerEntry:
        env = {"MDB_MCP_CONNECTION_STRING": "${MDB_MCP_CONNECTION_STRING}"}
        return ServerEntry(MCPServer.npm(name, "mongodb-mcp-server", args, env=env, limits=_DATABASE_LIMITS))

    variables = {"MDB_MCP_CONNECTION_STRING": "mongodb://USER:PASSWORD@HOST:27017/DATABASE"}
    reads = ToolFilter(("find", "count", "aggregate", "list-*", "collection-*", "db-stats", "explain"))
    servers = server("mongodb"), server("mongodb-read", "--readOnly")
    return _database(servers, "A MongoDB database", reads, variables)


def _slack() -> Pattern:
    variables = {
        "SLACK_BOT_TOKEN": "the bot token (xoxb-...) of an app: https://api.slack.com/apps",
        "SLACK_TEAM_ID": "the id of the workspace; it begins with T",
    }
    env = {name: f"${{{name}}}" for name in variables}
    reads = ("slack_list_channels", "slack_get_channel_history", "slack_get_thread_replies", "slack_get_users",
             "slack_get_user_profile")  # fmt: skip
    entry = ServerEntry(MCPServer.npm("slack", "@zencoderai/slack-mcp-server", env=env))
    return _talk(entry, "Channels and messages of Slack", reads, variables)


def _discord() -> Pattern:
    reads = ("discord_read_messages", "discord_get_server_info", "discord_get_forum_channels", "discord_get_forum_post")
    writes = ("discord_send", "discord_create_forum_post", "discord_reply_to_forum", "discord_add_reaction")
    env, tools = {"DISCORD_TOKEN": "${DISCORD_TOKEN}"}, ToolFilter((*reads, *writes))
    entry = ServerEntry(MCPServer.npm("discord", "mcp-discord", env=env, tools=tools))
    variables = {"DISCORD_TOKEN": "the token of a bot: https://discord.com/developers/applications"}
    return _talk(entry, "Messages and forums of Discord; nothing that deletes or administers", reads, variables)


def _notion() -> Pattern:
    entry = ServerEntry(MCPServer.npm("notion", "@notionhq/notion-mcp-server", env={"NOTION_TOKEN": "${NOTION_TOKEN}"}))
    variables = {"NOTION_TOKEN": "the secret of an integration: https://www.notion.so/my-integrations"}
    reads = ("API-get-*", "API-retrieve-*", "API-post-search", "API-query-data-source",
             "API-list-data-source-templates")  # fmt: skip
    return _documents(entry, "Pages and databases of Notion", reads, variables)


def _github() -> Pattern:
    server = MCPServer.http(
        "github", "https://api.githubcopilot.com/mcp/", description="MCP server of GitHub", fallback="use the gh CLI"
    )
    entry = ServerEntry(server, default_headers={"Authorization": "Bearer ${GITHUB_TOKEN}"})
    reading = Share("github", (EVERYBODY,), ISSUES_READ.tools)
    developers = Share("github", ("backend-dev", "frontend-dev"), ISSUES_AND_PULL_REQUESTS.tools)
    variables = {"GITHUB_TOKEN": "a personal access token: https://github.com/settings/tokens, or 'gh auth token'"}
    shares = (Share("github", ("lead",)), developers, reading)
    return Pattern("github", _CODE, "Repositories, issues and pull requests", (entry,), shares, variables, reading)


def _filesystem() -> Pattern:
    package = "@modelcontextprotocol/server-filesystem"
    entry = ServerEntry(MCPServer.npm("filesystem", package, ("${WORKSPACE_ROOT:-.}",)))
    writing = read_and_write("", "tests").tools.include or ()
    written = {"write_file", "edit_file", "create_directory", "move_file"}
    reading = Share("filesystem", (EVERYBODY,), ToolFilter(tuple(tool for tool in writing if tool not in written)))
    shares = (
        Share("filesystem", ("lead", "backend-dev", "frontend-dev")),
        Share("filesystem", ("tester", "designer", "scribe"), ToolFilter(writing)),
        reading,
    )
    return Pattern("filesystem", _CODE, "Files of the workspace", (entry,), shares, {}, reading)


def _sentry() -> Pattern:
    env = {"SENTRY_ACCESS_TOKEN": "${SENTRY_ACCESS_TOKEN}"}
    variables = {"SENTRY_ACCESS_TOKEN": "a user auth token of Sentry: Settings, Auth Tokens"}
    reading = ToolFilter(("find_*", "get_*", "search_*", "whoami"))
    readers = Share("sentry", ("backend-dev", "frontend-dev", "tester"), reading)
    entry = ServerEntry(MCPServer.npm("sentry", "@sentry/mcp-server", env=env))
    shares, title = (Share("sentry", ("lead",)), readers), "Errors and traces of Sentry"
    return Pattern("sentry", _WATCHING, title, (entry,), shares, variables, Share("sentry", (), reading))


def patterns() -> dict[str, Pattern]:
    """Every pattern by its name."""
    makers = (_trello, _azure_devops, _linear, _jira, _postgres, _mongodb, _slack, _discord, _notion, _confluence,
              _github, _filesystem, _sentry)  # fmt: skip
    return {pattern.name: pattern for pattern in (make() for make in makers)}
