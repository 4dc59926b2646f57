"""Which role may do what: document 5's security table as filters and rules of the catalog.

A preset only narrows: it never adds a server or a tool, and where the agent has a filter or rule of its own, both
hold. What each cell means is ``access``; the gateway enforces the result as it enforces any agent's filters and rules,
and ``fit_server`` gives the same to an adapter, whose hooks then deny with the same reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from outfitter.basics import quote, suggest
from outfitter.catalog import (
    Agent,
    Catalog,
    Effect,
    InlineServer,
    MCPServer,
    ServerEntry,
    ServerRef,
    ServerUse,
    ToolFilter,
    ToolRule,
)
from outfitter.errors import Invalid, UnknownAgent
from outfitter.policy import RulePolicy
from outfitter.squad.access import (
    APPROVE_ONLY,
    FULL,
    ISSUES_AND_PULL_REQUESTS,
    ISSUES_READ,
    NONE,
    READ_ONLY,
    Access,
    Kind,
    folders_of,
    kind_of,
    read_and_write,
    under_folders,
)

NO_PRESET = "none"
"""The role of an agent that has a preset's name and is not to be held to it."""
_GLOB_LETTERS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Preset:
    """One row of the table."""

    role: str
    github: Access
    filesystem: Access
    database: Access
    deploy: Access

    def access(self, kind: Kind) -> Access:
        """The cell of this kind of server."""
        return {
            Kind.GITHUB: self.github,
            Kind.FILESYSTEM: self.filesystem,
            Kind.DATABASE: self.database,
            Kind.DEPLOY: self.deploy,
        }[kind]

    def rules(self, kind: Kind, alias: str, folders: Sequence[str] = ()) -> tuple[ToolRule, ...]:
        """The rules of a cell, about this server and with the role in their reason; ``folders`` are those it serves."""
        named = [replace(rule, server=alias, reason=f"{self.role}: {rule.reason}") for rule in self.access(kind).rules]
        return tuple(under_folders(rule, folders) if kind is Kind.FILESYSTEM else rule for rule in named)


PRESETS = (
    Preset("lead", FULL, FULL, READ_ONLY, APPROVE_ONLY),
    Preset("backend-dev", ISSUES_AND_PULL_REQUESTS, FULL, FULL, NONE),
    Preset("frontend-dev", ISSUES_AND_PULL_REQUESTS, FULL, NONE, NONE),
    Preset("tester", ISSUES_READ, read_and_write("Read + Write tests", "tests"), READ_ONLY, NONE),
    Preset("designer", ISSUES_READ, read_and_write("Read + Write assets", "assets"), NONE, NONE),
    Preset("scribe", ISSUES_READ, read_and_write("Read + Write docs", "docs"), NONE, NONE),
)
_OTHER_NAMES = {
    "backend": "backend-dev",
    "backend-developer": "backend-dev",
    "frontend": "frontend-dev",
    "frontend-developer": "frontend-dev",
}


def preset_for(role: str) -> Preset | None:
    """The preset of a role, however it is written (``Backend Dev``, ``backend_dev``); None for any other role."""
    spelled = "-".join(role.lower().replace("_", " ").replace("-", " ").split())
    wanted = _OTHER_NAMES.get(spelled, spelled)
    return next((preset for preset in PRESETS if preset.role == wanted), None)


def apply_presets(catalog: Catalog, roles: Mapping[str, str] | None = None, *, root: str | None = None) -> Catalog:
    """The catalog with every agent narrowed to its role; ``roles`` names the roles of agents that have another name.

    ``root`` is the folder that ``${WORKSPACE_ROOT}`` will mean: paths in it may then be written absolutely as well.
    Servers that come from a capability are narrowed too. A role without a preset leaves its agent as it is; one that
    is given here must have one, or be ``none``.
    """
    given = roles or {}
    _check_roles(given, catalog)
    agents: dict[str, Agent] = {}
    for name, agent in catalog.agents.items():
        named = replace(agent, role=given[name]) if name in given else agent
        agents[name] = agent if named.role == NO_PRESET else _apply_with_shared(named, catalog, root)
    return Catalog(catalog.servers, catalog.capabilities, agents)


def _check_roles(roles: Mapping[str, str], catalog: Catalog) -> None:
    for name, role in roles.items():
        if name not in catalog.agents:
            raise UnknownAgent(f"no agent {quote(name)} has a role here", hint=suggest(name, catalog.agents))
        if preset_for(role) is None and role != NO_PRESET:
            known = [*(preset.role for preset in PRESETS), NO_PRESET]
            hint = suggest(role, known) or f"one of {', '.join(known)}"
            raise Invalid(f"agent {quote(name)}: no preset for role {quote(role)}", hint=hint)


