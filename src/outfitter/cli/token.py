"""Commands that let agents in at the gateway: tokens in the registry, or in a file where there is none.

``tokens`` has more: it speaks to the API, and knows every role.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import anyio
import click

from outfitter.app import has_registry, open_passes, token_book
from outfitter.cli.console import complete_names, json_option, load, print_json, print_table, settings
from outfitter.errors import NotFound, UnknownAgent

if TYPE_CHECKING:
    from outfitter.app import Passbook
    from outfitter.gateway import TokenRecord


@dataclass(frozen=True, slots=True)
class _Wish:
    """The token that is asked for."""

    agent: str
    server: str | None
    label: str
    expires_at: datetime | None


@click.group("token")
@click.option("--files", "uses_files", is_flag=True, help="Those of a gateway that runs with --files.")
@click.pass_context
def token_command(ctx: click.Context, uses_files: bool) -> None:
    """Issue, list and revoke the tokens that let agents in."""
    ctx.meta["outfitter.cli.files"] = uses_files or not has_registry(settings())


def _uses_files() -> bool:
    return bool(click.get_current_context().meta["outfitter.cli.files"])


@token_command.command("issue")
@click.argument("agent", required=False, shell_complete=complete_names("agents"))
@click.option("--admin", is_flag=True, help="For no agent: for the API, and the private pages of the gateway.")
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
    ending = None if days is None else datetime.now(UTC) + timedelta(days=days)
    wish = _Wish(agent or ADMIN, server, label, ending)
    token, record = _issue_in_file(wish) if _uses_files() else anyio.run(_issue, wish)
    if as_json:
        print_json({"token": token, "id": record.id, "agent": record.agent, "expires_at": record.expires_at})
    else:
        click.echo(token)


def _issue_in_file(wish: _Wish) -> tuple[str, TokenRecord]:
    from outfitter.gateway import ADMIN

    if wish.agent != ADMIN and wish.agent not in load().agents:
        raise UnknownAgent(f"no agent '{wish.agent}'")
    book = token_book(settings())
    return book.issue(wish.agent, server=wish.server, label=wish.label, expires_at=wish.expires_at)


async def _issue(wish: _Wish) -> tuple[str, TokenRecord]:
    async with open_passes(settings()) as passes:
        return await passes.issue(wish.agent, server=wish.server, label=wish.label, expires_at=wish.expires_at)


@token_command.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the tokens; what they are is not kept."""
    now = datetime.now(UTC)
    records = token_book(settings()).records() if _uses_files() else anyio.run(_records)
    rows = [
        {
            "id": record.id,
            "agent": record.agent,
            "server": record.server,
            "label": record.label,
            "expires_at": record.expires_at,
            "valid": record.is_valid(now),
        }
        for record in records
    ]
    if as_json:
        print_json(rows)
        return
    columns = ("id", "agent", "server", "label", "expires_at", "valid")
    print_table([name.upper() for name in columns], [[str(row[name] or "") for name in columns] for row in rows])


async def _records() -> tuple[TokenRecord, ...]:
    async with open_passes(settings()) as passes:
        return passes.records()


@token_command.command("revoke")
@click.argument("ident", metavar="ID")
def revoke_command(ident: str) -> None:
    """End a token now."""
    record = token_book(settings()).revoke(ident) if _uses_files() else anyio.run(partial(_revoke, ident))
    click.echo(f"Token {record.id} of agent '{record.agent}' is revoked.")


async def _revoke(ident: str) -> TokenRecord:
    async with open_passes(settings()) as passes:
        return await _revoked(passes, ident)


async def _revoked(passes: Passbook, ident: str) -> TokenRecord:
    """The token at the gateway, and in the file that it may have come from: neither brings it back."""
    with suppress(NotFound):
        token_book(settings()).revoke(ident)
    return await passes.revoke(ident)
