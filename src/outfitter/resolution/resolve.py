"""One resolver: what an agent gets from the catalog, in this run, under this parent.

A pure function. It collects every problem and raises them together as ``Refused``; what only deserves a word becomes
a notice of the plan. The header chain itself is ``chain``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from outfitter.basics import Level, Origin, Sourced, quote, suggest
from outfitter.catalog import (
    Agent,
    Catalog,
    HeaderSetting,
    HeaderSettings,
    InlineServer,
    RunRequest,
    ServerEntry,
    ServerRef,
    ServerUse,
)
from outfitter.errors import (
    AliasConflict,
    Conflict,
    InvalidRun,
    InvalidServer,
    OutfitterError,
    Refused,
    UnknownAlias,
    UnknownServer,
)
from outfitter.resolution.chain import LevelHeaders, ResolvedHeaders, missing_problem, resolve_headers
from outfitter.resolution.inherit import (
    inherited_gates,
    inherited_headers,
    inherited_origin,
    inherited_overrides,
    inherited_rules,
    parent_server,
)
from outfitter.resolution.overriding import resolve_overrides
from outfitter.resolution.plan import Gate, Notice, PlannedServer, RuleSet, RunPlan


@dataclass(frozen=True, slots=True)
class _Use:
    """One level's pointer to a server."""

    origin: Origin
    use: ServerUse


@dataclass(slots=True)
class _Findings:
    """What resolution has to say beside the plan."""

    problems: list[OutfitterError] = field(default_factory=list[OutfitterError])
    notices: list[Notice] = field(default_factory=list[Notice])


def resolve(
    agent: Agent | str, catalog: Catalog, run: RunRequest | None = None, parent: RunPlan | None = None
) -> RunPlan:
    """The blank plan of a run, or of the blueprint alone when no run is given; Refused with every problem at once."""
    blueprint = catalog.agent(agent) if isinstance(agent, str) else agent
    if run is not None and run.agent_name != blueprint.name:
        raise InvalidRun(f"the run is for agent '{run.agent_name}', not '{blueprint.name}'", where=run.source)
    findings = _Findings()
    uses = _collect_uses(blueprint, catalog, findings)
    if run is not None:
        findings.problems.extend(_stray_aliases(run, uses))
    servers: dict[str, PlannedServer] = {}
    for alias, levels in uses.items():
        try:
            servers[alias] = _plan_server(alias, levels, _Context(blueprint, catalog, run, parent), findings)
        except OutfitterError as problem:
            findings.problems.append(problem)
    if findings.problems:
        raise Refused(f"agent '{blueprint.name}' cannot be resolved", findings.problems, where=blueprint.source)
    ids = (run.session_id, run.run_id) if run else (None, None)
    return RunPlan(blueprint, servers, tuple(findings.notices), *ids, is_run=run is not None, catalog=catalog)


@dataclass(frozen=True, slots=True)
class _Context:
    agent: Agent
    catalog: Catalog
    run: RunRequest | None
    parent: RunPlan | None


def _collect_uses(agent: Agent, catalog: Catalog, findings: _Findings) -> dict[str, list[_Use]]:
    """Who points at which alias, in the order of the chain."""
    uses: dict[str, list[_Use]] = {}
    for name in dict.fromkeys(agent.capabilities):
        try:
            capability = catalog.capability(name, where=agent.source)
        except OutfitterError as problem:
            findings.problems.append(problem)
            continue
        origin = Origin(Level.CAPABILITY, name, capability.source)
        for alias, use in capability.servers.items():
            uses.setdefault(alias, []).append(_Use(origin, use))
    origin = Origin(Level.AGENT, agent.name, agent.source)
    for alias, use in agent.servers.items():
        uses.setdefault(alias, []).append(_Use(origin, use))
    return uses


def _stray_aliases(run: RunRequest, uses: Mapping[str, object]) -> Iterator[OutfitterError]:
    for what, by_alias in (("mcp_headers", run.mcp_headers), ("credentials", run.credentials)):
        for alias in by_alias:
            if alias not in uses:
                message = f"the run gives {what} for {quote(alias)}, which agent {quote(run.agent_name)} does not have"
                yield UnknownAlias(message, where=run.source, hint=suggest(alias, uses))


def _plan_server(alias: str, uses: list[_Use], context: _Context, findings: _Findings) -> PlannedServer:
    entry, definer = _find_entry(alias, uses, context.catalog)
    if isinstance(definer.use, InlineServer):
        findings.notices.append(_inline_notice(alias, definer.origin))
        definition_origin, entry_id = definer.origin, None
    else:
        definition_origin, entry_id = Origin(Level.REGISTRY, entry.id, entry.source), entry.id
    inherited = parent_server(context.parent, alias, entry_id, entry.server)
    levels = list(_levels(alias, entry, uses, context, findings))
    if context.parent is not None and inherited is not None:
        levels.append(LevelHeaders(inherited_origin(context.parent), inherited_headers(context.parent, inherited)))
    resolved = resolve_headers(entry.header_schema, levels)
    _report(alias, entry, resolved, context, findings)
    gates, rule_sets = _gates(entry, definition_origin, uses), _rule_sets(alias, context.agent)
    if context.parent is not None and inherited is not None:
        gates += inherited_gates(context.parent, inherited)
        rule_sets += inherited_rules(context.parent, inherited)
    overrides = [(use.origin, use.use.overrides) for use in uses]
    if context.parent is not None and inherited is not None:
        overrides += inherited_overrides(context.parent, inherited)
    return PlannedServer(
        alias=alias,
        entry_id=entry_id,
        definition=Sourced(entry.server, definition_origin),
        auth=entry.auth,
        headers=resolved.headers,
        removed=resolved.removed,
        missing=resolved.missing,
        header_schema=entry.header_schema,
        gates=gates,
        rule_sets=rule_sets,
        known_tools=entry.known_tools,
        uses=tuple(use.origin for use in uses),
        is_approved=entry.is_approved,
        overrides=resolve_overrides(overrides),
    )


