"""Agents, capabilities and runs as they are written: document 4's shapes, with role, rules and budgets added."""

from __future__ import annotations

from typing import cast

from outfitter.basics import Secret, quote
from outfitter.catalog import (
    Agent,
    Capability,
    Effect,
    HeaderSettings,
    InlineServer,
    JsonValue,
    RecordRule,
    RunRequest,
    ServerRef,
    ServerUse,
    ServerUses,
    ToolRule,
)
from outfitter.errors import InvalidDocument, InvalidServer
from outfitter.formats.executors import read_executor, write_executor
from outfitter.formats.governing import (
    read_budgets,
    read_override,
    read_result_limit,
    read_search,
    write_governing,
    write_override,
)
from outfitter.formats.servers import (
    DEFINITION_FIELDS,
    read_choice,
    read_definition,
    write_definition,
    write_filter,
    write_settings,
)
from outfitter.formats.shape import (
    Fields,
    read_each,
    read_filter,
    read_flag,
    read_items,
    read_object,
    read_optional_text,
    read_settings,
    read_text,
    read_text_list,
    read_texts,
    wrong,
)

_REF_FIELDS = frozenset({"ref", "headers", "tools", "enabled_tools", "disabled_tools", "overrides"})
_INLINE_FIELDS = DEFINITION_FIELDS | {"headers", "overrides"}
_AGENT_FIELDS = frozenset(
    [
        "name",
        "description",
        "role",
        "system_prompt",
        "system_prompt_file",
        "capabilities",
        "mcpServers",
        "rules",
        "budgets",
        "tool_search",
        "result_limit",
        "records",
        "client_approvals",
        "executor",
    ]
)
_CAPABILITY_FIELDS = frozenset({"name", "description", "text", "mcpServers"})
_RECORD_FIELDS = frozenset({"arguments", "results"})
_RULE_FIELDS = frozenset({"tools", "effect", "server", "arguments", "reason", "unless_read_only"})
_RUN_FIELDS = frozenset(
    ["type", "agent_name", "prompt", "mcp_headers", "credentials", "session_id", "run_id", "parent_session_id"]
)


def read_agent(value: object, stem: str, source: str, prompt: str | None = None) -> Agent:
    """The agent of a file; ``prompt`` is the text of its ``system_prompt_file``, read by the caller."""
    fields = read_object(value, _AGENT_FIELDS)
    if "system_prompt" in fields and "system_prompt_file" in fields:
        raise InvalidDocument("give 'system_prompt' or 'system_prompt_file', not both", source="").under(
            "system_prompt"
        )
    return Agent(
        name=_read_name(fields, stem),
        description=read_text(fields, "description"),
        role=read_text(fields, "role"),
        system_prompt=read_text(fields, "system_prompt") if prompt is None else prompt,
        system_prompt_file=read_optional_text(fields, "system_prompt_file"),
        capabilities=read_texts(fields, "capabilities") or (),
        servers=read_each(fields, "mcpServers", read_use),
        rules=read_items(fields, "rules", _read_rule),
        budgets=read_budgets(fields),
        tool_search=read_search(fields),
        result_limit=read_result_limit(fields),
        records=_read_records(fields),
        client_approvals=read_flag(fields, "client_approvals"),
        executor=read_executor(fields),
        source=source,
    )


def prompt_file_of(value: object) -> str | None:
    """The name of the file that holds the agent's system prompt, if it names one."""
    return read_optional_text(read_object(value), "system_prompt_file")


def read_capability(value: object, stem: str, source: str) -> Capability:
    """The capability of a file."""
    fields = read_object(value, _CAPABILITY_FIELDS)
    return Capability(
        name=_read_name(fields, stem),
        description=read_text(fields, "description"),
        text=read_text(fields, "text"),
        servers=read_each(fields, "mcpServers", read_use),
        source=source,
    )


def _read_name(fields: Fields, stem: str) -> str:
    name = read_text(fields, "name", stem)
    if name != stem:
        raise InvalidDocument(f"the name is {quote(name)} but the file is named {quote(stem)}", source="").under("name")
    return name


def read_use(alias: str, value: object) -> ServerUse:
    """An agent's or capability's pointer to a server: a ref, a bare refinement, or the older inline form."""
    is_inline = isinstance(value, dict) and ("url" in value or "command" in value)
    if is_inline and "ref" in read_object(cast("object", value)):
        raise InvalidServer("give 'ref' or an inline definition, not both", hint="remove 'url' and 'command'")
    fields = read_object(cast("object", value), _INLINE_FIELDS if is_inline else _REF_FIELDS)
    headers, overrides = read_settings(fields, "headers"), read_each(fields, "overrides", read_override)
    if is_inline:
        return InlineServer(read_definition(alias, fields), headers, overrides)
    return ServerRef(read_optional_text(fields, "ref"), headers, read_filter(fields), overrides)


