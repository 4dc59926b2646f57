"""The command that executes runs on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import click

from outfitter.app import RunnerChoices, local_server, run_runner
from outfitter.basics import Secret
from outfitter.cli.console import json_option, print_json, settings
from outfitter.cli.registry_place import read_token
from outfitter.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from outfitter.runner import Figures


@click.command("runner")
@click.option("--server", metavar="URL", envvar="OUTFITTER_SERVER", help="The service; this machine's gateway if none.")
@click.option("--plain-http", is_flag=True, help="Send the token to another host without TLS.")
@click.option("--id", "name", default="", metavar="NAME", help="Its name; keep it, so that it takes up its own runs.")
@click.option("--concurrency", type=click.IntRange(min=1), default=4, show_default=True, help="Runs at a time.")
@click.option("--grace", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Seconds to end in.")
@click.option(
    "--database", metavar="URL", envvar="OUTFITTER_RUNNER_DATABASE",
    help="A PostgreSQL that several runners share; better in OUTFITTER_RUNNER_DATABASE.",
)  # fmt: skip
@click.option("--once", is_flag=True, help="End when nothing is left to do.")
@click.option("--no-orchestrator", is_flag=True, help="Offer agents no way to start agents.")
@click.option("--beside", "is_beside", is_flag=True, hidden=True)
@json_option
def runner_command(server: str | None, database: str | None, once: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options by name
    r"""Execute runs of agents, durably: a run is executed once, and one that was cut off is taken up again or lost.

    With --server the token, of the role runner, is in OUTFITTER_TOKEN; the gateway of this machine needs none, whose
    registry gives one. SIGTERM lets runs end within --grace. With --once the exit code is 1 when runs are left that the
    service does not let this runner begin.

    \b
    Examples:
      outfitter runner
      outfitter runner --server https://outfitter.example.com --concurrency 8
      outfitter runner --database postgresql://runner@db/runner --id blue
      outfitter runner --once --json
    """
    chosen, token = settings(), read_token(os.environ)
    url = server or local_server(chosen)
    if url is None:
        hint = "name the service with --server, or start one here: outfitter up"
        raise Invalid("no service was named, and no gateway runs here", hint=hint)
    choices = RunnerChoices(
        url,
        None if token is None else Secret(token),
        given["name"],
        None if database is None else _postgres(database),
        given["concurrency"],
        given["grace"],
        is_once=once,
        is_plain_allowed=given["plain_http"],
        has_orchestrator=not given["no_orchestrator"],
        uses_registry=server is None,
        is_beside=given["is_beside"],
    )
    with _progress(is_quiet=as_json) as show:
        ready = partial(_tell, url, is_quiet=as_json)
        figures = anyio.run(run_runner, chosen, os.environ, choices, ready, show)
    if as_json:
        print_json({"executed": figures.done, "states": dict(figures.states), "refused": list(figures.refused)})
    elif once:
        click.echo(f"Executed {figures.done} runs{_states(figures)}.")
    if figures.refused:
        click.echo(f"error: may not begin these runs, which stay pending: {', '.join(figures.refused)}", err=True)
        click.get_current_context().exit(1)


def _postgres(url: str) -> Secret:
    if not url.startswith(("postgresql://", "postgres://")):
        raise Invalid("--database names a PostgreSQL", hint="postgresql://USER@HOST/NAME; a file needs no name")
    return Secret(url)


def _tell(url: str, name: str, why_alone: str, *, is_quiet: bool) -> None:
    if why_alone:
        click.echo(f"note: its agents cannot start agents, the orchestrator is off: {why_alone}", err=True)
    click.echo(f"Runner '{name}' executes runs of {url}; Ctrl-C stops.", err=is_quiet)


def _states(figures: Figures) -> str:
    told = ", ".join(f"{count} {state}" for state, count in sorted(figures.states.items()))
    return f" ({told})" if told else ""


@contextmanager
def _progress(*, is_quiet: bool) -> Generator[Callable[[Figures], None]]:
    """One line that changes, on a terminal; nothing elsewhere."""
    if is_quiet or not sys.stdout.isatty():
        yield lambda _: None
        return
    from rich.live import Live
    from rich.text import Text

    with Live(Text(), refresh_per_second=8, transient=True) as live:

        def show(figures: Figures) -> None:
            resting = f" ({figures.resting} wait for others)" if figures.resting else ""
            words = f"{len(figures.running)} running{resting}, {figures.waiting} pending, {figures.done} ended"
            live.update(Text(f"{words}{_states(figures)}"))

        yield show
