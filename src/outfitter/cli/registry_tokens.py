"""Commands of API tokens: issue one (it is shown this once), list them, take one back."""

from __future__ import annotations

import click

from outfitter.cli.api_client import path_of
from outfitter.cli.console import json_option, print_json, print_table
from outfitter.cli.registry_place import complete_entries, open_client, place_options

_DAY = 86400.0
_COLUMNS = ("id", "role", "label", "agent", "server", "created_by", "expires_at", "last_used_at", "revoked_at")


@click.group("tokens")
def tokens_command() -> None:
    """Issue, list and revoke the tokens of the registry's API; for admins."""


@tokens_command.command("issue")
@click.argument("role", type=click.Choice(["admin", "editor", "viewer", "runner", "agent"]))
@click.option("--agent", help="The agent it is bound to.", shell_complete=complete_entries("agents"))
@click.option("--server-alias", metavar="ALIAS", help="The one server of the agent it is bound to.")
@click.option("--run", "run_id", metavar="RUN", help="The run it is bound to.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), help="End by itself after so many days.")
@click.option("--label", default="", help="A word to know it by.")
@place_options
@json_option
def issue_token(
    role: str, agent: str | None, server_alias: str | None, run_id: str | None, as_json: bool, **given: object
) -> None:
    r"""Issue a token of a ROLE; it is shown this once.

    \b
    Examples:
      outfitter tokens issue editor --label alice --days 90
      outfitter tokens issue agent --agent tester --server-alias github
    """
    days = given["days"]
    asked = {"role": role, "agent": agent, "server": server_alias, "run_id": run_id, "label": given["label"]}
    body = {name: value for name, value in asked.items() if value is not None}
    if isinstance(days, float):
        body["expires_in"] = days * _DAY
    with open_client() as client:
        made = client.request("POST", "/tokens", body=body).json
    if as_json:
        print_json(made)
    else:
        click.echo(made["token"])


@tokens_command.command("list")
@place_options
@json_option
def list_tokens(as_json: bool) -> None:
    r"""List the tokens; what they are is not kept.

    \b
    Examples:
      outfitter tokens list --server URL
    """
    with open_client() as client:
        found = client.request("GET", "/tokens").json["items"]
    if as_json:
        print_json(found)
        return
    rows = [[str(token[name] or "") for name in _COLUMNS] for token in found]
    print_table([name.removesuffix("_at").replace("_", " ").upper() for name in _COLUMNS], rows)


@tokens_command.command("revoke")
@click.argument("token_id", metavar="ID")
@place_options
@json_option
def revoke_token(token_id: str, as_json: bool) -> None:
    r"""End a token now, everywhere.

    \b
    Examples:
      outfitter tokens revoke 3f9a1c
    """
    with open_client() as client:
        client.request("DELETE", path_of("tokens", token_id))
    if as_json:
        print_json({"id": token_id, "revoked": True})
    else:
        click.echo(f"Token {token_id} is revoked.")
