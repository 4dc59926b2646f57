"""The commands that write: a new squad file, the files of clients that use its endpoints, what others have already."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio
import click

from outfitter.app import (
    FIRST_SERVERS,
    SquadHome,
    find_files,
    find_home,
    merge_found,
    new_squad,
    preset_roles,
    read_file,
    roles_of,
)
from outfitter.basics import suggest
from outfitter.catalog import JsonValue, MCPServer, ServerEntry
from outfitter.cli.console import json_option, print_json, visible
from outfitter.errors import AlreadyExists, InvalidDocument, UnknownAgent
from outfitter.formats import (
    MAX_BYTES,
    Client,
    Syntax,
    parse_text,
    read_squad,
    render_text,
    write_client,
)
from outfitter.storage import read_bytes, write_files

if TYPE_CHECKING:
    from outfitter.app import Choice, Merged, NewSquad
    from outfitter.squad import Member, Told

_CLIENTS = {
    "copilot": (Client.COPILOT_CLI, ".github/mcp.json"),
    "claude": (Client.CLAUDE_CODE, ".mcp.json"),
    "vscode": (Client.VSCODE, ".vscode/mcp.json"),
}
_NOT_A_WORD = re.compile(r"[^A-Z0-9]+")


def _home() -> SquadHome:
    return find_home(click.get_current_context().meta["outfitter.cli.squad_dir"])


# ── init ──


@click.command("init")
@click.option("--yes", "-y", "is_silent", is_flag=True, help="Ask nothing: the roster of team.md, or every role.")
@click.option("--server", "servers", multiple=True, metavar="NAME",
              help="Begin with these servers of 'outfitter add --list' (default: github and filesystem).")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a squad file that is there.")
@click.option("--dry-run", is_flag=True, help="Show what would be written and write nothing.")
@json_option
def init_command(is_silent: bool, servers: tuple[str, ...], force: bool, dry_run: bool, as_json: bool) -> None:
    r"""Write .squad/mcp-config.json: who of the team gets which servers.

    With a roster in .squad/team.md each member becomes an agent, held to what its role may do; without one you are
    asked role by role. Only names of variables are written, never a value.

    \b
    Examples:
      outfitter squad init
      outfitter squad init --yes
      outfitter squad init --yes --server github --server postgres
    """
    home = _home()
    if home.file.exists() and not force and not dry_run:
        raise AlreadyExists("there is a squad file already", where=str(home.file), hint="--force replaces it")
    told = anyio.run(_roster, home)
    roles, notes = roles_of(told.value)
    asks = not (is_silent or as_json) and sys.stdin.isatty()
    wanted: Mapping[str, Sequence[str]] = dict.fromkeys(servers or FIRST_SERVERS, ())
    if not roles:
        roles = preset_roles()
    if asks:
        roles, wanted = _ask(roles, tuple(wanted))
    made = new_squad(roles, wanted)
    read_squad(made.document, str(home.file))
    if not dry_run:
        write_files({home.file: render_text(made.document, Syntax.JSON)})
    _tell_new(home, made, (*told.notes, *notes, *made.notes), as_json=as_json, is_dry=dry_run)


async def _roster(home: SquadHome) -> Told[tuple[Member, ...]]:
    from outfitter.squad import SquadFolder

    return await SquadFolder.at(home.folder).roster()


def _ask(roles: Mapping[str, str], servers: Sequence[str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Which agents there are, and the servers of each; an agent without servers is left out when '-' is said."""
    from outfitter.squad import find_pattern

    known: dict[str, str] = {}
    wanted: dict[str, list[str]] = {}
    click.echo(
        "Servers of each agent, with commas between them; - leaves the agent out. 'outfitter add --list' lists all."
    )
    for agent, role in roles.items():
        usual = ", ".join(name for name in servers if find_pattern(name).shares_of(role))
        said = str(click.prompt(f"{agent} ({role})", default=usual)).strip()
        if said == "-":
            continue
        known[agent] = role
        for name in dict.fromkeys(part.strip() for part in said.split(",") if part.strip()):
            find_pattern(name)
            wanted.setdefault(name, []).append(agent)
    return known, wanted


