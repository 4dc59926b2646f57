"""Commands that change entries of the registry: add, edit, rm, rollback, approve.

Every change names the version that it was made from, so that nobody's work is overwritten. A masked literal that comes
back from the editor is kept as it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from outfitter.cli.api_client import ApiClient
from outfitter.cli.console import json_option, print_json, visible
from outfitter.cli.registry_documents import Document, Given, change_values, parse_given, read_given
from outfitter.cli.registry_place import complete_entries, open_client, place_options
from outfitter.cli.registry_words import AGENTS, SERVERS, Words, tell_change
from outfitter.errors import InUse, Invalid, OutfitterError
from outfitter.formats import Syntax, render_text

BuildDocument = Callable[[dict[str, Any]], Document]


def make_add(words: Words, options: Sequence[Callable[..., Any]], build: BuildDocument, example: str) -> click.Command:
    """``add``: from a file, or from the options that are enough for the common case."""

    @click.command("add", help=(
        f"Add a {words.noun}: from a file, or from options for the common case.\n\n\b\nExamples:\n"
        f"  outfitter {words.command} add {example}\n  outfitter {words.command} add -f {words.noun}.json\n"
        f"  outfitter {words.command} add -f - --server URL < {words.noun}.yaml"
    ))  # fmt: skip
    @click.argument("name", required=False)
    @click.option("-f", "--file", metavar="FILE", help="The document: JSON, TOML or YAML; - for standard input.")
    @place_options
    @json_option
    def add(name: str | None, file: str | None, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - the kind's options
        document = _named(words, name, build(given), read_given(file) if file else None)
        with open_client(may_create=True) as client, document.located():
            answer = client.request("POST", f"/{words.kind}", body=document.document)
        tell_change(words, "Added", str(answer.json[words.key]), answer, as_json=as_json)

    for option in options:
        option(add)
    return add


def _named(words: Words, name: str | None, built: Document, given: Given | None) -> Given:
    """The document to send, under the name that was given."""
    if given is None:
        if name is None:
            raise click.UsageError(f"name the {words.noun}, or give its document with -f")
        given = Given({words.key: name, **built}, "", "", Syntax.JSON)
    elif built:
        raise click.UsageError("give the document with -f or by options, not both")
    if name is not None and given.document.setdefault(words.key, name) != name:
        raise Invalid(f"the document is of another {words.noun} than '{name}'", where=given.source)
    return given


def make_edit(words: Words) -> click.Command:
    """``edit``: in the editor, from a file, or one value at a JSON pointer."""

    @click.command("edit", help=(
        f"Change a {words.noun}: in $EDITOR, from a file, or one value at a time.\n\n"
        "Masked literals are kept as they are stored.\n\n\b\nExamples:\n"
        f"  outfitter {words.command} edit NAME\n"
        f"  outfitter {words.command} edit NAME --set '/description=Shared by all'\n"
        f"  outfitter {words.command} edit NAME -f {words.noun}.json --server URL"
    ))  # fmt: skip
    @click.argument("name", shell_complete=complete_entries(words.kind))
    @click.option("-f", "--file", metavar="FILE", help="The new document: JSON, TOML or YAML; - for standard input.")
    @click.option("--set", "sets", metavar="POINTER=VALUE", multiple=True, help="Put a value there; JSON or text.")
    @click.option("--unset", "unsets", metavar="POINTER", multiple=True, help="Take the value there away.")
    @place_options
    @json_option
    def edit(name: str, file: str | None, sets: tuple[str, ...], unsets: tuple[str, ...], as_json: bool) -> None:
        with open_client() as client:
            found = words.record(client, name)
            if not (file or sets or unsets):
                _edit_by_hand(client, words, found, as_json=as_json)
                return
            given = read_given(file) if file else Given(found["document"], "", "", Syntax.JSON)
            body = change_values(given.document, sets, unsets)
            with given.located():
                answer = client.request("PUT", words.path(name), body=body, etag=found["etag"])
        tell_change(words, "Changed", name, answer, as_json=as_json)

    return edit


def _edit_by_hand(client: ApiClient, words: Words, found: dict[str, Any], *, as_json: bool) -> None:
    """The document in the editor, again and again until it is right or given up."""
    name = found["id"]
    first = text = render_text(found["document"], Syntax.YAML)
    while True:
        typed: str | None = click.edit(text, extension=".yaml")
        if typed is None or typed == first:
            click.echo("Nothing was changed.", err=True)
            return
        text = typed
        try:
            given = parse_given(text, "the edited text", Syntax.YAML)
            with given.located():
                answer = client.request("PUT", words.path(name), body=given.document, etag=found["etag"])
        except Invalid as error:
            click.echo(f"Error [{error.code}] {error}", err=True)
            if not click.confirm("Edit again?", default=True, err=True):
                raise
        else:
            tell_change(words, "Changed", name, answer, as_json=as_json)
            return


def make_rm(words: Words) -> click.Command:
    """``rm``: asks first, and says who stands in the way."""

    @click.command("rm", help=(
        f"Delete a {words.noun}. What others refer to is not deleted: they are named.\n\n\b\nExamples:\n"
        f"  outfitter {words.command} rm NAME\n  outfitter {words.command} rm NAME --yes --server URL"
    ))  # fmt: skip
    @click.argument("name", shell_complete=complete_entries(words.kind))
    @click.option("--yes", is_flag=True, help="Do not ask.")
    @click.option("--force", is_flag=True, help="Also when others refer to it; their runs are then refused.")
    @place_options
    @json_option
    def rm(name: str, yes: bool, force: bool, as_json: bool) -> None:
        with open_client() as client:
            found = words.record(client, name)
            if not yes:
                used = f", which {found['users']} others refer to" if found["users"] else ""
                click.confirm(f"Delete {words.noun} '{name}', version {found['version']}{used}?", abort=True, err=True)
            try:
                client.request("DELETE", words.path(name), query={"force": force or None}, etag=found["etag"])
            except InUse as refused:
                raise _with_users(refused) from None
        if as_json:
            print_json({"kind": words.kind, "id": name, "deleted": True})
        else:
            click.echo(f"Deleted {words.noun} '{name}'.")

    return rm


def _with_users(refused: InUse) -> OutfitterError:
    """The refusal with every user in it, not only the first few."""
    names = ", ".join(f"{user.kind}/{user.id}" for user in refused.users)
    hint = "change these first, or --force: their runs are then refused"
    return InUse(f"it is used by {names}", users=refused.users, where=refused.where, hint=hint)


def make_rollback(words: Words) -> click.Command:
    """``rollback``: an earlier document, as a new version."""

    @click.command("rollback", help=(
        f"Put an earlier version of a {words.noun} back, as a new version.\n\n\b\nExamples:\n"
        f"  outfitter {words.command} history NAME\n  outfitter {words.command} rollback NAME 3"
    ))  # fmt: skip
    @click.argument("name", shell_complete=complete_entries(words.kind))
    @click.argument("version", type=click.IntRange(min=1))
    @place_options
    @json_option
    def rollback(name: str, version: int, as_json: bool) -> None:
        with open_client() as client:
            found = words.record(client, name)
            path = words.path(name, "rollback")
            answer = client.request("POST", path, body={"version": version}, etag=found["etag"])
        tell_change(words, "Rolled back", name, answer, as_json=as_json)

    return rollback


@click.command("approve")
@click.argument("name", shell_complete=complete_entries(SERVERS.kind))
@click.option("--yes", is_flag=True, help="Do not ask.")
@place_options
@json_option
def approve_server(name: str, yes: bool, as_json: bool) -> None:
    r"""Let the present command of a stdio server be started; for admins.

    \b
    Examples:
      outfitter servers approve filesystem
      outfitter servers approve filesystem --yes --server URL
    """
    record = _approve(SERVERS, name, yes=yes)
    if as_json:
        print_json(record)
    else:
        click.echo(f"The command of server '{name}' is approved.")


@click.command("approve")
@click.argument("name", shell_complete=complete_entries(AGENTS.kind))
@click.option("--yes", is_flag=True, help="Do not ask.")
@place_options
@json_option
def approve_executor(name: str, yes: bool, as_json: bool) -> None:
    r"""Let what executes the runs of an agent be started, as it stands now; for admins.

    \b
    Examples:
      outfitter agents approve builder
      outfitter agents approve builder --yes --server URL
    """
    record = _approve(AGENTS, name, yes=yes)
    if as_json:
        print_json(record)
    else:
        click.echo(f"The executor of agent '{name}' is approved.")


def _approve(words: Words, name: str, *, yes: bool) -> Document:
    with open_client() as client:
        found = words.record(client, name)
        if not yes and found["approved"] is not None:
            document: Document = found["document"]
            if words is not SERVERS:
                document = document.get("executor") or document
            click.echo(visible(_command_of(document)), err=True)
            click.confirm("Let this be started?", abort=True, err=True)
        return client.request("POST", words.path(name, "approve"), etag=found["etag"]).json


def _command_of(document: Document) -> str:
    """What would be started, argument by argument; the names of its variables only."""
    command = [document.get("command", ""), *document.get("args", ())]
    variables = f" with {', '.join(document['env'])}" if document.get("env") else ""
    folder = f" in {document['cwd']}" if document.get("cwd") else ""
    return f"{command}{variables}{folder}"
