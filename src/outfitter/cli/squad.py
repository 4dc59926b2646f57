"""The commands about a repository's squad: its file checked, its new tools approved. What writes is beside it.

Neighbours: ``squad_writing`` has init, export and import, ``squad_serve`` the team's own server.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import click

from outfitter.app import (
    Finding,
    Settings,
    SquadHome,
    Verdict,
    check_squad,
    find_home,
    pins_of,
)
from outfitter.catalog import JsonValue
from outfitter.cli.console import json_option, print_json, settings, visible
from outfitter.cli.squad_serve import serve_command
from outfitter.cli.squad_writing import export_command, import_command, init_command

DIR = "outfitter.cli.squad_dir"


@click.group("squad")
@click.option(
    "--dir", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=".", show_default=True,
    help="A repository with a .squad folder, or a folder in it.",
)  # fmt: skip
@click.pass_context
def squad_command(ctx: click.Context, folder: Path) -> None:
    """Set up which agent of a repository's squad gets which MCP servers and tools."""
    ctx.meta[DIR] = folder


for _command in (init_command, export_command, import_command, serve_command):
    squad_command.add_command(_command)


def _home() -> SquadHome:
    return find_home(click.get_current_context().meta[DIR])


@squad_command.command("check")
@click.option("--connect", is_flag=True, help="Connect every server, and look for the tools that the file names.")
@click.option("--all", "show_all", is_flag=True, help="Show what is in order too.")
@json_option
def check_command(connect: bool, show_all: bool, as_json: bool) -> None:
    r"""Check the squad file; exit code 1 when something in it is wrong, 3 when it cannot be read.

    Variables that are not set here, agents that are not in team.md and tools that wait for approval are warnings.
    Nothing is started unless --connect is given.

    \b
    Examples:
      outfitter squad check
      outfitter squad check --connect
      outfitter squad --dir ../shop check --json
    """
    home = _home()
    findings = anyio.run(partial(check_squad, home, settings(), os.environ, connects=connect))
    if as_json:
        is_right = all(finding.verdict is not Verdict.FAIL for finding in findings)
        print_json({"file": str(home.file), "valid": is_right, "findings": [_finding_json(one) for one in findings]})
    else:
        _print_findings(home, findings, show_all=show_all)
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        sys.exit(1)


def _finding_json(finding: Finding) -> dict[str, JsonValue]:
    fields = ("check", "subject", "verdict", "message", "remedy")
    return {name: str(getattr(finding, name)) for name in fields}


def _print_findings(home: SquadHome, findings: Sequence[Finding], *, show_all: bool) -> None:
    for finding in findings:
        if show_all or finding.verdict is not Verdict.OK:
            remedy = f" → {finding.remedy}" if finding.remedy else ""
            told = f"{finding.check} {finding.subject}: {finding.message}{remedy}"
            click.echo(visible(f"{finding.verdict.value:4} {told}"))
    counts = Counter(finding.verdict for finding in findings)
    told = f"{counts[Verdict.OK]} ok, {counts[Verdict.WARN]} warnings, {counts[Verdict.FAIL]} failures"
    click.echo(f"{home.file}: {told}")


@squad_command.command("approve-tools")
@click.argument("server")
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@click.option("--agent", metavar="NAME", help="For this agent only.")
@json_option
def approve_tools_command(server: str, tools: tuple[str, ...], agent: str | None, as_json: bool) -> None:
    r"""Let in tools of SERVER that appeared later under an exclude rule; all that wait, if none is named.

    A gateway that runs shows them within a second. It works for the squad file of this repository, and for the
    catalog where there is none or --catalog names one.

    \b
    Examples:
      outfitter squad approve-tools github
      outfitter squad approve-tools github create_gist --agent tester
      outfitter --catalog outfitter squad approve-tools github
    """
    approved = pins_of(_settings()).late.approve(server, tools, agent=agent)
    if as_json:
        rows: list[JsonValue] = [{"server": one.server, "agent": one.agent, "tool": one.tool} for one in approved]
        print_json({"approved": rows})
        return
    for one in approved:
        click.echo(visible(f"{one.agent} gets {one.server}/{one.tool}"))
    click.echo(f"{len(approved)} approved." if approved else f"No tool of '{server}' waits.")


def _settings() -> Settings:
    """The settings of the squad; of the catalog, where one was named or there is no squad file."""
    home = _home()
    is_named = isinstance(click.get_current_context().find_root().obj, Path)
    return settings() if is_named or not home.file.is_file() else home.settings(settings())