def _tell_new(home: SquadHome, made: NewSquad, notes: Sequence[str], *, as_json: bool, is_dry: bool) -> None:
    unset = [name for name in made.variables if not os.environ.get(name)]
    if as_json:
        print_json({
            "file": str(home.file), "document": made.document, "notes": list(notes),
            "unset": cast("list[JsonValue]", unset), "dry_run": is_dry,
        })  # fmt: skip
        return
    routes = cast("dict[str, list[str]]", made.document["agentServers"])
    roles = cast("dict[str, str]", made.document["roles"])
    for agent, servers in routes.items():
        click.echo(visible(f"{agent} ({roles[agent]}): {', '.join(servers) or 'no server'}"))
    for note in notes:
        click.echo(visible(f"note: {note}"))
    click.echo(f"{'Would write' if is_dry else 'Wrote'} {home.file}. Nothing was started.")
    if unset:
        click.echo("Set before it is used, in the environment of the gateway (nothing is stored here):")
    for name in unset:
        click.echo(f"  export {name}=...   # {made.variables[name]}")


# ── export ──


@click.command("export")
@click.option("--for", "client", type=click.Choice(list(_CLIENTS)), required=True, help="Whose file it is.")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; repeat it for more.")
@click.option("--url", default="http://127.0.0.1:8700", show_default=True, help="Where the gateway is.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Merge into this file.")
@click.option("--dry-run", is_flag=True, help="Print what would be written and write nothing.")
@json_option
def export_command(
    client: str, agents: tuple[str, ...], url: str, output: Path | None, dry_run: bool, as_json: bool
) -> None:
    r"""Point a client at the endpoints of the squad's agents, in the client's own file of this repository.

    No token is written: the client reads the token of each agent from a variable of its own,
    OUTFITTER_TOKEN_<AGENT>. Set only those of the agents that the client may be: without its token an endpoint lets
    nobody in. What else the file holds stays.

    \b
    Examples:
      outfitter squad export --for vscode
      outfitter squad export --for claude --agent tester
      outfitter squad export --for copilot -o ~/.copilot/mcp-config.json
    """
    home = _home()
    known = home.load().agents
    for agent in agents:
        if agent not in known:
            raise UnknownAgent(f"no agent '{agent}' in the squad file", hint=suggest(agent, known))
    kind, usual = _CLIENTS[client]
    place = output or home.project / usual
    entries = [_endpoint(agent, url) for agent in agents or known]
    existing = read_bytes(place, MAX_BYTES).decode() if place.exists() else None
    written = write_client(kind, entries, existing)
    if not dry_run:
        write_files({place: written.text})
    variables = [token_variable(agent) for agent in agents or known]
    if as_json:
        print_json({
            "client": client, "output": str(place), "endpoints": {e.id: e.server.url for e in entries},
            "variables": variables, "notes": list(written.notes), "text": written.text, "dry_run": dry_run,
        })  # fmt: skip
        return
    for note in written.notes:
        click.echo(visible(f"note: {note}"), err=True)
    if dry_run:
        click.echo(written.text, nl=False)
        return
    click.echo(f"Wrote {place}: {len(entries)} endpoints. It reads {', '.join(variables)}.")


def token_variable(agent: str) -> str:
    """The variable that a client reads the token of an agent from."""
    return f"OUTFITTER_TOKEN_{_NOT_A_WORD.sub('_', agent.upper())}"


def _endpoint(agent: str, url: str) -> ServerEntry:
    server = MCPServer.http(f"outfitter-{agent}".lower()[:64], f"{url.rstrip('/')}/mcp/{agent}")
    return ServerEntry(server, default_headers={"Authorization": f"Bearer ${{{token_variable(agent)}}}"})


