"""The command that looks at this machine."""

from __future__ import annotations

import os
import sys
from collections import Counter

import click

from outfitter.app import Surroundings, Verdict, examine
from outfitter.cli.console import folder, json_option, make_console, print_json, settings, visible

_STYLES = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red"}


@click.command("doctor")
@click.option("--live", is_flag=True, help="Connect every server that some agent uses, too.")
@click.option("--all", "show_all", is_flag=True, help="Show what is in order too.")
@json_option
def doctor_command(live: bool, show_all: bool, as_json: bool) -> None:
    r"""Check variables, commands, URLs, secrets and refs; exit code 1 when something fails.

    Nothing is started unless --live is given.

    \b
    Examples:
      outfitter doctor
      outfitter doctor --live
      outfitter doctor --all --json
    """
    from rich.text import Text

    catalog = folder().load()
    findings = examine(catalog, Surroundings.of(os.environ, settings()))
    if live:
        from outfitter.cli.live import examine_live

        findings += examine_live(catalog)
    counts = Counter(finding.verdict for finding in findings)
    if as_json:
        fields = ("check", "subject", "verdict", "message", "remedy")
        print_json([{name: str(getattr(finding, name)) for name in fields} for finding in findings])
    else:
        console = make_console()
        for finding in findings:
            if show_all or finding.verdict is not Verdict.OK:
                remedy = f" → {finding.remedy}" if finding.remedy else ""
                line = f" {finding.check} {finding.subject}: {finding.message}{remedy}"
                console.print(Text.assemble((f"{finding.verdict.value:4}", _STYLES[finding.verdict]), visible(line)))
        click.echo(f"{counts[Verdict.OK]} ok, {counts[Verdict.WARN]} warnings, {counts[Verdict.FAIL]} failures")
    if counts[Verdict.FAIL]:
        sys.exit(1)
