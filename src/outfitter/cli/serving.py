"""The command that runs the gateway, with the registry beside it."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from outfitter.app import (
    FIRST_TOKEN,
    GatewayOptions,
    Started,
    can_have_registry,
    find_home,
    run_gateway,
    run_with_runner,
    run_worker,
    run_workers,
)
from outfitter.basics import Secret
from outfitter.cli.console import print_table, settings
from outfitter.errors import Invalid, StorageUnavailable


@click.command("up")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8700, show_default=True, help="The port to listen on.")
@click.option("--allow-host", "hosts", multiple=True, help="Another name under which clients call the gateway.")
@click.option("--allow-origin", "origins", multiple=True, help="A web origin that may call the gateway.")
@click.option("--open", "is_open", is_flag=True, help="Ask for no token; on loopback only.")
@click.option("--keep-arguments", multiple=True, metavar="AGENT", help="Keep this agent's arguments, secrets masked.")
@click.option("--keep-results", multiple=True, metavar="AGENT", help="Keep this agent's results, secrets masked.")
@click.option("--keep-days", type=click.FloatRange(min=0, min_open=True), help="Remove records after so many days.")
@click.option("--concurrent-calls", default=256, show_default=True, help="Calls at a time, for each agent.")
@click.option(
    "--calls-per-second", type=click.FloatRange(min=0, min_open=True), help="For each agent; no limit if left out."
)
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Speak HTTPS with it.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The certificate's key.")
@click.option("--most-memory", type=click.IntRange(min=1), metavar="MIB", help="Take no new calls above so many MiB.")
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes that answer.")
@click.option("--files", "uses_files", is_flag=True, help="Serve the catalog folder as it is: no registry, no API.")
@click.option("--squad", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR",
              help="Serve the squad file of this repository: no registry, no API.")  # fmt: skip
@click.option("--database", metavar="URL", help="A PostgreSQL for registry and records; better in OUTFITTER_DATABASE.")
@click.option("--jwt-issuer", metavar="URL", envvar="OUTFITTER_JWT_ISSUER", help="Take tokens of this provider.")
@click.option("--jwt-audience", metavar="NAME", envvar="OUTFITTER_JWT_AUDIENCE", help="Whom they are made for.")
@click.option("--jwt-keys", metavar="URL", envvar="OUTFITTER_JWT_KEYS", help="Where the provider's keys are.")
@click.option("--runner", "has_runner", is_flag=True, help="Execute runs too: a runner beside it, kept alive.")
@click.option("--worker", "is_worker", is_flag=True, hidden=True)
def up_command(
    most_memory: int | None,
    keep_days: float | None,
    database: str | None,
    workers: int,
    *,
    is_worker: bool,
    has_runner: bool,
    **given: Any,  # noqa: ANN401 - the options above, by name
) -> None:
    r"""Run the gateway: one MCP endpoint for every agent of the catalog.

    The catalog is kept in a registry with an API on the same port. The catalog folder seeds it, and what is changed in
    the folder later goes there too. With --files the folder itself is served, without a registry; with --squad the
    agents of .squad/mcp-config.json, each with the team's own server.

    \b
    Examples:
      outfitter up
      outfitter up --files
      outfitter up --squad .
      outfitter up --port 9000 --open
      outfitter up --calls-per-second 50 --keep-arguments tester --keep-days 90
      outfitter up --workers 4
      outfitter up --runner
      outfitter up --host 0.0.0.0 --allow-host tools.example.com --tls-cert cert.pem --tls-key key.pem
    """
    loop = {"use_uvloop": True}
    if is_worker:
        anyio.run(run_worker, backend_options=loop)
        return
    memory = None if most_memory is None else most_memory * 1024 * 1024
    chosen = settings() if keep_days is None else replace(settings(), keep_days=keep_days)
    if database is not None:
        chosen = replace(chosen, database=_postgres(database))
    options = _checked(GatewayOptions(most_memory=memory, **given), wants_registry=chosen.database is not None)
    gateway = run_gateway if workers == 1 else partial(run_workers, count=workers)
    run, tell = partial(gateway, chosen, os.environ, options), partial(_tell, options)
    if has_runner and options.has_no_registry:
        raise Invalid("runs are kept in the registry, so a runner needs one", hint="leave out --files and --squad")
    if has_runner:
        run = partial(run_with_runner, chosen, os.environ, run)
    anyio.run(partial(run, on_ready=tell), backend_options=loop)


def _postgres(url: str) -> Secret:
    if not url.startswith(("postgresql://", "postgres://")):
        raise Invalid("--database names a PostgreSQL", hint="postgresql://USER@HOST/NAME; a file needs no name")
    return Secret(url)


def _checked(options: GatewayOptions, *, wants_registry: bool) -> GatewayOptions:
    """The options as far as this installation can follow them."""
    if (options.jwt_issuer is None) != (options.jwt_audience is None):
        raise Invalid("tokens of an identity provider need --jwt-issuer and --jwt-audience")
    if options.squad is not None and (options.uses_files or wants_registry):
        hint = "leave out --files, --database and OUTFITTER_DATABASE"
        raise Invalid("a squad file is served by itself", hint=hint)
    if options.has_no_registry or can_have_registry():
        return options
    hint = "pip install 'outfitter[service]'"
    if wants_registry:
        told = "a registry in a database needs libraries that are not installed"
        raise StorageUnavailable(told, hint=f"{hint}, or --files for none")
    click.echo(f"Serving the catalog folder as it is; a registry with an API needs: {hint}", err=True)
    return replace(options, uses_files=True)


def _tell(options: GatewayOptions, started: Started) -> None:
    address = started.address
    print_table(["AGENT", "ENDPOINT"], [[agent, address.url(agent)] for agent in started.agents])
    if started.admin_token is not None:
        click.echo(f"{FIRST_TOKEN}\n  {started.admin_token}")
    if not options.is_open and not started.has_tokens:
        files = "" if options.squad is None else f"--catalog {find_home(options.squad).folder} "
        click.echo(f"No token has been issued yet: outfitter {files}token issue AGENT")
    click.echo(f"Listening on {address.host}:{address.port}; Ctrl-C stops.")
