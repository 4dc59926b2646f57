"""Commands that watch the gateway: how it does, and each call as it happens."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import click

from outfitter.app import GatewayStatus, ServerNumbers, follow_calls, pending_here, read_status, waiting_here
from outfitter.cli.console import complete_names, json_option, print_json, print_table, settings, visible


@click.command("status")
@click.option(
    "--minutes", default=5.0, show_default=True, help="How far back to look.", type=click.FloatRange(min=0.01)
)
@json_option
def status_command(minutes: float, as_json: bool) -> None:
    r"""Say whether the gateway runs, and how each server does: its uptime since the gateway began, and its calls.

    \b
    Examples:
      outfitter status
      outfitter status --minutes 60 --json
    """
    status, waiting = read_status(settings(), minutes * 60), waiting_here(settings())
    pending = pending_here(settings())
    if as_json:
        print_json({**asdict(status), "waiting": [asdict(one) for one in waiting], "pins_pending": pending})
        return
    click.echo(f"Gateway: {status.url or 'no gateway runs here'} ({status.ready})")
    if status.problem:
        click.echo(visible(f"The changed catalog is not used: {status.problem}"))
    if status.records:
        click.echo(visible(f"Calls cannot be counted: {status.records}"))
    _print_servers(status)
    for one in waiting:
        told = f"{one.server}: '{one.tool}' appeared later and is hidden from agent '{one.agent}'"
        click.echo(visible(f"{told} (outfitter squad approve-tools {one.server} {one.tool})"))
    if pending:
        click.echo(f"{pending} changed definitions wait for approval (outfitter pins list --state pending)")


def _print_servers(status: GatewayStatus) -> None:
    rows = [
        [
            one.server or "(no server)",
            ", ".join(f"{state} {count}" if count > 1 else state for state, count in one.states.items()),
            "" if one.uptime is None else f"{one.uptime:.1%}",
            str(one.failures),
            str(one.calls),
            f"{one.per_second:.2f}",
            str(one.errors),
            str(one.refused),
            _time(one.p50),
            _time(one.p95),
        ]
        for one in status.servers
    ]
    titles = ["SERVER", "STATE", "UPTIME", "FAILURES", "CALLS", "PER SECOND", "ERRORS", "REFUSED", "P50", "P95"]
    print_table(titles, rows)
    for one in status.servers:
        if one.down_since is not None:
            click.echo(visible(_outage(one, one.down_since)))


def _outage(one: ServerNumbers, since: float) -> str:
    moment = datetime.fromtimestamp(since, UTC).astimezone().strftime("%H:%M:%S")
    told = f"{one.server}: not available since {moment}"
    return told if one.next_try is None else f"{told}, tried again in {math.ceil(one.next_try)} s"


def _time(milliseconds: float | None) -> str:
    return "" if milliseconds is None else f"{milliseconds:.1f} ms"


@click.command("tail")
@click.option("--agent", help="Only calls of this agent.", shell_complete=complete_names("agents"))
@click.option("--server", help="Only calls of this server.", shell_complete=complete_names("servers"))
@click.option("--tool", help="Only calls of this tool, by either of its names.")
@click.option("--denied", is_flag=True, help="Only calls that a rule refused.")
@click.option("--last", default=10, show_default=True, help="How many earlier calls to show first.")
@click.option("--follow/--no-follow", default=True, show_default=True, help="Go on with new calls as they come.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def tail_command(*, denied: bool, last: int, follow: bool, as_json: bool, **given: str | None) -> None:
    r"""Show calls as they happen; Ctrl-C ends it.

    \b
    Examples:
      outfitter tail
      outfitter tail --agent tester --denied
      outfitter tail --last 100 --no-follow --json
    """
    wanted = {name: value for name, value in given.items() if value is not None}
    if denied:
        wanted["outcome"] = "denied"
    try:
        for call in follow_calls(settings(), wanted, last=last, is_endless=follow):
            click.echo(json.dumps(call, ensure_ascii=False) if as_json else _line(call))
    except KeyboardInterrupt:
        return


def _line(call: dict[str, Any]) -> str:
    moment = datetime.fromtimestamp(call["started_at"], UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
    where = f"{call['server'] or '-'}/{call['tool'] or call['shown']}"
    why = call["rule"] or call["code"]
    told = f"{moment}  {call['agent']}  {where}  {call['outcome']}  {call['duration'] * 1000:.1f} ms"
    return visible(f"{told}  {why}" if why else told).replace("\n", " ")
