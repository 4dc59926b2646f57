"""Commands that look at entries of the registry: list, show, history, users, and what an agent gets."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, cast

import click

from outfitter.cli.api_client import ApiClient
from outfitter.cli.console import json_option, print_json, print_table, visible
from outfitter.cli.registry_place import complete_entries, is_about_folder, open_client, place_options
from outfitter.cli.registry_words import AGENTS, SERVERS, Words
from outfitter.formats import Syntax, render_text

Json = dict[str, Any]


def make_list(words: Words, of_folder: click.Command) -> click.Command:
    """``list``: the registry's entries, or those of the catalog folder where there is no registry."""

    @click.command(
        "list",
        help=_help(f"List {words.command}.", f"{words.command} list", f"{words.command} list --text jira --server URL"),
    )
    @click.option("--text", metavar="WORD", help="Only those in whose name or description it stands.")
    @click.option("--limit", type=click.IntRange(min=1), help="So many at most.")
    @place_options
    @json_option
    @click.pass_context
    def list_(ctx: click.Context, text: str | None, limit: int | None, as_json: bool) -> None:
        if is_about_folder():
            ctx.invoke(of_folder, as_json=as_json)
            return
        with open_client() as client:
            found = list(client.items(f"/{words.kind}", {"q": text}, most=limit))
        if as_json:
            print_json(found)
        elif words is SERVERS:
            columns = ("ID", "NAME", "TYPE", "URL OR COMMAND", "VERSION", "USERS", "APPROVED")
            print_table(columns, [_server_row(item) for item in found])
        else:
            print_table(("NAME", "ROLE", "DESCRIPTION", "SERVERS", "VERSION", "USERS"), [_row(item) for item in found])

    return list_


def _server_row(item: Json) -> tuple[str, ...]:
    document = item["document"]
    target = document.get("url") or " ".join((document.get("command", ""), *document.get("args", ())))
    kind = document.get("type") or ("http" if "url" in document else "stdio")
    approved = {True: "yes", False: "no", None: ""}[item["approved"]]
    return (
        item["id"], document.get("name", ""), kind, target, str(item["version"]), str(item["users"]), approved
    )  # fmt: skip


def _row(item: Json) -> tuple[str, ...]:
    document = item["document"]
    servers = ", ".join(document.get("mcpServers", ()))
    shown = (document.get("role", ""), document.get("description", ""), servers)
    return (item["id"], *shown, str(item["version"]), str(item["users"]))


def make_show(words: Words, of_folder: click.Command) -> click.Command:
    """``show``: one document as it is stored, sensitive literals masked."""
    examples = (f"{words.command} show NAME", f"{words.command} show NAME --record --json")

    @click.command(
        "show", help=_help(f"Show one {words.noun} as it is stored; sensitive literals are masked.", *examples)
    )
    @click.argument("name", shell_complete=complete_entries(words.kind))
    @click.option("--record", is_flag=True, help="With version, author, approval and number of users.")
    @place_options
    @json_option
    @click.pass_context
    def show(ctx: click.Context, name: str, record: bool, as_json: bool, **given: bool) -> None:
        if is_about_folder():
            known = {param.name for param in of_folder.params}
            ctx.invoke(of_folder, as_json=as_json, **{"id_" if "id_" in known else "name": name}, **given)
            return
        with open_client() as client:
            if given.get("resolved"):
                print_blueprint(client, name, as_json=as_json)
                return
            found = words.record(client, name)
        if as_json:
            print_json(found if record else found["document"])
            return
        click.echo(visible(f"# {words.kind}/{name}, version {found['version']} by {found['updated_by']}"))
        click.echo(render_text(found if record else found["document"], Syntax.YAML), nl=False)

    if words is AGENTS:
        resolved = click.option("--resolved", is_flag=True, help="Show the resolved blueprint instead of the document.")
        resolved(show)
    return show


def make_history(words: Words) -> click.Command:
    """``history``: who changed an entry, when, from what to what."""
    examples = (f"{words.command} history NAME", f"{words.command} history NAME --diff")

    @click.command("history", help=_help(f"Say who changed a {words.noun}, and when; newest first.", *examples))
    @click.argument("name", shell_complete=complete_entries(words.kind))
    @click.option("--diff", is_flag=True, help="Show what each change changed.")
    @click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="So many at most.")
    @place_options
    @json_option
    def history(name: str, diff: bool, limit: int, as_json: bool) -> None:
        with open_client() as client:
            found = list(client.items(words.path(name, "history"), most=limit))
        if as_json:
            print_json(found)
        elif diff:
            for change in found:
                click.echo(
                    visible(f"# version {change['version']}: {change['action']} by {change['who']} at {change['at']}")
                )
                print_difference(change["before"] or {}, change["after"] or {})
        else:
            rows = [(str(item["version"]), item["at"], item["who"], item["action"]) for item in found]
            print_table(("VERSION", "AT", "WHO", "ACTION"), rows)

    return history


def make_users(words: Words) -> click.Command:
    """``users``: which entries refer to one."""

    @click.command(
        "users", help=_help(f"Name the entries that refer to a {words.noun}.", f"{words.command} users NAME")
    )
    @click.argument("name", shell_complete=complete_entries(words.kind))
    @place_options
    @json_option
    def users(name: str, as_json: bool) -> None:
        with open_client() as client:
            found = list(client.items(words.path(name, "users")))
        if as_json:
            print_json(found)
        else:
            print_table(("KIND", "NAME"), [(user["kind"], user["id"]) for user in found])

    return users


@click.command("resolve")
@click.argument("name", shell_complete=complete_entries("agents"))
@click.option("--explain", is_flag=True, help="Say where each value comes from and what it overruled.")
@place_options
@json_option
def resolve_agent(name: str, explain: bool, as_json: bool) -> None:
    r"""Show what an agent of the registry gets: its blueprint, placeholders unfilled.

    \b
    Examples:
      outfitter agents resolve tester
      outfitter agents resolve tester --explain --json
    """
    with open_client() as client:
        if not explain:
            print_blueprint(client, name, as_json=as_json)
            return
        found = client.request("GET", AGENTS.path(name), query={"explain": True}).json
    if as_json:
        print_json(found)
    else:
        click.echo(render_text(found, Syntax.YAML), nl=False)


def print_blueprint(client: ApiClient, name: str, *, as_json: bool) -> None:
    """The resolved blueprint, as the API writes it."""
    answer = client.request("GET", AGENTS.path(name))
    if as_json:
        click.echo(answer.text)
    else:
        click.echo(f"# agents/{name}, resolved")
        click.echo(render_text(cast("Json", answer.json), Syntax.YAML), nl=False)


def print_difference(before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    """The lines in which two documents differ; whether there are any."""
    old, new = (render_text(one, Syntax.YAML).splitlines() if one else [] for one in (before, after))
    lines = list(difflib.unified_diff(old, new, "before", "after", lineterm="", n=2))
    for line in lines[2:]:
        click.echo(visible(line))
    return bool(lines)


def _help(says: str, *examples: str) -> str:
    shown = "\n".join(f"  outfitter {example}" for example in examples)
    return f"{says}\n\n\b\nExamples:\n{shown}"
