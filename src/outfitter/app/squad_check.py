"""What is wrong with a squad file, or worth knowing about it: the file itself, this machine, the team, the servers.

Nothing is started unless it is asked for. A variable that is not set here is a warning: the agent goes without that
server and works. Neighbours: ``doctor`` has the checks of any catalog, ``squad_files`` reads the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from outfitter.app.doctor import Finding, Surroundings, Verdict, examine
from outfitter.app.live import arm_plan, make_pool
from outfitter.app.pins import pins_of
from outfitter.app.settings import Settings
from outfitter.app.squad_files import SquadHome, catalog_of
from outfitter.basics import suggest
from outfitter.catalog import Agent, Catalog, ServerRef
from outfitter.errors import OutfitterError
from outfitter.policy import Held, PinState
from outfitter.resolution import approval_of, resolve

_OF_THIS_MACHINE = frozenset({"variable", "command"})
_GLOB = frozenset("*?[")


async def check_squad(
    home: SquadHome, settings: Settings, environment: Mapping[str, str], *, connects: bool = False
) -> tuple[Finding, ...]:
    """Every finding about a squad file; the errors of one that cannot be read."""
    file = home.read()
    catalog = catalog_of(file)
    own, variables = home.settings(settings), home.environment(environment)
    findings = [_here(finding) for finding in examine(catalog, Surroundings.of(variables, own))]
    findings += _empty(catalog)
    findings += await _team_findings(home, catalog)
    findings += waiting_findings(own)
    if connects:
        findings += await _live_findings(file.catalog, variables, own)
    return tuple(findings)


def _here(finding: Finding) -> Finding:
    """A finding about this machine alone does not make the file wrong."""
    if finding.verdict is Verdict.FAIL and finding.check in _OF_THIS_MACHINE:
        return replace(finding, verdict=Verdict.WARN)
    return finding


def _empty(catalog: Catalog) -> Iterator[Finding]:
    for agent in catalog.agents.values():
        if not agent.servers and not agent.capabilities:
            yield Finding("agent", agent.name, Verdict.WARN, "it has no server", "name some in agentServers")


async def _team_findings(home: SquadHome, catalog: Catalog) -> list[Finding]:
    from outfitter.squad import PRESETS, SquadFolder, Viewer, member_of, preset_for

    told = await SquadFolder.at(home.folder).roster()
    if not told.value:
        notes = told.notes if (home.folder / "team.md").exists() else ()
        return [Finding("team", "team.md", Verdict.WARN, note) for note in notes]
    roles = {preset.role for member in told.value if (preset := preset_for(member.role)) is not None}
    known = [member.id for member in told.value]
    findings: list[Finding] = []
    for name in catalog.agents:
        is_role = name in roles and any(preset.role == name for preset in PRESETS)
        if not is_role and member_of(Viewer(name), told.value) is None:
            hint = suggest(name, known) or "add it to the table, or take it out of agentServers"
            findings.append(Finding("team", name, Verdict.WARN, "it is not in team.md", hint))
    return findings


def waiting_findings(settings: Settings) -> Iterator[Finding]:
    """The tools that appeared later or changed, and wait."""
    book = pins_of(settings)
    for one in book.late.waiting():
        message = f"'{one.tool}' appeared later and is hidden from agent '{one.agent}' (first seen {one.since})"
        remedy = f"outfitter squad approve-tools {one.server} {one.tool}"
        yield Finding("waiting", one.server, Verdict.WARN, message, remedy)
    for pin in book.pins():
        if pin.state is PinState.PENDING:
            held = Held(pin.name, pin.why, pin.was)
            message = f"'{pin.name or 'what it says of itself'}' is held back: {held.reason}"
            yield Finding("waiting", pin.server, Verdict.WARN, message, approval_of(pin.server, held))


async def _live_findings(catalog: Catalog, variables: Mapping[str, str], settings: Settings) -> list[Finding]:
    """Whether every server answers, and has the tools that the file names."""
    from outfitter.upstream import connect_all

    plan = resolve(Agent("squad-check", servers={name: ServerRef(name) for name in catalog.servers}), catalog)
    outfit = arm_plan(plan, variables, settings)
    findings: list[Finding] = []
    async with make_pool(settings) as pool:
        for name, connection in (await connect_all(pool, outfit.servers)).items():
            try:
                if isinstance(connection, OutfitterError):
                    raise connection
                tools = [str(tool.get("name")) for tool in await connection.use(lambda link: link.list_tools())]
            except OutfitterError as error:
                findings.append(Finding("live", name, Verdict.FAIL, str(error)))
                continue
            findings.append(Finding("live", name, Verdict.OK, f"it answers and has {len(tools)} tools"))
            findings += _unknown_names(catalog, name, tools)
    return findings


def _unknown_names(catalog: Catalog, server: str, tools: list[str]) -> Iterator[Finding]:
    for where, names in _named(catalog, server):
        for name in names:
            bare = name.removeprefix(f"{server}_")
            if not _GLOB & set(name) and name not in tools and bare not in tools:
                message = f"{where} names '{name}', which it does not have"
                yield Finding("filter", server, Verdict.WARN, message, suggest(name, tools))


def _named(catalog: Catalog, server: str) -> Iterator[tuple[str, Iterable[str]]]:
    tools = catalog.servers[server].server.tools
    yield f"servers/{server}/tools", (*(tools.include or ()), *tools.exclude)
    for agent in catalog.agents.values():
        use = agent.servers.get(server)
        if isinstance(use, ServerRef):
            yield f"toolRestrictions/{agent.name}", dict.fromkeys((*(use.tools.include or ()), *use.tools.exclude))