# ── import ──


@dataclass(frozen=True, slots=True)
class _Wish:
    """How an import is to be done."""

    files: tuple[Path, ...]
    to: tuple[str, ...]
    choice: Choice
    has_home: bool


@click.command("import")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", multiple=True, metavar="AGENT", help="Give what is new to this agent; repeat it for more.")
@click.option("--conflict", "choice", type=click.Choice(["apart", "keep", "take"]), default="apart", show_default=True,
              help="A server that differs from one of the file: keep both, keep the old, take the new.")  # fmt: skip
@click.option("--no-home", is_flag=True, help="Look in this repository only, not in your home folder.")
@click.option("--dry-run", is_flag=True, help="Show what would happen and write nothing.")
@json_option
def import_command(
    files: tuple[Path, ...], to: tuple[str, ...], choice: str, no_home: bool, dry_run: bool, as_json: bool
) -> None:
    r"""Merge the MCP servers that VS Code, JetBrains, Claude and Copilot have into the squad file, each once.

    Without FILES the usual places of this repository and of your home folder are looked at. The same server under two
    names comes once; literal secrets become variables, which are listed; nothing is started, and the other programs'
    files are not changed.

    \b
    Examples:
      outfitter squad import --dry-run
      outfitter squad import --no-home --to lead
      outfitter squad import .vscode/mcp.json --conflict keep
    """
    home = _home()
    merged, comments = _merge(home, _Wish(files, to, cast("Choice", choice), not no_home))
    if merged.added and not dry_run:
        write_files({home.file: render_text(merged.document, Syntax.JSON)})
    notes = (*merged.notes, *comments)
    if as_json:
        print_json({
            "file": str(home.file), "added": dict(merged.added), "same": list(merged.same),
            "conflicts": list(merged.conflicts), "notes": list(notes), "dry_run": dry_run,
        })  # fmt: skip
        return
    for name, target in merged.added.items():
        click.echo(visible(f"{name}: {target}"))
    for word, lines in (("same", merged.same), ("conflict", merged.conflicts), ("note", notes)):
        for line in lines:
            click.echo(visible(f"{word}: {line}"))
    counts = f"{len(merged.added)} new, {len(merged.same)} there already, {len(merged.conflicts)} conflicts"
    click.echo(f"{'Would write' if dry_run else 'Wrote'} to {home.file}: {counts}. Nothing was started.")


def _merge(home: SquadHome, wish: _Wish) -> tuple[Merged, tuple[str, ...]]:
    """The merge, and a note when the file's comments are lost by it."""
    document: dict[str, JsonValue] = {"servers": {}, "agentServers": {}}
    comments: tuple[str, ...] = ()
    catalog = read_squad(document, "")
    if home.file.is_file():
        catalog, data = home.read().catalog, read_bytes(home.file, MAX_BYTES)
        document = parse_text(data, source=str(home.file), syntax=Syntax.JSONC)
        comments = _lost_comments(data, home.file)
    for agent in wish.to:
        if agent not in catalog.agents:
            raise UnknownAgent(f"no agent '{agent}' in the squad file", hint=suggest(agent, catalog.agents))
    project = home.project.resolve()
    found = (
        [read_file(file, project) for file in wish.files]
        if wish.files
        else list(find_files(project, os.environ, has_home=wish.has_home))
    )
    merged = merge_found(document, catalog.servers.values(), found, wish.choice)
    routes = cast("dict[str, list[JsonValue]]", merged.document["agentServers"])
    for agent in wish.to:
        routes[agent] = [*routes[agent], *(name for name in merged.added if name not in routes[agent])]
    read_squad(merged.document, str(home.file))
    return merged, comments if merged.added else ()


def _lost_comments(data: bytes, file: Path) -> tuple[str, ...]:
    try:
        parse_text(data, source=str(file), syntax=Syntax.JSON)
    except InvalidDocument:
        return ("the comments and trailing commas of the file are not kept",)
    return ()