def _apply_with_shared(agent: Agent, catalog: Catalog, root: str | None) -> Agent:
    """The agent narrowed, with a pointer of its own to each server of a kind that one of its capabilities gives it."""
    if preset_for(agent.role or agent.name) is None:
        return agent
    servers, shared = dict(catalog.servers), dict[str, ServerUse]()
    for capability in (catalog.capabilities.get(name) for name in agent.capabilities):
        for alias, use in capability.servers.items() if capability is not None else ():
            entry = _entry_of(alias, use, catalog.servers)
            if entry is not None and kind_of(alias, entry) is not None:
                servers[alias] = entry
                shared[alias] = ServerRef(use.ref if isinstance(use, ServerRef) else None)
    return apply_preset(replace(agent, servers={**shared, **agent.servers}) if shared else agent, servers, root=root)


def apply_preset(agent: Agent, servers: Mapping[str, ServerEntry], *, root: str | None = None) -> Agent:
    """The agent narrowed to its role (to its name, where it has none); unchanged where there is no preset for it."""
    preset = preset_for(agent.role or agent.name)
    if preset is None:
        return agent
    uses: dict[str, ServerUse] = {}
    rules = agent.rules
    for alias, use in agent.servers.items():
        entry = _entry_of(alias, use, servers)
        kind = kind_of(alias, entry)
        if kind is None:
            uses[alias] = use
            continue
        added, lost = _meet(agent.rules, preset.rules(kind, alias, folders_of(entry, root)), alias)
        uses[alias] = _narrow_use(use, preset.access(kind).tools, lost)
        rules += added
    return replace(agent, servers=uses, rules=rules)


def fit_server(preset: Preset, server: MCPServer) -> MCPServer:
    """The server as an adapter may give it to this role: fewer tools, and a policy whose reasons the model is told."""
    entry = ServerEntry(server.without_headers())
    kind = kind_of(server.name, entry)
    if kind is None:
        return server
    held = RulePolicy(preset.rules(kind, server.name, folders_of(entry)), name=f"preset-{preset.role}-{server.name}")
    return replace(
        server,
        tools=_intersect(server.tools, preset.access(kind).tools),
        policies=(*cast("tuple[RulePolicy, ...]", server.policies), held),
    )


def _entry_of(alias: str, use: ServerUse, servers: Mapping[str, ServerEntry]) -> ServerEntry | None:
    if isinstance(use, InlineServer):
        return ServerEntry(use.server.without_headers())
    return servers.get(use.ref or alias)


def _narrow_use(use: ServerUse, tools: ToolFilter, lost: Iterable[str]) -> ServerUse:
    closed = ToolFilter(tools.include, (*tools.exclude, *lost))
    if isinstance(use, InlineServer):
        return replace(use, server=replace(use.server, tools=_intersect(use.server.tools, closed)))
    return replace(use, tools=_intersect(use.tools, closed))


def _intersect(own: ToolFilter, other: ToolFilter) -> ToolFilter:
    """What passes both. Names are kept exactly; of two globs only one that the other list has too."""
    excluded = tuple(dict.fromkeys((*own.exclude, *other.exclude)))
    if own.include is None or other.include is None:
        return ToolFilter(own.include if other.include is None else other.include, excluded)
    both = [name for name in other.include if _is_within(name, own.include)]
    both += [name for name in own.include if _is_within(name, other.include)]
    return ToolFilter(tuple(dict.fromkeys(both)), excluded)


def _is_within(name: str, patterns: tuple[str, ...]) -> bool:
    return name in patterns or "*" in patterns or (not _is_glob(name) and ToolFilter(patterns).allows(name))


def _is_glob(text: str) -> bool:
    return not _GLOB_LETTERS.isdisjoint(text)


def _meet(own: Iterable[ToolRule], held: Iterable[ToolRule], alias: str) -> tuple[tuple[ToolRule, ...], set[str]]:
    """The preset's rules to add, and the tools to take away.

    Allow rules of one agent add up, so a preset's rule beside the agent's own would widen. Where the agent's own rules
    are within the preset's, they stand alone; where they are not, nobody can say what holds, and the tool goes.
    """
    allowing = [rule for rule in own if rule.effect is Effect.ALLOW]
    added: list[ToolRule] = []
    lost: set[str] = set()
    for rule in held:
        if rule.effect is not Effect.ALLOW:
            added.append(rule)
            continue
        spoken = {tool: [mine for mine in allowing if mine.speaks_of(alias, tool)] for tool in rule.tools}
        free = tuple(tool for tool, mine in spoken.items() if not mine)
        if free:
            added.append(replace(rule, tools=free))
        lost |= {tool for tool, mine in spoken.items() if not all(_is_narrower(one, rule) for one in mine)}
    return tuple(added), lost


def _is_narrower(own: ToolRule, held: ToolRule) -> bool:
    return all(
        pointer in own.arguments and all(_is_under(glob, globs) for glob in own.arguments[pointer])
        for pointer, globs in held.arguments.items()
    )


def _is_under(glob: str, globs: tuple[str, ...]) -> bool:
    """Whether a glob is one of these, or begins with the folder of one; text that climbs is under nothing."""
    folders = [other.removesuffix("**") for other in globs if other.endswith("/**") and not _is_glob(other[:-2])]
    return glob in globs or (".." not in glob and "\\" not in glob and glob.startswith(tuple(folders)))
