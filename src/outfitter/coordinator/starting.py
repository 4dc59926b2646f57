"""A run request from document to plan: read, resolved under its parent, with every problem found. Nothing is stored.

The one path for every way a run can start. The caller says which catalog, which parent and which ids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast

import anyio

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import Agent, Catalog, RunRequest, ServerEntry
from outfitter.coordinator.commands import command_digest, executor_problem
from outfitter.coordinator.credentials import PROVIDER
from outfitter.coordinator.reading import as_document, check_plain, read_all
from outfitter.coordinator.values import MASK
from outfitter.coordinator.view import unknown
from outfitter.errors import (
    InvalidDocument,
    InvalidRun,
    NotApproved,
    OutfitterError,
    Refused,
    SecretUnavailable,
    UnresolvedPlaceholder,
)
from outfitter.formats import read_run
from outfitter.resolution import Need, Plain, RunPlan, RuntimeValue, Supply, Want, resolve, server_wants, unresolved
from outfitter.upstream import make_providers

RunType: TypeAlias = Literal["start_session", "resume_session"]
Fetch: TypeAlias = Callable[[Sequence[Want]], Awaitable[Supply]]
"""Looks variables and secrets up where the run's servers will be connected."""
SOURCE = "run request"
DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Asked:
    """A run request as it was read."""

    type: RunType
    run: RunRequest
    parent_session_id: str | None

    def named(self, run_id: str, session_id: str) -> RunRequest:
        """The request with the ids of its run."""
        return replace(self.run, run_id=run_id, session_id=session_id)


def read_asked(document: object) -> Asked:
    """What is asked for; what is wrong with it is raised, all at once where possible."""
    check_plain(document)
    return read_all(document, _read, SOURCE)


def _read(document: object) -> Asked:
    run = read_run(document, SOURCE)
    _check_masks(run)
    fields = as_document(document)
    parent = fields.get("parent_session_id")
    if parent is not None and not isinstance(parent, str):
        raise InvalidDocument("expected a text", source="").under("parent_session_id")
    return Asked(cast("RunType", fields.get("type", "start_session")), run, parent)


def _check_masks(run: RunRequest) -> None:
    """Refuse a mask: a run has no stored value that it could keep, and would send the mask itself."""
    headers = (("mcp_headers", a, n) for a, given in run.mcp_headers.items() for n in given if given[n] == MASK)
    hidden = Secret(MASK)
    credentials = (("credentials", a, n) for a, given in run.credentials.items() for n in given if given[n] == hidden)
    for place in (*headers, *credentials):
        hint = "give the value, or leave it out to have the one of the agent"
        raise InvalidRun("a mask stands in the place of the value", hint=hint).under(*place)


def check_depth(depth: int) -> None:
    """Refuse a session that stands below too many others: agents that start agents must end somewhere."""
    if depth > DEEPEST:
        hint = "an agent that starts itself again and again ends here"
        raise InvalidRun(f"sessions are at most {DEEPEST} deep", where=SOURCE, hint=hint)


async def resolve_run(catalog: Catalog, run: RunRequest, parent: RunPlan | None, fetch: Fetch | None) -> RunPlan:
    """The blank plan of a run that may start; UnknownAgent, or Refused with every problem."""
    agent = catalog.agents.get(run.agent_name)
    if agent is None:
        raise unknown("agents", run.agent_name)
    plan = resolve(agent, catalog, run, parent)
    forgotten = [problem for _, _, problem in _forgotten(plan)]
    problems = [*_unapproved(plan, agent), *forgotten, *await _unfilled(plan, fetch)]
    _refuse(f"a run of agent '{agent.name}' cannot start", problems)
    return plan


async def resume_run(catalog: Catalog, run: RunRequest, plan: RunPlan, fetch: Fetch | None) -> dict[SecretRef, Secret]:
    """The credentials that a session goes on with; Refused when it cannot go on as it was planned."""
    problems: list[OutfitterError] = []
    if run.agent_name != plan.agent.name:
        problems.append(InvalidRun(f"the session is one of agent '{plan.agent.name}'", where=SOURCE))
    elif run.agent_name not in catalog.agents:
        raise unknown("agents", run.agent_name)
    if run.mcp_headers:
        hint = "start a new session to have others"
        problems.append(InvalidRun("a session keeps the headers it began with", where=SOURCE, hint=hint))
    entries = dict.fromkeys(server.entry_id for server in plan.servers.values() if server.entry_id is not None)
    problems += [unknown("mcp-servers", name) for name in entries if name not in catalog.servers]
    problems += [problem for _, problem in _withdrawn(plan, catalog)]
    unapproved = executor_problem(catalog.agents[plan.agent.name]) if plan.agent.name in catalog.agents else None
    problems += [] if unapproved is None else [unapproved]
    held = dict(_refilled(plan, run))
    problems += [problem for _, ref, problem in _forgotten(plan) if ref not in held]
    problems += await _unfilled(plan, fetch)
    _refuse(f"the session of agent '{plan.agent.name}' cannot go on", problems)
    return held


def _refilled(plan: RunPlan, run: RunRequest) -> Iterator[tuple[SecretRef, Secret]]:
    """The plan's references to credentials, each with the one that is given for its header now."""
    for alias, name, ref in _references(plan):
        spelled = name.lower().replace("-", "_")
        for given, secret in run.credentials.get(alias, {}).items():
            if given.lower().replace("-", "_") in {spelled, spelled.removeprefix("x_")}:
                yield ref, secret


