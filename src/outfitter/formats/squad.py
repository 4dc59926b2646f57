"""``.squad/mcp-config.json`` as document 5 prints it, read into a catalog and written from one.

Servers become registry entries, each name in ``agentServers`` becomes an agent of that role, ``toolRestrictions``
become the filters of its refs. Servers shared by the whole session (``sessionServers``) become one capability that
every agent has. ``roles`` says which agents are held to the preset of a role; what a role may do is not known here.
Milliseconds are converted here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outfitter.basics import quote, suggest
from outfitter.catalog import (
    NO_AUTH,
    Agent,
    Capability,
    Catalog,
    InlineServer,
    JsonValue,
    MCPServer,
    ServerEntry,
    ServerRef,
    TimeLimits,
    ToolFilter,
)
from outfitter.errors import InvalidDocument, OutfitterError, UnknownAgent, UnknownServer
from outfitter.formats.servers import read_transport, write_definition, write_settings
from outfitter.formats.shape import (
    read_each,
    read_env,
    read_filter,
    read_object,
    read_optional_text,
    read_seconds,
    read_settings,
    read_text,
    read_text_list,
    read_texts,
)

SESSION_CAPABILITY = "squad-session"
_SERVER_FIELDS = frozenset(
    ["type", "command", "args", "env", "cwd", "url", "headers", "tools", "timeout", "description", "fallback"]
)
_FILE_FIELDS = frozenset({"$schema", "servers", "agentServers", "toolRestrictions", "sessionServers", "roles"})


@dataclass(frozen=True, slots=True)
class SquadFile:
    """What a squad file says: the catalog, and which of its agents are held to the preset of which role."""

    catalog: Catalog
    roles: Mapping[str, str] = field(default_factory=dict[str, str])


def read_squad(value: object, source: str) -> Catalog:
    """The catalog that a squad file describes."""
    return read_squad_file(value, source).catalog


def read_squad_file(value: object, source: str) -> SquadFile:
    """Everything that a squad file describes."""
    fields = read_object(value, _FILE_FIELDS)
    entries = read_each(fields, "servers", lambda name, item: _read_server(name, item, source))
    routes = read_each(fields, "agentServers", lambda _, item: read_text_list(item))
    shared = read_texts(fields, "sessionServers") or ()
    restrictions = read_each(fields, "toolRestrictions", lambda _, item: _read_restrictions(item))
    _check_names(entries, {"sessionServers": shared, **{f"agentServers/{a}": names for a, names in routes.items()}})
    for name, restricted in restrictions.items():
        _check_restrictions(name, restricted, routes, shared)
    roles = read_each(fields, "roles", lambda _, item: read_text({"role": item}, "role"))
    for name in roles:
        _check_agent(name, routes, "roles")
    session = Capability(SESSION_CAPABILITY, servers={name: ServerRef(name) for name in shared}, source=source)
    agents = [
        _make_agent(name, servers, restrictions.get(name, {}), has_session=bool(shared), source=source)
        for name, servers in routes.items()
    ]
    return SquadFile(Catalog.of(entries.values(), [session] if shared else [], agents), roles)


def _read_server(name: str, value: object, source: str) -> ServerEntry:
    fields = read_object(value, _SERVER_FIELDS)
    server = MCPServer(
        name,
        read_transport(fields),
        env=read_env(fields),
        tools=read_filter(fields),
        limits=TimeLimits.of(read_seconds(fields, "timeout", milliseconds=True)),
        description=read_optional_text(fields, "description"),
        fallback=read_optional_text(fields, "fallback"),
    )
    return ServerEntry(server, default_headers=read_settings(fields, "headers"), source=source)


def _read_restrictions(value: object) -> dict[str, ToolFilter]:
    servers = read_object(value)
    found: dict[str, ToolFilter] = {}
    for server in servers:
        tools = read_filter({server: servers[server]}, server)
        found[server] = ToolFilter(_bare(server, tools.include), _bare(server, tools.exclude) or ())
    return found


def _bare(server: str, patterns: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """The patterns, and for each that carries the server's prefix the one without: squad files write both forms."""
    if patterns is None:
        return None
    prefix = f"{server}_"
    bare = [pattern.removeprefix(prefix) for pattern in patterns if pattern.startswith(prefix) and pattern != prefix]
    return tuple(dict.fromkeys((*patterns, *bare)))


def _check_names(entries: Mapping[str, ServerEntry], routes: Mapping[str, tuple[str, ...]]) -> None:
    for place, names in routes.items():
        for index, name in enumerate(names):
            if name not in entries:
                trail: tuple[str | int, ...] = (*place.split("/"), index)
                raise UnknownServer(f"no server {quote(name)} in 'servers'", hint=suggest(name, entries)).under(*trail)