def _find_entry(alias: str, uses: list[_Use], catalog: Catalog) -> tuple[ServerEntry, _Use]:
    """What the alias means, and who says so; the levels must agree."""
    definers = [use for use in uses if isinstance(use.use, InlineServer) or use.use.ref is not None]
    if not definers:
        hint = 'add "ref": "<server id>", or name a capability that has this alias'
        raise UnknownServer(f"alias '{alias}' has no ref at any level", where=uses[0].origin.where, hint=hint)
    first = definers[0]
    for other in definers[1:]:
        if _target(other.use) != _target(first.use):
            message = f"alias '{alias}' means one server in {first.origin} and another in {other.origin}"
            raise AliasConflict(message, hint="rename one of the two aliases")
    if isinstance(first.use, InlineServer):
        return ServerEntry(first.use.server.without_headers(), source=first.origin.where), first
    return catalog.server(first.use.ref or "", where=f"{first.origin} alias '{alias}'"), first


def _target(use: ServerUse) -> object:
    return use.server if isinstance(use, InlineServer) else use.ref


def _levels(
    alias: str, entry: ServerEntry, uses: list[_Use], context: _Context, findings: _Findings
) -> Iterator[LevelHeaders]:
    if entry.default_headers:
        yield LevelHeaders(Origin(Level.REGISTRY, entry.id, entry.source), entry.default_headers)
    for use in uses:
        settings = _settings_of(use.use)
        if settings:
            _refuse_on_stdio(alias, entry, use.origin)
            yield LevelHeaders(use.origin, settings)
    run = context.run
    if run is None:
        return
    given: dict[str, HeaderSetting] = dict(run.mcp_headers.get(alias, {}))
    for name, secret in run.credentials.get(alias, {}).items():
        header = _credential_header(name, entry)
        if header is None or any(other.lower() == header.lower() for other in given):
            findings.problems.append(_credential_problem(alias, name, entry, is_twice=header is not None))
        else:
            given[header] = secret
    if given:
        origin = Origin(Level.RUN, run.run_id or run.agent_name, run.source)
        _refuse_on_stdio(alias, entry, origin)
        yield LevelHeaders(origin, given)


def _settings_of(use: ServerUse) -> HeaderSettings:
    if isinstance(use, ServerRef):
        return use.headers
    return {**(use.server.remote.headers if use.server.remote else {}), **use.headers}


def _refuse_on_stdio(alias: str, entry: ServerEntry, origin: Origin) -> None:
    if entry.server.remote is None:
        message = f"server '{alias}' is a stdio server and takes no headers, but {origin} gives some"
        raise InvalidServer(message, hint="pass values in env")


def _credential_header(name: str, entry: ServerEntry) -> str | None:
    """The sensitive header that a credential fills: ``api_key`` fills ``X-API-Key``."""
    wanted = name.lower().replace("-", "_")
    for header, schema in entry.header_schema.items():
        spelled = header.lower().replace("-", "_")
        if schema.sensitive and wanted in {spelled, spelled.removeprefix("x_")}:
            return header
    return None


def _credential_problem(alias: str, name: str, entry: ServerEntry, *, is_twice: bool) -> OutfitterError:
    if is_twice:
        return Conflict(f"server '{alias}': the run gives credential {quote(name)} and the header it fills")
    sensitive = [header for header, schema in entry.header_schema.items() if schema.sensitive]
    hint = f"it accepts: {', '.join(sensitive)}" if sensitive else "its header_schema declares no sensitive header"
    return InvalidRun(f"server '{alias}' accepts no credential {quote(name)}", hint=hint)


def _gates(entry: ServerEntry, definition_origin: Origin, uses: list[_Use]) -> tuple[Gate, ...]:
    gates = [Gate(entry.server.tools, definition_origin)]
    gates += [Gate(use.use.tools, use.origin) for use in uses if isinstance(use.use, ServerRef)]
    return tuple(gate for gate in gates if not gate.filter.is_open)


def _rule_sets(alias: str, agent: Agent) -> tuple[RuleSet, ...]:
    rules = tuple(rule for rule in agent.rules if rule.speaks_of_server(alias))
    return (RuleSet(rules, Origin(Level.AGENT, agent.name, agent.source), alias),) if rules else ()


def _report(alias: str, entry: ServerEntry, resolved: ResolvedHeaders, context: _Context, findings: _Findings) -> None:
    findings.problems.extend(resolved.problems)
    for name in resolved.missing:
        problem = missing_problem(alias, name, entry.header_schema.get(name))
        if context.run is not None:
            findings.problems.append(problem)
        else:
            findings.notices.append(Notice("missing_header", problem.message, entry.source))
    if not entry.is_approved:
        findings.notices.append(_approval_notice(alias, entry))
    for name, origin in resolved.undeclared:
        message = f"server '{alias}': header '{name}' from {origin} is not in its header_schema"
        findings.notices.append(Notice("undeclared_header", message, origin.where))


def _inline_notice(alias: str, origin: Origin) -> Notice:
    message = (
        f"server '{alias}' is defined inline by {origin}; inline definitions are deprecated, run 'outfitter migrate'"
    )
    return Notice("inline_server", message, origin.where)


def _approval_notice(alias: str, entry: ServerEntry) -> Notice:
    message = f"server '{alias}': its command is not approved, so that it is not started; an admin can approve it"
    return Notice("not_approved", message, entry.source)
