"""Commands that try or ask: what a change would do to an agent, and any page of the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import click

from outfitter.cli.api_client import PREFIX
from outfitter.cli.console import json_option, print_json, visible
from outfitter.cli.registry_documents import read_given
from outfitter.cli.registry_place import complete_entries, open_client, place_options
from outfitter.cli.registry_reading import print_difference
from outfitter.cli.registry_words import KINDS

_HOW = "such as agents/tester=tester.json, or a file in a folder mcp-servers, capabilities or agents"


@click.command("resolve")
@click.argument("agent", shell_complete=complete_entries("agents"))
@click.option(
    "--change", "changes", metavar="[KIND/NAME=]FILE", multiple=True, help="A document to try; JSON, TOML or YAML."
)
@click.option("--delete", "deletes", metavar="KIND/NAME", multiple=True, help="An entry to try without.")
@click.option("--run", "run_file", metavar="FILE", help="A run request to try it with.")
@place_options
@json_option
def resolve_command(
    agent: str, changes: tuple[str, ...], deletes: tuple[str, ...], run_file: str | None, as_json: bool
) -> None:
    r"""Say what a change of the registry would do to AGENT; nothing is stored. Exit code 1 when it would break it.

    \b
    Examples:
      outfitter resolve tester --change mcp-servers/github=github.json
      outfitter resolve tester --change outfitter/agents/tester.yaml --run run.json
      outfitter resolve tester --delete capabilities/knowledge --server URL
    """
    tried = [*(_change(item) for item in changes), *({**_name(item), "document": None} for item in deletes)]
    body: dict[str, Any] = {"agent_name": agent, "changes": tried}
    if run_file is not None:
        body["run"] = read_given(run_file).document
    with open_client() as client:
        found = client.request("POST", "/resolve", body=body).json
    if as_json:
        print_json(found)
    else:
        _print_found(agent, found)
    if "problems" in found["after"]:
        click.get_current_context().exit(1)


def _print_found(agent: str, found: dict[str, Any]) -> None:
    problems = found["after"].get("problems", ())
    for problem in problems:
        click.echo(visible(f"problem [{problem['code']}] {problem['message']}"))
    if not problems and not print_difference(found["before"], found["after"]):
        click.echo(f"Agent '{agent}' gets what it got before.")


def _change(item: str) -> dict[str, Any]:
    """A document to try, under the name it is given or the one that its place in a catalog folder tells."""
    place, sign, file = item.rpartition("=")
    document = read_given(file).document
    if sign:
        return {**_name(place), "document": document}
    kind = Path(file).parent.name
    if kind not in KINDS:
        raise click.UsageError(f"'{file}' does not tell what it is: {_HOW}")
    return {"kind": kind, "id": str(document.get(KINDS[kind].key) or Path(file).stem), "document": document}


def _name(text: str) -> dict[str, str]:
    kind, _, name = text.partition("/")
    if kind not in KINDS or not name:
        raise click.UsageError(f"an entry is KIND/NAME, {_HOW}")
    return {"kind": kind, "id": name}


@click.command("api")
@click.argument("path")
@place_options
def api_command(path: str) -> None:
    r"""Print a page of the registry's API as it is: /openapi.json, /ready, /metrics, or any list.

    \b
    Examples:
      outfitter api /openapi.json > openapi.json
      outfitter api /ready --server URL
      outfitter api '/agents?limit=10'
    """
    asked, _, query = path.removeprefix(PREFIX).partition("?")
    if not asked.startswith("/") or asked == "/events":
        raise click.UsageError("a path begins with /; 'outfitter events' shows events")
    with open_client() as client:
        answer = client.request("GET", quote(asked, safe="/%"), query=dict(parse_qsl(query)))
    click.echo(answer.text, nl=not answer.text.endswith("\n"))
