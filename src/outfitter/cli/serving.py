"""Commands of the gateway: run it, and let agents in."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from outfitter.app import GatewayOptions, run_gateway, run_worker, run_workers, token_book
from outfitter.cli.console import complete_names, json_option, load, print_json, print_table, settings
from outfitter.errors import UnknownAgent

if TYPE_CHECKING:
    from outfitter.gateway import Address


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
@click.option("--worker", "is_worker", is_flag=True, hidden=True)
def up_command(
    most_memory: int | None,
    keep_days: float | None,
    workers: int,
    *,
    is_worker: bool,
    **given: Any,  # noqa: ANN401 - the options above, by name
) -> None:
    r"""Run the gateway: one MCP endpoint for every agent of the catalog.

    \b
    Examples:
      outfitter up
      outfitter up --port 9000 --open
      outfitter up --calls-per-second 50 --keep-arguments tester --keep-days 90
      outfitter up --workers 4
      outfitter up --host 0.0.0.0 --allow-host tools.example.com --tls-cert cert.pem --tls-key key.pem
    """
    loop = {"use_uvloop": True}
    if is_worker:
        anyio.run(run_worker, backend_options=loop)
        return
    memory = None if most_memory is None else most_memory * 1024 * 1024
    options = GatewayOptions(most_memory=memory, **given)
    chosen = settings() if keep_days is None else replace(settings(), keep_days=keep_days)
    agents = sorted(load().agents)

    def tell(address: Address) -> None:
        print_table(["AGENT", "ENDPOINT"], [[agent, address.url(agent)] for agent in agents])
        if not options.is_open and not token_book(settings()).records():
            click.echo("No token has been issued yet: outfitter token issue AGENT")
        click.echo(f"Listening on {address.host}:{address.port}; Ctrl-C stops.")

    run = run_gateway if workers == 1 else partial(run_workers, count=workers)
    anyio.run(partial(run, chosen, os.environ, options, on_ready=tell), backend_options=loop)


@click.group("token")
def token_command() -> None:
    """Issue, list and revoke the tokens that let agents in."""


@token_command.command("issue")
@click.argument("agent", required=False, shell_complete=complete_names("agents"))
@click.option("--admin", is_flag=True, help="For no agent: it opens the private pages of the gateway.")
@click.option("--server", help="Let it in at this server's endpoint only.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="End by itself after so many days.")
@click.option("--label", default="", help="A word to know it by.")
@json_option
def issue_command(
    agent: str | None, admin: bool, server: str | None, days: float | None, label: str, as_json: bool
) -> None:
    r"""Issue a token for an agent; it is shown this once.

    \b
    Examples:
      outfitter token issue tester
      outfitter token issue tester --server github --days 30
      outfitter token issue --admin
    """
    from outfitter.gateway import ADMIN

    if admin == (agent is not None):
        raise click.UsageError("name an agent, or say --admin")
    if agent is not None and agent not in load().agents:
        raise UnknownAgent(f"no agent '{agent}'")
    agent = agent or ADMIN
    ending = None if days is None else datetime.now(UTC) + timedelta(days=days)
    token, record = token_book(settings()).issue(agent, server=server, label=label, expires_at=ending)
    if as_json:
        print_json({"token": token, "id": record.id, "agent": agent, "expires_at": record.expires_at})
    else:
        click.echo(token)


@token_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the tokens; what they are is not kept."""
    now = datetime.now(UTC)
    rows = [
        {
            "id": record.id,
            "agent": record.agent,
            "server": record.server,
            "label": record.label,
            "expires_at": record.expires_at,
            "valid": record.is_valid(now),
        }
        for record in token_book(settings()).records()
    ]
    if as_json:
        print_json(rows)
        return
    columns = ("id", "agent", "server", "label", "expires_at", "valid")
    print_table([name.upper() for name in columns], [[str(row[name] or "") for name in columns] for row in rows])


@token_command.command("revoke")
@click.argument("ident", metavar="ID")
def revoke_command(ident: str) -> None:
    """End a token now."""
    record = token_book(settings()).revoke(ident)
    click.echo(f"Token {record.id} of agent '{record.agent}' is revoked.")
