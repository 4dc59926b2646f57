"""Commands that bring definitions in and out: import, export, migrate. Nothing is ever started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from outfitter.app import Merge, entries_of, merge_catalog
from outfitter.catalog import Catalog, JsonValue
from outfitter.cli.console import complete_names, folder, json_option, load, print_json, visible
from outfitter.errors import InvalidDocument
from outfitter.formats import (
    MAX_BYTES,
    Client,
    Syntax,
    guess_client,
    migrate,
    read_client,
    read_document,
    read_squad,
    render_text,
    write_client,
    write_squad,
)
from outfitter.resolution import resolve
from outfitter.storage import read_bytes, write_files

_SQUAD = "squad"
_FORMATS = [*(client.value for client in Client), _SQUAD]


@dataclass(frozen=True, slots=True)
class _Incoming:
    """What a foreign file holds: definitions, how each would be reached, what was changed on the way."""

    catalog: Catalog
    targets: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--from", "source", type=click.Choice(_FORMATS), help="The file's format (default: guessed).")
@click.option("--dry-run", is_flag=True, help="Show what would happen and write nothing.")
@click.option("--replace", is_flag=True, help="Replace definitions that exist and differ.")
@json_option
def import_command(file: Path, source: str | None, dry_run: bool, replace: bool, as_json: bool) -> None:
    r"""Bring the MCP servers of another program's FILE into the catalog.

    Every command is shown in full and none is started. Literal secrets become references; the variables to set are
    listed. FILE itself is not changed.

    \b
    Examples:
      outfitter import .mcp.json --dry-run
      outfitter import ~/.codex/config.toml --from codex
      outfitter import .squad/mcp-config.json
    """
    incoming = _read_incoming(file, source)
    place = folder()
    before = place.load() if place.exists() else Catalog()
    merge = merge_catalog(before, incoming.catalog, may_replace=replace)
    written = () if dry_run else place.save(merge.catalog, before)
    if as_json:
        print_json(_import_json(incoming, merge, written, is_dry=dry_run))
        return
    for name, target in incoming.targets:
        click.echo(f"{name}: {visible(target)}")
    for note in incoming.notes:
        click.echo(f"note: {visible(note)}")
    counts = f"{len(merge.added)} new, {len(merge.replaced)} replaced, {len(merge.unchanged)} unchanged"
    verb = "Would write" if dry_run else "Wrote"
    click.echo(f"{verb} to {place.path}/: {counts}. Nothing was started.")


def _read_incoming(file: Path, source: str | None) -> _Incoming:
    data = read_bytes(file, MAX_BYTES)
    if source == _SQUAD or (source is None and file.parent.name == ".squad"):
        catalog = read_document(data, str(file), Syntax.JSONC, lambda value: read_squad(value, str(file)))
        targets = [
            (e.id, e.server.url or " ".join((e.server.command or "", *e.server.args))) for e in catalog.servers.values()
        ]
        return _Incoming(catalog, tuple(targets), ())
    client = Client(source) if source else guess_client(str(file), data)
    if client is None:
        hint = f"name it with --from: {', '.join(_FORMATS)}"
        raise InvalidDocument("cannot tell which program this file belongs to", source=str(file), hint=hint)
    imported = read_client(client, data, str(file))
    targets = tuple((server.entry.id, server.command_line) for server in imported)
    notes = tuple(f"{server.entry.id}: {note}" for server in imported for note in server.notes)
    return _Incoming(Catalog.of([server.entry for server in imported]), targets, notes)


def _import_json(incoming: _Incoming, merge: Merge, written: Sequence[Path], *, is_dry: bool) -> dict[str, JsonValue]:
    return {
        "servers": [{"id": name, "target": target} for name, target in incoming.targets],
        "added": list(merge.added),
        "replaced": list(merge.replaced),
        "unchanged": list(merge.unchanged),
        "notes": list(incoming.notes),
        "written": [str(path) for path in written],
        "dry_run": is_dry,
    }


class _Target(click.Choice[str]):
    """A format, or where the registry is to be written as a catalog folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401 - click's
        """A folder has a slash in its name or is there already, so that a misspelt format makes none."""
        if value not in _FORMATS and (value == "-" or "/" in value or Path(value).is_dir()):
            return str(value)
        return super().convert(value, param, ctx)


@click.command("export")
@click.argument("target", metavar="FORMAT|DIR|-", type=_Target(_FORMATS))
@click.option("--agent", shell_complete=complete_names("agents"), help="Only this agent's servers, as it gets them.")
@click.option(
    "--server", "servers", multiple=True, shell_complete=complete_names("servers"), help="Only these servers."
)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Merge into this file.")
@json_option
def export_command(
    target: str, agent: str | None, servers: tuple[str, ...], output: Path | None, as_json: bool
) -> None:
    r"""Write servers in another program's FORMAT, to standard output or merged into a file.

    With --agent, aliases, headers and tool filters are what that agent gets. Secrets stay references in the other
    program's own syntax.

    A folder (DIR) instead of a format gets the whole registry as a catalog, - prints it in one piece. What is no
    reference in it is masked.

    \b
    Examples:
      outfitter export claude-code --agent tester
      outfitter export codex --agent lead -o config.toml
      outfitter export squad
      outfitter export ./backup
    """
    if target not in _FORMATS:
        from outfitter.cli.catalog_sync import export_catalog

        export_catalog(target, as_json=as_json)
        return
    text, notes = _render_export(target, agent, servers, output)
    if output is not None:
        write_files({output: text})
    if as_json:
        print_json({"format": target, "output": str(output or ""), "text": text, "notes": list(notes)})
        return
    for note in notes:
        click.echo(f"note: {visible(note)}", err=True)
    click.echo(f"Wrote {output}." if output else text, nl=output is not None)


def _render_export(
    target: str, agent: str | None, servers: tuple[str, ...], output: Path | None
) -> tuple[str, tuple[str, ...]]:
    catalog = load()
    if target == _SQUAD:
        return render_text(write_squad(catalog), Syntax.JSON), ()
    chosen = entries_of(resolve(agent, catalog)) if agent else tuple(catalog.servers.values())
    if servers:
        for name in servers if agent is None else ():
            catalog.server(name)
        chosen = tuple(entry for entry in chosen if entry.id in servers)
    existing = read_bytes(output, MAX_BYTES).decode() if output is not None and output.exists() else None
    written = write_client(Client(target), chosen, existing)
    return written.text, written.notes


@click.command("migrate")
@click.option("--dry-run", is_flag=True, help="Show what would happen and write nothing.")
@json_option
def migrate_command(dry_run: bool, as_json: bool) -> None:
    r"""Turn inline server definitions into registry entries with refs; what agents get stays the same.

    \b
    Examples:
      outfitter migrate --dry-run
      outfitter migrate
    """
    place = folder()
    before = place.load()
    migration = migrate(before)
    written = () if dry_run else place.save(migration.catalog, before)
    if as_json:
        moves = [{"user": m.user, "alias": m.alias, "entry": m.entry_id, "new": m.is_new} for m in migration.moves]
        print_json({"moves": moves, "written": [str(path) for path in written], "dry_run": dry_run})
        return
    for move in migration.moves:
        made = "new entry" if move.is_new else "entry"
        similar = f" ('{move.similar}' reaches the same server with headers of its own)" if move.similar else ""
        click.echo(f"{move.user}: alias '{move.alias}' becomes a ref to {made} '{move.entry_id}'{similar}")
    verb = "Would change" if dry_run else "Changed"
    click.echo(f"{verb} {len(migration.moves)} inline servers in {place.path}/.")
