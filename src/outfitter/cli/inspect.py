"""Commands that look at the catalog: validate it, list and show what is in it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping

import click

from outfitter.basics import Secret, looks_sensitive
from outfitter.catalog import Agent, Capability, JsonValue, ServerEntry
from outfitter.cli.console import complete_names, folder, json_option, load, print_json, print_table
from outfitter.formats import Syntax, render_text, write_agent, write_capability, write_entry
from outfitter.resolution import blueprint, check_catalog, resolve


@click.command("validate")
@json_option
def validate_command(as_json: bool) -> None:
    r"""Check every file, ref, header and filter of the catalog; exit code 1 when something is wrong.

    \b
    Examples:
      outfitter validate
      outfitter --catalog team validate --json
    """
    place = folder()
    catalog = place.load()
    check = check_catalog(catalog)
    if as_json:
        from outfitter.cli.main import error_json

        problems = [error_json(problem) for problem in check.problems]
        notices = [{"code": n.code, "message": n.message, "where": n.where} for n in check.notices]
        print_json({"valid": not problems, "problems": problems, "notices": notices})
    else:
        for problem in check.problems:
            click.echo(f"problem [{problem.code}] {problem}")
        for notice in check.notices:
            click.echo(f"note [{notice.code}] {notice.message}")
        counts = (
            f"{len(catalog.servers)} servers, {len(catalog.capabilities)} capabilities, {len(catalog.agents)} agents"
        )
        click.echo(f"{place.path}/: {counts}; {len(check.problems)} problems, {len(check.notices)} notes")
    if check.problems:
        sys.exit(1)


@click.group("servers")
def servers_command() -> None:
    """List or show the registry's MCP servers."""


@servers_command.command("list")
@json_option
def list_servers(as_json: bool) -> None:
    """List every server with its users."""
    catalog = load()
    rows = [_server_row(entry, catalog.users_of(entry.id)) for entry in catalog.servers.values()]
    if as_json:
        print_json([dict(zip(("id", "name", "type", "target", "headers", "users"), row, strict=True)) for row in rows])
    else:
        shown = [(*row[:4], str(len(row[4])), str(len(row[5]))) for row in rows]
        print_table(("ID", "NAME", "TYPE", "URL OR COMMAND", "HEADERS", "USERS"), shown)


def _server_row(
    entry: ServerEntry, users: tuple[str, ...]
) -> tuple[str, str, str, str, tuple[str, ...], tuple[str, ...]]:
    server = entry.server
    kind = str(_definition_type(entry))
    target = server.url or " ".join((server.command or "", *server.args))
    return entry.id, entry.title, kind, target, tuple({**entry.header_schema, **entry.default_headers}), users


def _definition_type(entry: ServerEntry) -> JsonValue:
    return write_entry(entry)["type"]


@servers_command.command("show")
@click.argument("id_", metavar="ID", shell_complete=complete_names("servers"))
@json_option
def show_server(id_: str, as_json: bool) -> None:
    """Show one server as its file defines it, and who uses it."""
    catalog = load()
    entry = catalog.server(id_)
    _show({**_masked(entry), "used_by": list(catalog.users_of(id_))}, entry.source, as_json=as_json)


def _masked(entry: ServerEntry) -> dict[str, JsonValue]:
    """The entry with sensitive literals masked."""
    written = write_entry(entry)
    declared = {name for name, schema in entry.header_schema.items() if schema.sensitive}
    for part in ("default_headers", "env"):
        _mask(written.get(part), declared)
    return written


def _mask(values: JsonValue, declared: Collection[str] = ()) -> None:
    """Mask literals in place: those declared sensitive, and those whose name says so."""
    if not isinstance(values, dict):
        return
    for name, value in values.items():
        if isinstance(value, str) and "${" not in value and (name in declared or looks_sensitive(name)):
            values[name] = str(Secret(value))


@click.group("capabilities")
def capabilities_command() -> None:
    """List or show capabilities."""


@capabilities_command.command("list")
@json_option
def list_capabilities(as_json: bool) -> None:
    """List every capability with its servers."""
    _list(load().capabilities, as_json=as_json)


@capabilities_command.command("show")
@click.argument("name", shell_complete=complete_names("capabilities"))
@json_option
def show_capability(name: str, as_json: bool) -> None:
    """Show one capability as its file defines it."""
    capability = load().capability(name)
    _show(_mask_uses(write_capability(capability)), capability.source, as_json=as_json)


@click.group("agents")
def agents_command() -> None:
    """List or show agents."""


@agents_command.command("list")
@json_option
def list_agents(as_json: bool) -> None:
    """List every agent with its role and servers."""
    _list(load().agents, as_json=as_json)


@agents_command.command("show")
@click.argument("name", shell_complete=complete_names("agents"))
@click.option("--resolved", is_flag=True, help="Show the resolved blueprint instead of the file.")
@json_option
def show_agent(name: str, resolved: bool, as_json: bool) -> None:
    """Show one agent as its file defines it, or its resolved blueprint with placeholders unfilled."""
    catalog = load()
    agent = catalog.agent(name)
    shown = blueprint(resolve(agent, catalog)) if resolved else _mask_uses(write_agent(agent))
    _show(shown, agent.source, as_json=as_json)


def _mask_uses(written: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The file's content with literals of sensitive names masked."""
    uses = written.get("mcpServers")
    for use in uses.values() if isinstance(uses, dict) else ():
        if isinstance(use, dict):
            _mask(use.get("headers"))
            _mask(use.get("env"))
    return written


def _list(items: Mapping[str, Agent] | Mapping[str, Capability], *, as_json: bool) -> None:
    rows = [(name, getattr(item, "role", ""), item.description, tuple(item.servers)) for name, item in items.items()]
    if as_json:
        print_json([{"name": n, "role": r, "description": d, "servers": list(s)} for n, r, d, s in rows])
    else:
        print_table(("NAME", "ROLE", "DESCRIPTION", "SERVERS"), [(n, r, d, ", ".join(s)) for n, r, d, s in rows])


def _show(value: Mapping[str, JsonValue], source: str, *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(f"# {source}")
        click.echo(render_text(value, Syntax.YAML), nl=False)
