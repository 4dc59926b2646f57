"""The command that has an agent do something: a run started and, if wanted, followed to its end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from outfitter.basics import suggest
from outfitter.cli.api_client import ApiClient, path_of
from outfitter.cli.console import json_option, print_json, visible
from outfitter.cli.registry_place import complete_entries, open_client, place_options, server_url
from outfitter.cli.registry_runs import run_document
from outfitter.errors import Forbidden, Invalid, NotFound, Unavailable, UnknownAgent

_ENDED = frozenset({"done", "failed", "stopped", "lost"})
_PAUSE, _PATIENCE, _WIDE = 0.3, 120.0, 200
_ALONE, _MOST_NAMES = 3.0, 500


@click.command("run")
@click.argument("agent", shell_complete=complete_entries("agents"))
@click.argument("prompt")
@click.option("--header", "headers", metavar="SERVER:NAME=VALUE", multiple=True, help="A header of one of its servers.")
@click.option(
    "--credential", "credentials", metavar="SERVER:NAME[=env:VAR]", multiple=True,
    help="A secret header, held in memory only; asked for, or from a variable.",
)  # fmt: skip
@click.option("--parent", metavar="SESSION", help="The session that starts it; its headers are inherited.")
@click.option("--follow", is_flag=True, help="Show what happens, and wait for the result.")
@place_options
@json_option
def run_command(agent: str, follow: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options by name
    r"""Have AGENT do what PROMPT says; a runner must be there to execute it. PROMPT may be - for standard input.

    With --follow the exit code is 0 when the run is done and 1 when it failed, was stopped or was lost.

    \b
    Examples:
      outfitter run tester 'What changed this sprint?' --follow
      outfitter run tester - --header docs:X-Context-Namespace=team < task.md
      outfitter run tester 'Go' --credential jira:X-API-Key=env:JIRA_KEY --server URL --follow --json
    """
    document = run_document(agent, **given)
    if document.get("credentials") and server_url() is None:
        hint = "name the service with --server"
        raise Invalid("credentials are held in the memory of a service, and none was named", hint=hint)
    with open_client() as client:
        _check_agent(client, agent)
        run = client.request("POST", "/runs", body=document).json
        if follow:
            run = _follow(client, run, as_json=as_json)
    if as_json:
        print_json(run)
    else:
        _tell(run, is_whole=follow)
    if follow and run["state"] != "done":
        sys.exit(1)


def _check_agent(client: ApiClient, agent: str) -> None:
    """Refuse before anything is made what no runner could execute."""
    try:
        document = client.request("GET", path_of("agents", agent, "document")).json
    except Forbidden:
        return  # who may not look may start a run all the same
    except NotFound:
        names = [item["id"] for item in client.items("/agents", most=_MOST_NAMES)]
        raise UnknownAgent(f"no agent '{visible(agent)}'", hint=suggest(agent, names)) from None
    if not document.get("executor"):
        hint = 'write it into its document: "executor": {"type": "claude-code"}, or of the type command with a program'
        raise Invalid(f"agent '{visible(agent)}' does not say who executes it", hint=hint)


def _warn_if_alone(client: ApiClient) -> None:
    """Say that nobody is there to execute anything."""
    try:
        runners = client.request("GET", "/runners").json["items"]
    except (Forbidden, Unavailable):
        return
    if not any(one["is_alive"] for one in runners):
        click.echo("note: no runner is alive; start one: outfitter runner", err=True)


def _follow(client: ApiClient, run: dict[str, Any], *, as_json: bool) -> dict[str, Any]:
    """The run as it ended; what it tells is shown meanwhile."""
    if not as_json:
        click.echo(f"Run {run['id']} of agent '{visible(run['agent_name'])}' in session {run['session_id']}.")
    after, began, is_looked = 0, time.monotonic(), False
    for found in _looks(client, run["id"]):
        for event in _events(client, run["id"], after):
            after = event["seq"]
            if not as_json:
                click.echo(visible(f"  {event['type']}  {_short(event['data'])}").replace("\n", "\\n"))
        if found["state"] in _ENDED:
            return found
        if found["state"] == "pending" and not is_looked and time.monotonic() - began > _ALONE:
            is_looked = True
            _warn_if_alone(client)
    raise Unavailable("the run was lost sight of")


def _looks(client: ApiClient, run_id: str) -> Iterator[dict[str, Any]]:
    """The run, again and again; a service that is away for a while comes back."""
    last = time.monotonic()
    while True:
        try:
            yield client.request("GET", path_of("runs", run_id)).json
            last = time.monotonic()
        except Unavailable:
            if time.monotonic() - last > _PATIENCE:
                raise
        time.sleep(_PAUSE)


def _events(client: ApiClient, run_id: str, after: int) -> Iterator[dict[str, Any]]:
    while True:
        try:
            page = client.request("GET", path_of("runs", run_id, "events"), query={"after": after, "limit": 100}).json
        except Unavailable:
            return  # it is asked again after the next look
        yield from page["events"]
        if page["next"] is None:
            return
        after = page["next"]


def _tell(run: dict[str, Any], *, is_whole: bool) -> None:
    if not is_whole:
        told = f"Run {run['id']} of agent '{run['agent_name']}' in session {run['session_id']}: {run['state']}."
        click.echo(visible(told))
        return
    error = run["error"]
    why = f" [{error['code']}] {error['message']}" if isinstance(error, dict) else ""
    click.echo(visible(f"{run['state']}{why}"), err=run["state"] != "done")
    if run["result"] is not None:
        text = run["result"] if isinstance(run["result"], str) else json.dumps(run["result"], indent=2)
        click.echo(visible(text))


def _short(data: object) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if len(text) <= _WIDE else f"{text[: _WIDE - 1]}…"
