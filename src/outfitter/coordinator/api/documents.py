"""The documents of document 4, described for the OpenAPI text: servers, capabilities, agents, runs.

They are read by ``formats``, not by these structs: it refuses more, and says where. A test compares the two.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from outfitter.coordinator.api.models import Ident

ServerName = Annotated[str, Meta(max_length=64, pattern="^[a-z0-9][a-z0-9_-]{0,63}$")]
AgentName = Annotated[str, Meta(max_length=64, pattern="^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")]
HeaderValues = Annotated[
    dict[str, Any],
    Meta(
        description='Name to value. `null` removes; `${VAR}` and `{"$secret": "name"}` are filled in when connecting.'
    ),
]
Seconds = Annotated[float, Meta(gt=0)]


class ToolChoice(Struct, forbid_unknown_fields=True):
    """Which tools: those included, without those excluded. Globs are allowed."""

    include: list[str] | None = None
    exclude: list[str] = []


class HeaderRule(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a header is for, and who may set it."""

    type: Literal["string", "json", "boolean", "number"] = "string"
    description: str = ""
    required: bool = False
    sensitive: bool = False
    internal: bool = False
    example: str = ""
    locked: bool = False
    narrow: Literal["none", "list"] = "none"
    merge: Literal["replace", "shallow"] = "replace"


class AuthRule(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How whoever connects signs in."""

    type: Literal["none", "auth0_m2m", "oauth2_client_credentials"] = "none"
    token_url: str = ""
    client_id: str = ""
    client_secret: Any = ""
    scope: str = ""
    audience: str = ""


class Definition(Struct, omit_defaults=True, kw_only=True):
    """Where a server is and how it is used."""

    type: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    command: str | UnsetType = UNSET
    args: list[str] | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    env: dict[str, Any] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tools: list[str] | ToolChoice | UnsetType = UNSET
    enabled_tools: list[str] | UnsetType = UNSET
    disabled_tools: list[str] | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET
    connect_timeout: Seconds | UnsetType = UNSET
    total_timeout: Seconds | UnsetType = UNSET
    tool_prefix: str | UnsetType | None = UNSET
    required: bool | UnsetType = UNSET
    shareable: bool | UnsetType = UNSET
    sandbox: Literal["none", "isolated"] | UnsetType = UNSET
    fallback: Annotated[str, Meta(max_length=500)] | UnsetType = UNSET
    pins: Literal["first_use", "approve", "off"] | UnsetType = UNSET
    trusted: bool | UnsetType = UNSET


class ServerDocument(Definition, forbid_unknown_fields=True, kw_only=True):
    """An MCP server of the registry."""

    id: ServerName
    name: str | UnsetType = UNSET
    header_schema: dict[str, HeaderRule] | UnsetType = UNSET
    default_headers: HeaderValues | UnsetType = UNSET
    auth: AuthRule | UnsetType = UNSET
    auth_type: str | UnsetType = UNSET
    known_tools: list[str] | UnsetType = UNSET


class OverrideDocument(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What is said otherwise about one tool."""

    title: str | None = None
    description: str | None = None
    defaults: dict[str, Any] = {}
    hidden: list[str] = []


class ServerUseDocument(Definition, forbid_unknown_fields=True, kw_only=True):
    """A server of the registry by `ref`, or one defined here."""

    ref: ServerName | UnsetType = UNSET
    headers: HeaderValues | UnsetType = UNSET
    overrides: dict[str, OverrideDocument] | UnsetType = UNSET


class RuleDocument(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A rule about tool calls."""

    tools: list[str]
    effect: str
    server: str = "*"
    arguments: dict[str, Any] = {}
    reason: str = ""
    unless_read_only: bool = False


class CapabilityDocument(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What several agents share."""

    name: AgentName
    description: str = ""
    text: str = ""
    servers: dict[str, ServerUseDocument] = field(default_factory=dict[str, ServerUseDocument], name="mcpServers")


class ExecutorDocument(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What executes the runs of an agent. One with a command or with variables needs an admin, and to be approved."""

    type: Literal["claude-code", "copilot", "openai", "litellm", "command"]
    model: str | UnsetType = UNSET
    command: str | UnsetType = UNSET
    args: list[str] | UnsetType = UNSET
    env: dict[str, Any] | UnsetType = UNSET
    timeout: Seconds | UnsetType = UNSET
    recover: Annotated[bool, Meta(description="Whether a run whose runner died is executed again.")] | UnsetType = UNSET
    concurrency: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class AgentDocument(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """An agent: its prompt, its servers, its rules."""

    name: AgentName
    description: str = ""
    role: str = ""
    system_prompt: str = ""
    capabilities: list[str] = []
    servers: dict[str, ServerUseDocument] = field(default_factory=dict[str, ServerUseDocument], name="mcpServers")
    rules: list[RuleDocument] = []
    budgets: Annotated[
        dict[str, Any],
        Meta(description="`calls_per_day`, `tokens_per_run`, …, `repeats`; `per_server` and `per_tool` hold the same."),
    ] = {}
    tool_search: Any = UNSET
    result_limit: Annotated[int, Meta(ge=1024)] | UnsetType | None = UNSET
    client_approvals: Annotated[
        bool, Meta(description="Whether the person at its client may approve calls that a rule asks about.")
    ] = False
    executor: ExecutorDocument | None = None


class RunDocument(Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A run to start. Its values are data: no placeholder in them is filled in. Credentials are held in memory only."""

    agent_name: AgentName
    type: Literal["start_session", "resume_session"] = "start_session"
    prompt: str = ""
    mcp_headers: dict[str, dict[str, Any]] = {}
    credentials: dict[str, dict[str, str]] = {}
    session_id: Ident | None = None
    run_id: Ident | None = None
    parent_session_id: Ident | None = None


class BlueprintServer(Struct, omit_defaults=True, kw_only=True):
    """A server as an agent gets it."""

    type: Literal["http", "sse", "stdio"]
    url: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    command: str | UnsetType = UNSET
    args: list[str] | UnsetType = UNSET


class BlueprintDocument(Struct, kw_only=True):
    """An agent, resolved: placeholders unfilled, sensitive literals masked."""

    name: str
    system_prompt: str
    mcp_servers: dict[str, BlueprintServer]


class ExplanationDocument(Struct, kw_only=True):
    """The same with provenance: who gave each value, and whom it overruled."""

    agent: str
    role: str
    source: str
    servers: list[dict[str, Any]]
    notices: list[dict[str, Any]]
    budgets: dict[str, Any]
    tool_search: dict[str, Any]
    result_limit: int | None
    client_approvals: bool
