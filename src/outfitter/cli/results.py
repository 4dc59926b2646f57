"""Results that were too large for a model and are kept on this machine: look at them, or forget them."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from outfitter.app import results_of
from outfitter.cli.console import json_option, print_json, print_table, settings
from outfitter.errors import NotFound


@click.group("results")
def results_command() -> None:
    """Results that were kept aside on this machine because they were larger than an agent's result_limit."""


@results_command.command("list")
@json_option
def list_results(as_json: bool) -> None:
    r"""List what is kept, the newest first.

    \b
    Examples:
      outfitter results list
      outfitter results list --json
    """
    found = results_of(settings()).all()
    if as_json:
        names = ("id", "agent", "run", "server", "tool", "type", "size")
        moments = ("kept_at", "until")
        print_json([
            {**{name: getattr(one, name) for name in names}, **{name: _moment(getattr(one, name)) for name in moments}}
            for one in found
        ])  # fmt: skip
        return
    rows = [
        (one.id, one.agent, f"{one.server}/{one.tool}", str(one.size), _moment(one.kept_at), _moment(one.until))
        for one in found
    ]
    print_table(("ID", "AGENT", "TOOL", "BYTES", "KEPT", "UNTIL"), rows)


@results_command.command("show")
@click.argument("ident", metavar="ID")
def show_result(ident: str) -> None:
    r"""Print a kept result as it is, for a pipe.

    \b
    Examples:
      outfitter results show 6WbZ0yWm3yq1r2b8mJ0c9Q > result.json
    """
    folder = results_of(settings())
    found = folder.find(ident)
    kept = None if found is None else folder.read((found.agent, found.run), found.id)
    if kept is None:
        raise NotFound("nothing is kept under this id", hint="'outfitter results list' names what is")
    click.echo(kept[0], nl=False)


@results_command.command("clear")
@json_option
def clear_results(as_json: bool) -> None:
    r"""Forget everything that is kept; agents that ask for it hear that it is not there.

    \b
    Examples:
      outfitter results clear
    """
    count = results_of(settings()).clear()
    if as_json:
        print_json({"removed": count})
    else:
        click.echo(f"Removed {count} kept results.")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
