"""What was approved of the servers' tools, and what waits: looked at, compared, approved and rejected.

It works on this machine's file of pins, which a gateway that runs reads again within a second; with ``--server`` it
asks a service.
"""

from __future__ import annotations

import getpass
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import click

from outfitter.app import find_home, pins_here, pins_of
from outfitter.cli.console import json_option, print_json, print_table, settings, visible
from outfitter.cli.registry_place import open_client, place_options, server_url
from outfitter.errors import NotFound
from outfitter.policy import reveal_hidden

_MARKS = {"same": " ", "changed": "~", "added": "+", "removed": "-"}
_MOST_WIDTH = 60
_MOST = 500
Row = dict[str, Any]
_instructions = click.option("--instructions", is_flag=True, help="What the server says of itself, instead of a tool.")


class Place(Protocol):
    """Where pins are kept."""

    def rows(self, server: str | None = None, state: str | None = None) -> list[Row]:
        """Those of a server, or all; what waits comes first."""
        ...

    def one(self, id_: str) -> Row:
        """One of them, beside what was approved before."""
        ...

    def approve(self, id_: str, by: str) -> Row:
        """Approve it."""
        ...

    def reject(self, id_: str, by: str) -> Row:
        """Reject it."""
        ...


class _There:
    """A service; who decides is who its token says."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - loaded when it is used
        self._client = client

    def rows(self, server: str | None = None, state: str | None = None) -> list[Row]:
        asked = {name: value for name, value in (("server", server), ("state", state)) if value}
        return self._client.request("GET", "/pins", query={**asked, "limit": str(_MOST)}).json["items"]

    def one(self, id_: str) -> Row:
        return self._client.request("GET", _path(id_)).json

    def approve(self, id_: str, by: str) -> Row:
        del by
        return self._client.request("POST", f"{_path(id_)}/approve").json

    def reject(self, id_: str, by: str) -> Row:
        del by
        return self._client.request("POST", f"{_path(id_)}/reject").json


def _path(id_: str) -> str:
    from outfitter.cli.api_client import path_of

    return path_of("pins", id_)


@click.group("pins")
def pins_command() -> None:
    r"""Pinned definitions of tools: a tool that changes is hidden until somebody approves it.

    \b
    Examples:
      outfitter pins list
      outfitter pins diff github create_issue
      outfitter pins approve github create_issue
    """


@pins_command.command("list")
@click.argument("name", metavar="[SERVER]", required=False)
@click.option("--state", type=click.Choice(["pending", "pinned", "rejected"]), help="Only what is in this state.")
@place_options
@json_option
def list_command(name: str | None, state: str | None, as_json: bool) -> None:
    r"""List what waits, what is approved and what was rejected; what waits comes first.

    \b
    Examples:
      outfitter pins list
      outfitter pins list --state pending
      outfitter pins list github --json
    """
    with _place() as desk:
        rows = desk.rows(name, state)
    if as_json:
        print_json({"items": rows})
        return
    columns = ("SERVER", "TOOL", "STATE", "WHY", "SINCE", "BY", "ID")
    print_table(columns, [_cells(row) for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    from outfitter.storage import shown_name

    why = f"{row['why']}{' for ' + row['agent'] if row['agent'] else ''}{' (hidden text)' if row['hidden'] else ''}"
    return row["server"], shown_name(row), row["state"], why, row["since"][:19], row["by"], row["id"]


@pins_command.command("show")
@click.argument("name", metavar="SERVER")
@click.argument("tool", required=False)
@_instructions
@place_options
@json_option
def show_command(name: str, tool: str | None, instructions: bool, as_json: bool) -> None:
    r"""Show every kept definition of a TOOL of SERVER; hidden characters are made visible.

    \b
    Examples:
      outfitter pins show github create_issue
      outfitter pins show github --instructions
    """
    with _place() as desk:
        shown = [desk.one(row["id"]) for row in _meant(desk, name, tool, instructions)]
    if as_json:
        print_json({"items": shown})
        return
    for one in shown:
        _print_head(one)
        for row in one["rows"]:
            if row["after"] is not None:
                click.echo(visible(f"  {row['part']:13} {row['after']}"))


@pins_command.command("diff")
@click.argument("name", metavar="SERVER")
@click.argument("tool", required=False)
@_instructions
@click.option("--id", "id_", metavar="ID", help="The definition of this id.")
@place_options
@json_option
def diff_command(name: str, tool: str | None, instructions: bool, id_: str | None, as_json: bool) -> None:
    r"""Show what waits beside what was approved; all that waits of SERVER, if no TOOL is named.

    \b
    Examples:
      outfitter pins diff github
      outfitter pins diff github create_issue --json
    """
    with _place() as desk:
        if id_ is not None:
            waits = [desk.one(id_)]
        else:
            rows = _meant(desk, name, tool, instructions) if tool or instructions else desk.rows(name, "pending")
            waits = [desk.one(row["id"]) for row in rows if row["state"] != "pinned"]
    if as_json:
        print_json({"items": waits})
        return
    for one in waits:
        _print_head(one)
        _print_rows(one["rows"])
    if not waits:
        click.echo(visible(f"Nothing of '{name}' waits."))


@pins_command.command("approve")
@click.argument("name", metavar="SERVER")
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@_instructions
@click.option("--id", "id_", metavar="ID", help="Only the definition of this id; what came after it waits on.")
@place_options
@json_option
def approve_command(name: str, tools: tuple[str, ...], instructions: bool, id_: str | None, as_json: bool) -> None:
    r"""Approve what waits of SERVER: these tools, or everything. A gateway that runs shows them within a second.

    \b
    Examples:
      outfitter pins approve github create_issue
      outfitter pins approve github --id 3f2a8c1b9d0e4f5a6b7c
      outfitter pins approve github
    """
    _decide("approve", name, _named(tools, instructions), id_, as_json=as_json)


@pins_command.command("reject")
@click.argument("name", metavar="SERVER")
@click.argument("tools", nargs=-1, metavar="[TOOL]...")
@_instructions
@click.option("--id", "id_", metavar="ID", help="Only the definition of this id.")
@place_options
@json_option
def reject_command(name: str, tools: tuple[str, ...], instructions: bool, id_: str | None, as_json: bool) -> None:
    r"""Reject what waits of SERVER, or take back the approval of a tool that is named: it stays hidden.

    \b
    Examples:
      outfitter pins reject github create_issue
    """
    _decide("reject", name, _named(tools, instructions), id_, as_json=as_json)


def _decide(what: str, server: str, names: tuple[str, ...], id_: str | None, *, as_json: bool) -> None:
    with _place() as desk:
        by, ids = getpass.getuser(), [id_] if id_ else _ids(desk, what, server, names)
        done = [desk.approve(one, by) if what == "approve" else desk.reject(one, by) for one in ids]
    if as_json:
        print_json({"approved" if what == "approve" else "rejected": done})
        return
    from outfitter.storage import shown_name

    for row in done:
        click.echo(visible(f"{row['server']}/{shown_name(row)}: {row['state']}"))
    if not done:
        click.echo(visible(f"Nothing of '{server}' waits."))


def _ids(desk: Place, what: str, server: str, names: tuple[str, ...]) -> list[str]:
    rows: list[Row] = desk.rows(server)
    waiting = [row for row in rows if row["state"] == "pending" and (what == "approve" or not row["agent"])]
    if not names:
        return [row["id"] for row in waiting]
    found: list[str] = []
    for name in names:
        mine = [row for row in waiting if row["name"] == name]
        others = {"approve": "rejected", "reject": "pinned"}[what]
        mine = mine or [row for row in rows if (row["name"], row["state"]) == (name, others)]
        if not mine:
            raise NotFound(f"nothing called '{name or '(instructions)'}' of server '{server}' waits",
                           hint=f"outfitter pins list {server}")  # fmt: skip
        found += [row["id"] for row in mine]
    return found


def _named(tools: Sequence[str], instructions: bool) -> tuple[str, ...]:
    return (*tools, "") if instructions else tuple(tools)


def _meant(desk: Place, server: str, tool: str | None, instructions: bool) -> list[Row]:
    kind = "instructions" if instructions else "tool"
    rows: list[Row] = [row for row in desk.rows(server) if row["kind"] == kind and tool in {None, row["name"]}]
    if not rows:
        hint = f"outfitter pins list {server}"
        raise NotFound(f"nothing is kept of '{tool or kind}' of server '{server}'", hint=hint)
    return rows


def _print_head(one: Row) -> None:
    from outfitter.storage import shown_name

    click.echo(visible(f"{one['server']}/{shown_name(one)}: {one['state']}, {one['reason']} (id {one['id']})"))
    for hidden in one["hidden"]:
        click.echo(visible(f"  hides {hidden}"))


def _print_rows(rows: Sequence[Row]) -> None:
    wide = max((len(row["before"] or "") for row in rows), default=0)
    wide = min(max(wide, 10), _MOST_WIDTH)
    for row in rows:
        before, after = reveal_hidden(row["before"] or ""), reveal_hidden(row["after"] or "")
        click.echo(visible(f"{_MARKS[row['mark']]} {row['part']:13} {before:{wide}} | {after}").rstrip())


@contextmanager
def _place() -> Generator[Place]:
    if server_url() is not None:
        with open_client() as client:
            yield _There(client)
        return
    from outfitter.storage import PinDesk

    chosen, named = settings(), click.get_current_context().find_root().obj
    home = find_home(Path())
    if named is None and not chosen.catalog.exists() and home.file.is_file():
        chosen = home.settings(chosen)
    yield PinDesk(pins_here(chosen) if named is None else pins_of(chosen))
