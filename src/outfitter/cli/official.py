"""Look for servers in a registry that speaks the official API, and add one. Nothing is fetched but its description.

Which registry is a setting, or ``--registry``: the official one, or a team's own, which the service publishes in the
same form. A token is read from the variable that ``--token-env`` names, so that none goes where it was not meant to.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from outfitter.catalog import SseTransport, StdioTransport
from outfitter.cli.console import json_option, print_json, print_table, settings, visible
from outfitter.errors import Invalid, NotFound
from outfitter.formats import write_entry

if TYPE_CHECKING:
    from outfitter.app import Offer, OfficialRegistry
    from outfitter.catalog import JsonValue, ServerEntry
    from outfitter.formats import ImportedServer
    from outfitter.squad import Pattern

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")
_RUNNERS = {"npx": "npm", "bunx": "npm", "pnpx": "npm", "uvx": "pypi", "docker": "oci", "podman": "oci"}
_WAYS = ("npm", "pypi", "oci", "http", "sse")
_LONGEST = 60


@click.group("registry")
def registry_command() -> None:
    """Search a registry of the official MCP API, and add what it offers.

    The official registry is asked, unless OUTFITTER_OFFICIAL_REGISTRY or --registry names another one. The service of
    a team publishes its own registry in the same form, under /v0.1/servers.
    """


def _place_options(command: F) -> F:
    """Give a command the options that say which registry is asked, and how."""
    options = (
        click.option("--registry", metavar="URL", help="Ask the registry there."),
        click.option("--token-env", metavar="NAME", help="Send the token that this variable holds."),
        click.option("--private", is_flag=True, help="The registry is on a private network of your own."),
    )
    for option in options:
        command = option(command)
    return command


def _ask(given: dict[str, Any], job: Callable[[OfficialRegistry], Awaitable[T]]) -> T:
    """What the chosen registry answers."""
    import anyio

    from outfitter.app import open_official

    url, token = given["registry"] or settings().official_registry, _token(given["token_env"])

    async def main() -> T:
        async with open_official(url, token=token, is_private=given["private"]) as registry:
            return await job(registry)

    return anyio.run(main)


def _token(variable: str | None) -> str | None:
    if variable is None:
        return None
    token = os.environ.get(variable, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise Invalid(f"the variable {variable!a} holds no token", hint="set it where this command runs")
    return token


@registry_command.command("search")
@click.argument("query", default="")
@click.option("--limit", type=click.IntRange(1, 1000), default=30, show_default=True, help="So many at most.")
@_place_options
@json_option
def search(query: str, limit: int, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - the options of the place
    r"""List the servers whose name has QUERY in it, in their newest version.

    \b
    Examples:
      outfitter registry search github
      outfitter registry search --registry https://tools.example --token-env OUTFITTER_TOKEN
    """
    found = _ask(given, lambda registry: registry.search(query, most=limit))
    if as_json:
        print_json([_offer_json(offer) for offer in found])
        return
    rows = [(one.name, one.version, one.status, _short(one.title or one.description)) for one in found]
    print_table(("NAME", "VERSION", "STATUS", "WHAT"), rows)


@registry_command.command("show")
@click.argument("name", metavar="NAME[@VERSION]")
@click.option("--way", type=click.Choice(_WAYS), help="Only this way to reach it.")
@click.option("--document", is_flag=True, help="Print the registry's document, for 'outfitter servers add -f -'.")
@_place_options
@json_option
def show(name: str, way: str | None, document: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - same
    r"""Say how a server can be reached, and what it needs. Nothing is started.

    \b
    Examples:
      outfitter registry show io.github.user/weather
      outfitter registry show io.github.user/weather@1.2.0 --json
      outfitter registry show io.github.user/weather --way http --document | outfitter servers add -f -
    """
    offer, ways = _ways(name, way, given)
    if document:
        print_json(write_entry(ways[0].entry))
    elif as_json:
        told: list[JsonValue] = [
            {"way": way_of(one.entry), "target": one.command_line, "notes": list(one.notes)} for one in ways
        ]
        print_json({**_offer_json(offer), "ways": told, "server": dict(offer.document)})
    else:
        click.echo(visible(f"{offer.name} {offer.version}  {offer.title or offer.description}"))
        for one in ways:
            click.echo(f"{way_of(one.entry)}: {visible(one.command_line)}")
            for note in one.notes:
                click.echo(f"  note: {visible(note)}")


@registry_command.command("add")
@click.argument("name", metavar="NAME[@VERSION]")
@click.option("--way", type=click.Choice(_WAYS), help="How it is reached (default: the first that is offered).")
@click.option("--to", multiple=True, metavar="AGENT", help="These agents get it, with all its tools.")
@click.option("--dry-run", is_flag=True, help="Show what would happen and write nothing.")
@_place_options
@json_option
def add(name: str, way: str | None, to: tuple[str, ...], dry_run: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - same
    r"""Add a server of the registry to the squad file, or to the catalog where there is none.

    The version that is offered now is written down; what comes later is not taken by itself. What the publisher leaves
    to be filled in becomes a variable. Nothing is started, and what is there is never replaced.

    \b
    Examples:
      outfitter registry add io.github.user/weather
      outfitter registry add io.github.user/weather@1.2.0 --way npm --to lead
    """
    from outfitter.cli.add import add_pattern

    offer, (chosen, *_) = _ways(name, way, given)
    notes = (f"{offer.name} {offer.version}", *_warnings(offer, chosen.entry), *chosen.notes)
    add_pattern(_pattern(offer, chosen), to, is_dry=dry_run, as_json=as_json, notes=notes)


def _ways(name: str, way: str | None, given: dict[str, Any]) -> tuple[Offer, list[ImportedServer]]:
    """The server, and the ways to reach it that are wanted."""
    from outfitter.app import LATEST

    plain, _, version = name.partition("@")
    offer = _ask(given, lambda registry: registry.find(plain, version or LATEST))
    ways = [one for one in offer.ways(plain) if way in {None, way_of(one.entry)}]
    if not ways:
        offered = ", ".join(dict.fromkeys(way_of(one.entry) for one in offer.ways(plain)))
        raise NotFound(f"it cannot be reached by {way}", where=plain, hint=f"offered: {offered}")
    return offer, ways


def way_of(entry: ServerEntry) -> str:
    """How an entry is reached, in the words of a server.json."""
    transport = entry.server.transport
    if isinstance(transport, StdioTransport):
        return _RUNNERS.get(transport.command, transport.command)
    return "sse" if isinstance(transport, SseTransport) else "http"


def _pattern(offer: Offer, chosen: ImportedServer) -> Pattern:
    """The server as something to add: nobody gets it by his role, whoever is named gets all of it."""
    from outfitter.squad import Pattern, Share

    entry = chosen.entry
    told = dict.fromkeys(_variables(entry), f"see {offer.name}")
    return Pattern(entry.id, "registry", offer.title or offer.description, (entry,), (), told, Share(entry.id, ()))


def _variables(entry: ServerEntry) -> list[str]:
    """The variables that must be set before it is used, once each."""
    from outfitter.resolution import Variable, parse_template

    transport = entry.server.transport
    texts = transport.args if isinstance(transport, StdioTransport) else (transport.url,)
    values = (*texts, *entry.server.env.values(), *entry.default_headers.values())
    parts = (part for text in values if isinstance(text, str) for part in parse_template(text))
    return list(dict.fromkeys(part.name for part in parts if isinstance(part, Variable) and part.default is None))


def _warnings(offer: Offer, entry: ServerEntry) -> list[str]:
    """What a person should know before it is used."""
    told = [f"the registry says '{offer.status}': {offer.message}"] if offer.status == "deprecated" else []
    way, offered = way_of(entry), cast("list[dict[str, Any]]", offer.document.get("packages") or [])
    package = next((one for one in offered if one.get("registryType") == way), None)
    if package is not None and not package.get("version") and ":" not in str(package.get("identifier")):
        told.append("the registry names no version of its package: what is started may change")
    return told


def _offer_json(offer: Offer) -> dict[str, JsonValue]:
    return {
        "name": offer.name,
        "version": offer.version,
        "title": offer.title,
        "description": offer.description,
        "status": offer.status,
        "updated_at": offer.updated_at,
    }


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