def _read_rule(value: object) -> ToolRule:
    fields = read_object(value, _RULE_FIELDS)
    return ToolRule(
        tools=read_texts(fields, "tools") or (),
        effect=Effect(read_choice(fields, "effect", tuple(Effect))),
        server=read_text(fields, "server", "*"),
        arguments=read_each(fields, "arguments", _read_globs),
        reason=read_text(fields, "reason"),
        unless_read_only=read_flag(fields, "unless_read_only"),
    )


def _read_globs(_pointer: str, value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else read_text_list(value)


def _read_records(fields: Fields) -> RecordRule:
    try:
        kept = read_object(fields.get("records", {}), _RECORD_FIELDS)
        return RecordRule(read_flag(kept, "arguments"), read_flag(kept, "results"))
    except InvalidDocument as fault:
        raise fault.under("records") from None


def read_run(value: object, source: str) -> RunRequest:
    """The run request of a file or an API call. Its values are data: no placeholder, no reference."""
    fields = read_object(value, _RUN_FIELDS)
    if "agent_name" not in fields:
        raise InvalidDocument("'agent_name' is missing", source="", hint='name the agent: {"agent_name": "tester"}')
    read_choice(fields, "type", ("start_session", "resume_session"))
    return RunRequest(
        agent_name=read_text(fields, "agent_name"),
        prompt=read_text(fields, "prompt"),
        mcp_headers=read_each(fields, "mcp_headers", _read_run_headers),
        credentials=read_each(fields, "credentials", _read_credentials),
        session_id=read_optional_text(fields, "session_id"),
        run_id=read_optional_text(fields, "run_id"),
        source=source,
    )


def _read_run_headers(_alias: str, value: object) -> HeaderSettings:
    return cast("dict[str, JsonValue]", read_object(value))


def _read_credentials(_alias: str, value: object) -> dict[str, Secret]:
    found: dict[str, Secret] = {}
    for name, secret in read_object(value).items():
        if not isinstance(secret, str):
            raise wrong("a text", secret).under(name)
        found[name] = Secret(secret)
    return found


def write_agent(agent: Agent) -> dict[str, JsonValue]:
    """The agent as its file's content: only what differs from a default."""
    written: dict[str, JsonValue] = {"name": agent.name}
    prompt = "system_prompt" if agent.system_prompt_file is None else "system_prompt_file"
    written |= {key: getattr(agent, key) for key in ("description", "role", prompt) if getattr(agent, key)}
    if agent.capabilities:
        written["capabilities"] = list(agent.capabilities)
    if agent.servers:
        written["mcpServers"] = _write_uses(agent.servers)
    if agent.rules:
        written["rules"] = [_write_rule(rule) for rule in agent.rules]
    written |= write_governing(agent)
    if agent.client_approvals:
        written["client_approvals"] = True
    kept = {name: True for name in ("arguments", "results") if getattr(agent.records, name)}
    if kept:
        written["records"] = dict[str, JsonValue](kept)
    if agent.executor is not None:
        written["executor"] = write_executor(agent.executor)
    return written


def write_capability(capability: Capability) -> dict[str, JsonValue]:
    """The capability as its file's content."""
    written: dict[str, JsonValue] = {"name": capability.name}
    written |= {key: getattr(capability, key) for key in ("description", "text") if getattr(capability, key)}
    if capability.servers:
        written["mcpServers"] = _write_uses(capability.servers)
    return written


def _write_uses(uses: ServerUses) -> dict[str, JsonValue]:
    return {alias: write_use(use) for alias, use in uses.items()}


def write_use(use: ServerUse) -> dict[str, JsonValue]:
    """A pointer as it is written."""
    written: dict[str, JsonValue] = {}
    if isinstance(use, InlineServer):
        written |= write_definition(use.server)
    elif use.ref is not None:
        written["ref"] = use.ref
    if use.headers:
        written["headers"] = write_settings(use.headers)
    if use.overrides:
        written["overrides"] = {tool: write_override(one) for tool, one in use.overrides.items()}
    return written | ({} if isinstance(use, InlineServer) else write_filter(use.tools))


def _write_rule(rule: ToolRule) -> JsonValue:
    written: dict[str, JsonValue] = {"tools": list(rule.tools), "effect": rule.effect.value}
    if rule.server != "*":
        written["server"] = rule.server
    if rule.arguments:
        written["arguments"] = {pointer: list(globs) for pointer, globs in rule.arguments.items()}
    if rule.reason:
        written["reason"] = rule.reason
    if rule.unless_read_only:
        written["unless_read_only"] = True
    return written
