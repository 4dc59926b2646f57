"""Add a known server with one command: its definition, who gets it, which variables it needs. No value is stored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from outfitter.app import find_home, home_at
from outfitter.catalog import Catalog, JsonValue
from outfitter.cli.console import folder, json_option, print_json, print_table, visible
from outfitter.errors import InvalidDocument
from outfitter.formats import MAX_BYTES, Syntax, parse_text, read_document, read_squad, render_text
from outfitter.storage import read_bytes, write_files

if TYPE_CHECKING:
    from outfitter.squad import Added, Pattern, Share

_SHOWN = 6
_COMMENTS = "the comments and trailing commas of the file are not kept"


@dataclass(frozen=True, slots=True)
class _Change:
    """Where a pattern went, and what that changed."""

    place: Path
    added: Added
    written: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def _complete(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from outfitter.squad import patterns

    return [CompletionItem(name, help=one.title) for name, one in patterns().items() if name.startswith(incomplete)]


@click.command("add")
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--to", multiple=True, metavar="AGENT", help="Only these agents get it (default: by their roles).")
@click.option("--list", "is_list", is_flag=True, help="List what can be added.")
@click.option("--dry-run", is_flag=True, help="Show what would happen and write nothing.")
@json_option
def add_command(name: str | None, to: tuple[str, ...], is_list: bool, dry_run: bool, as_json: bool) -> None:
    r"""Add the server NAME to the squad file, or to the catalog where there is none, and give it to the right agents.

    The squad file is .squad/mcp-config.json of this folder or of one above it in the repository. Nothing is started.
    The variables that are not set are named; no value is asked for or stored. What is there is never replaced.

    \b
    Examples:
      outfitter add --list
      outfitter add trello
      outfitter add postgres --dry-run
      outfitter add slack --to lead --to scribe

    Servers that are not listed here are found with 'outfitter registry search' and added with 'outfitter registry add'.
    """
    if is_list:
        _print_list(as_json=as_json)
        return
    if name is None:
        raise click.UsageError("name what to add, or give --list")
    from outfitter.squad import find_pattern

    add_pattern(find_pattern(name), to, is_dry=dry_run, as_json=as_json)


def add_pattern(
    pattern: Pattern, to: tuple[str, ...], *, is_dry: bool, as_json: bool, notes: tuple[str, ...] = ()
) -> None:
    """Put a pattern where this folder keeps its servers, and tell what that changed."""
    file = _squad_file()
    change = _add_to_catalog(pattern, to, is_dry) if file is None else _add_to_squad(file, pattern, to, is_dry)
    change = replace(change, notes=(*notes, *change.notes))
    if as_json:
        print_json(_change_json(pattern, change, is_dry=is_dry))
    else:
        _print_change(pattern, change, is_dry=is_dry)


def _squad_file() -> Path | None:
    """The squad file that is meant; None where a catalog is named, or this repository has none."""
    named = click.get_current_context().find_root().obj
    home = home_at(named) if isinstance(named, Path) else find_home(Path.cwd())
    if home is None or not home.file.is_file():
        return None
    here = Path.cwd()
    return home.file.relative_to(here) if home.file.is_relative_to(here) else home.file


def _add_to_squad(file: Path, pattern: Pattern, to: tuple[str, ...], is_dry: bool) -> _Change:
    from outfitter.squad import add_to_squad

    data = read_bytes(file, MAX_BYTES)
    read_document(data, str(file), Syntax.JSONC, lambda value: read_squad(value, str(file)))
    before = parse_text(data, source=str(file), syntax=Syntax.JSONC)
    document, added = add_to_squad(before, pattern, to, source=str(file))
    if added.is_nothing:
        return _Change(file, added)
    try:
        parse_text(data, source=str(file), syntax=Syntax.JSON)
        notes = ()
    except InvalidDocument:
        notes = (_COMMENTS,)
    if not is_dry:
        write_files({file: render_text(document, Syntax.JSON)})
    return _Change(file, added, () if is_dry else (file,), notes)


def _add_to_catalog(pattern: Pattern, to: tuple[str, ...], is_dry: bool) -> _Change:
    from outfitter.squad import add_to_catalog

    place = folder()
    before = place.load() if place.exists() else Catalog()
    after, added = add_to_catalog(before, pattern, to)
    return _Change(place.path, added, () if is_dry else place.save(after, before))


def _print_list(*, as_json: bool) -> None:
    from outfitter.squad import patterns

    known = patterns().values()
    if as_json:
        print_json([_pattern_json(pattern) for pattern in known])
        return
    rows = [(one.name, one.group, one.title, ", ".join(one.variables)) for one in known]
    print_table(("NAME", "PATTERN", "WHAT", "VARIABLES"), rows)


def _pattern_json(pattern: Pattern) -> dict[str, JsonValue]:
    return {
        "name": pattern.name,
        "group": pattern.group,
        "title": pattern.title,
        "servers": [_server_json(pattern, entry.id) for entry in pattern.servers],
        "shares": [{"roles": list(share.roles), **_share_json(share)} for share in pattern.shares],
        "variables": list(pattern.variables),
    }


def _server_json(pattern: Pattern, name: str) -> dict[str, JsonValue]:
    return {"id": name, "target": _target(pattern, name)}


def _target(pattern: Pattern, name: str) -> str:
    server = next(entry.server for entry in pattern.servers if entry.id == name)
    return server.url or " ".join((server.command or "", *server.args))


def _share_json(share: Share) -> dict[str, JsonValue]:
    include = share.tools.include
    return {"server": share.server, "tools": None if include is None else list(include)}


def _change_json(pattern: Pattern, change: _Change, *, is_dry: bool) -> dict[str, JsonValue]:
    return {
        "name": pattern.name,
        "place": str(change.place),
        "added": [_server_json(pattern, name) for name in change.added.servers],
        "routes": [{"agent": agent, **_share_json(share)} for agent, share in change.added.routes],
        "variables": [
            {"name": name, "set": bool(os.environ.get(name)), "how": how} for name, how in pattern.variables.items()
        ],
        "notes": [*change.added.notes, *change.notes],
        "written": [str(path) for path in change.written],
        "dry_run": is_dry,
    }


def _print_change(pattern: Pattern, change: _Change, *, is_dry: bool) -> None:
    for name in change.added.servers:
        click.echo(f"{name}: {visible(_target(pattern, name))}")
    for agent, share in change.added.routes:
        click.echo(f"  {agent} gets {share.server}: {_tools(share)}")
    for note in (*change.added.notes, *change.notes):
        click.echo(f"note: {visible(note)}")
    if change.added.is_nothing:
        click.echo(f"'{pattern.name}' is in {change.place} already; nothing was changed.")
    else:
        click.echo(f"{'Would change' if is_dry else 'Changed'} {change.place}. Nothing was started.")
    for line in _missing(pattern.variables, os.environ):
        click.echo(line)


def _tools(share: Share) -> str:
    include = share.tools.include
    if include is None:
        return "all tools"
    more = f" and {len(include) - _SHOWN} more" if len(include) > _SHOWN else ""
    return ", ".join(include[:_SHOWN]) + more


def _missing(variables: Mapping[str, str], environ: Mapping[str, str]) -> Iterator[str]:
    unset = {name: how for name, how in variables.items() if not environ.get(name)}
    if unset:
        yield "Set before it is used, in the environment of the gateway (nothing is stored here):"
    for name, how in unset.items():
        yield f"  export {name}=...   # {how}"
