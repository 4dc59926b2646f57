"""Commands about servers that are not there yet, or not tried yet: ``servers import`` and ``servers probe``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from outfitter.basics import suggest
from outfitter.cli.api_client import ApiClient
from outfitter.cli.console import json_option, print_json, visible
from outfitter.cli.registry_place import complete_entries, open_client, place_options
from outfitter.cli.registry_words import SERVERS
from outfitter.errors import AlreadyExists, InvalidDocument, NotFound, OutfitterError, Refused
from outfitter.formats import MAX_BYTES, Client
from outfitter.storage import read_bytes

Item = dict[str, Any]


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--from", "client", type=click.Choice(list(Client)), help="Whose file it is (default: guessed).")
@click.option("--only", metavar="ID", multiple=True, help="Only this server of the file.")
@click.option("--dry-run", is_flag=True, help="Show what would happen and store nothing.")
@click.option("--replace", is_flag=True, help="Replace entries that exist and differ.")
@place_options
@json_option
def import_servers(
    file: Path, client: str | None, only: tuple[str, ...], dry_run: bool, replace: bool, as_json: bool
) -> None:
    r"""Bring the MCP servers of another program's FILE into the registry.

    Every command is shown in full and none is started. Literal secrets become references; the variables to set are
    listed. Programs wait for 'outfitter servers approve'.

    \b
    Examples:
      outfitter servers import .mcp.json --dry-run
      outfitter servers import ~/.codex/config.toml --only github --server URL
    """
    asked: Item = {"text": _text_of(file), "filename": str(file)[-500:]} | (
        {} if client is None else {"client": client}
    )
    with open_client(may_create=not dry_run) as api:
        found = api.request("POST", "/import", body=asked).json
        items = _chosen(found["items"], only)
        _refuse_differing(items, is_allowed=replace or dry_run)
        done = [] if dry_run else [_bring(api, item) for item in items]
    if as_json:
        shown = ("id", "target", "standing", "notes", "document")
        servers = [{key: item[key] for key in shown} for item in items]
        print_json({"client": found["client"], "servers": servers, "done": done, "dry_run": dry_run})
        return
    for item in items:
        click.echo(visible(f"{item['id']} ({item['standing']}): {item['target']}"))
        for note in item["notes"]:
            click.echo(visible(f"  note: {note}"))
    verb = "Would bring in" if dry_run else "Brought in"
    count = sum(item["standing"] != "same" for item in items)
    click.echo(f"{verb} {count} of {len(items)} servers. Nothing was started.")


def _text_of(file: Path) -> str:
    try:
        return read_bytes(file, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidDocument("the file is not text in UTF-8", source=str(file), hint="save it as UTF-8") from None


def _chosen(items: Sequence[Item], only: Sequence[str]) -> list[Item]:
    known = {item["id"]: item for item in items}
    for name in only:
        if name not in known:
            raise NotFound(f"there is no server '{name}' in the file", hint=suggest(name, known))
    return [item for item in items if not only or item["id"] in only]


def _refuse_differing(items: Sequence[Item], *, is_allowed: bool) -> None:
    differing = [item["id"] for item in items if item["standing"] == "differs"]
    if differing and not is_allowed:
        hint = "give --replace to take the new one, or --only for the others"
        refused: list[OutfitterError] = [
            AlreadyExists(f"server '{name}' is in the registry with another definition", hint=hint)
            for name in differing
        ]
        raise Refused("some servers exist and differ", refused)


def _bring(api: ApiClient, item: Item) -> dict[str, str | int]:
    if item["standing"] == "new":
        answer = api.request("POST", f"/{SERVERS.kind}", body=item["document"])
    elif item["standing"] == "differs":
        answer = api.request("PUT", SERVERS.path(item["id"]), body=item["document"], etag=f'"{item["version"]}"')
    else:
        return {"id": item["id"], "version": item["version"]}
    return {"id": item["id"], "version": int(answer.etag.strip('"'))}


@click.command("probe")
@click.argument("name", shell_complete=complete_entries(SERVERS.kind))
@place_options
@json_option
def probe_server(name: str, as_json: bool) -> None:
    r"""Connect a server of the registry once and say how it answers, with its tools; exit code 1 if it does not.

    With --server it is the service that connects, with its variables and secrets. No program is started that is not
    approved.

    \b
    Examples:
      outfitter servers probe github
      outfitter servers probe github --json --server URL
    """
    with open_client() as api:
        found = api.request("POST", SERVERS.path(name, "probe")).json
    if as_json:
        print_json(found)
    elif found["error"]:
        click.echo(visible(f"{name}: {found['state']}: {found['error']}"))
    else:
        click.echo(visible(f"{name}: {found['state']}, {found['version']}, {found['milliseconds']} ms"))
        for tool in found["tools"]:
            click.echo(visible(f"  {tool['name']}"))
    if found["error"]:
        click.get_current_context().exit(1)