def _references(plan: RunPlan) -> Iterator[tuple[str, str, SecretRef]]:
    for server in plan.servers.values():
        for name, header in server.headers.items():
            inner = header.value.value if isinstance(header.value, Plain) else None
            if isinstance(inner, SecretRef) and inner.provider == PROVIDER:
                yield server.alias, name, inner


def secrets_of(run: RunRequest) -> frozenset[Secret]:
    """The credentials that came with a run."""
    return frozenset(secret for given in run.credentials.values() for secret in given.values())


def _unapproved(plan: RunPlan, agent: Agent) -> Iterator[OutfitterError]:
    problem = executor_problem(agent)
    if problem is not None:
        yield problem
    for server in plan.servers.values():
        if server.definition.value.required and not server.is_approved:
            hint = f"an admin has to approve the command of server '{server.entry_id}'"
            yield NotApproved(f"server '{server.alias}' is required and its command is not approved", hint=hint)


def faults_now(plan: RunPlan, catalog: Catalog) -> dict[str, OutfitterError]:
    """Why servers of a run that goes on are not connected any more: one problem for each alias."""
    faults: dict[str, OutfitterError] = {}
    for server in plan.servers.values():
        if server.entry_id is not None and server.entry_id not in catalog.servers:
            faults[server.alias] = unknown("mcp-servers", server.entry_id)
    return {**{alias: problem for alias, _, problem in _forgotten(plan)}, **dict(_withdrawn(plan, catalog)), **faults}


def _withdrawn(plan: RunPlan, catalog: Catalog) -> Iterator[tuple[str, OutfitterError]]:
    """Programs that the plan would start, and whose command is not the one that is approved now."""
    for server in plan.servers.values():
        entry = catalog.servers.get(server.entry_id or "")
        planned = command_digest(ServerEntry(server.definition.value))
        if entry is None or planned is None or not server.is_approved:
            continue
        if not entry.is_approved or command_digest(entry) != planned:
            hint = f"start a new session, once an admin has approved the command of server '{server.entry_id}'"
            message = f"the command of server '{server.alias}' is not approved any more"
            yield server.alias, NotApproved(message, hint=hint)


def _forgotten(plan: RunPlan) -> Iterator[tuple[str, SecretRef, OutfitterError]]:
    """Headers that were given as a credential which nobody holds any more, each with its server's alias."""
    for alias, name, ref in _references(plan):
        message = f"server '{alias}': the credential for header '{name}' is not held any more"
        yield alias, ref, UnresolvedPlaceholder(message, hint="resume that session and give its credentials again")


async def _unfilled(plan: RunPlan, fetch: Fetch | None) -> list[OutfitterError]:
    """Placeholders that are malformed, and those that nothing fills where it can be known here."""
    wants: list[Want] = []
    problems: list[OutfitterError] = []
    for server in plan.servers.values():
        try:
            wants += server_wants(server)
        except UnresolvedPlaceholder as malformed:
            problems.append(malformed)
    known = [want for want in wants if not _is_own(want)]
    if fetch is not None and known:
        problems += await _unsupplied(known, fetch)
    return problems


async def _unsupplied(wants: Sequence[Want], fetch: Fetch) -> list[OutfitterError]:
    """What nothing fills; when something cannot be asked for, the rest is asked for all the same."""
    try:
        supply = await fetch(wants)
    except (SecretUnavailable, UnresolvedPlaceholder, Refused):
        problems: dict[Need, list[OutfitterError]] = {want.need: [] for want in wants}
        async with anyio.create_task_group() as group:
            for need, found in problems.items():
                group.start_soon(_ask_apart, [want for want in wants if want.need == need], fetch, found)
        return [problem for found in problems.values() for problem in found]
    return [unresolved(want) for want in wants if supply.find(want.need) is None]


async def _ask_apart(wants: Sequence[Want], fetch: Fetch, problems: list[OutfitterError]) -> None:
    """The problems of those who want one and the same thing."""
    try:
        supply = await fetch(wants[:1])
    except (SecretUnavailable, UnresolvedPlaceholder, Refused) as error:
        problems += [_unasked(want, error) for want in wants]
    else:
        problems += [unresolved(want) for want in wants if supply.find(want.need) is None]


def _unasked(want: Want, error: OutfitterError) -> OutfitterError:
    """Why it cannot be asked for: a provider that is down may come back, one that does not exist will not."""
    message = f"{unresolved(want).message}: {error.message}"
    is_outage = isinstance(want.need, SecretRef) and want.need.provider in make_providers({}, Path())
    if is_outage and not isinstance(error, UnresolvedPlaceholder):
        return SecretUnavailable(message, hint=error.hint)
    return UnresolvedPlaceholder(message, hint=error.hint)


def _refuse(message: str, problems: Sequence[OutfitterError]) -> None:
    """Refuse a run that has problems; when nothing but an outage is in its way, that is what is told."""
    if problems and all(isinstance(problem, SecretUnavailable) for problem in problems):
        raise problems[0]
    if problems:
        raise Refused(message, problems, where=SOURCE)


def _is_own(want: Want) -> bool:
    """Whether Outfitter itself fills it when the run begins."""
    need = want.need
    return isinstance(need, RuntimeValue) or (isinstance(need, SecretRef) and need.provider == PROVIDER)