def _check_restrictions(
    agent: str, restricted: Mapping[str, ToolFilter], routes: Mapping[str, tuple[str, ...]], shared: tuple[str, ...]
) -> None:
    _check_agent(agent, routes, "toolRestrictions")
    has = {*routes[agent], *shared}
    for server in restricted:
        if server not in has:
            error = UnknownServer(
                f"agent {quote(agent)} does not have server {quote(server)}", hint=suggest(server, has)
            )
            raise error.under("toolRestrictions", agent, server)


def _check_agent(agent: str, routes: Mapping[str, tuple[str, ...]], place: str) -> None:
    if agent not in routes:
        raise UnknownAgent(f"no agent {quote(agent)} in 'agentServers'", hint=suggest(agent, routes)).under(
            place, agent
        )


def _make_agent(
    name: str, servers: tuple[str, ...], restricted: Mapping[str, ToolFilter], *, has_session: bool, source: str
) -> Agent:
    uses = {server: ServerRef(server, tools=restricted.get(server, ToolFilter())) for server in servers}
    uses |= {s: ServerRef(s, tools=tools) for s, tools in restricted.items() if s not in uses}
    capabilities = (SESSION_CAPABILITY,) if has_session else ()
    try:
        return Agent(name, role=name, capabilities=capabilities, servers=uses, source=source)
    except OutfitterError as error:
        raise error.under("agentServers", name) from None


def write_squad(catalog: Catalog, roles: Mapping[str, str] | None = None) -> dict[str, JsonValue]:
    """The squad file of a catalog; InvalidDocument when the catalog says what a squad file cannot."""
    _refuse_unwritable(catalog)
    session = catalog.capabilities.get(SESSION_CAPABILITY)
    restrictions: dict[str, JsonValue] = {}
    for agent in catalog.agents.values():
        narrowed = {
            a: _write_filter(u.tools)
            for a, u in agent.servers.items()
            if isinstance(u, ServerRef) and not u.tools.is_open
        }
        if narrowed:
            restrictions[agent.name] = dict(narrowed)
    written: dict[str, JsonValue] = {
        "servers": {entry.id: write_squad_server(entry) for entry in catalog.servers.values()},
        "agentServers": {agent.name: list(agent.servers) for agent in catalog.agents.values()},
    }
    if restrictions:
        written["toolRestrictions"] = restrictions
    if session is not None:
        written["sessionServers"] = list(session.servers)
    if roles:
        written["roles"] = dict(roles)
    return written


def _write_filter(tools: ToolFilter) -> dict[str, JsonValue]:
    written: dict[str, JsonValue] = {}
    if tools.include is not None:
        written["include"] = list(tools.include)
    if tools.exclude:
        written["exclude"] = list(tools.exclude)
    return written


def write_squad_server(entry: ServerEntry) -> dict[str, JsonValue]:
    """One server as a squad file has it."""
    written = write_definition(entry.server)
    for key in ("timeout", "connect_timeout", "total_timeout", "required", "shareable", "sandbox", "tool_prefix"):
        written.pop(key, None)
    if entry.server.remote is None:
        written["type"] = "local"
    if entry.default_headers:
        written["headers"] = write_settings(entry.default_headers)
    written.setdefault("tools", ["*"])
    if entry.server.limits.call != TimeLimits().call:
        written["timeout"] = round(entry.server.limits.call * 1000)
    return written


def _refuse_unwritable(catalog: Catalog) -> None:
    for entry in catalog.servers.values():
        if entry.header_schema or entry.auth != NO_AUTH or entry.server.tool_prefix is not None:
            message = f"server '{entry.id}' has a header schema, auth or a tool prefix, which a squad file cannot hold"
            raise InvalidDocument(message, source="")
    for capability in catalog.capabilities.values():
        if capability.name != SESSION_CAPABILITY:
            raise InvalidDocument(f"capability '{capability.name}' cannot be written to a squad file", source="")
    for agent in catalog.agents.values():
        _refuse_unwritable_agent(agent)


def _refuse_unwritable_agent(agent: Agent) -> None:
    if agent.rules or agent.system_prompt:
        message = f"agent '{agent.name}' has rules or a prompt, which a squad file cannot hold"
        raise InvalidDocument(message, source="")
    for alias, use in agent.servers.items():
        if isinstance(use, InlineServer) or use.headers or use.ref not in {None, alias}:
            message = f"agent '{agent.name}': server '{alias}' has headers, an inline definition or another alias"
            raise InvalidDocument(message, source="", hint="a squad file names servers by their id alone")
