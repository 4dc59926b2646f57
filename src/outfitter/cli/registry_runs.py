"""Commands of runs and sessions: start, list, show, stop, what a run tells, who started whom, and who executes runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from outfitter.cli.api_client import ApiClient, path_of
from outfitter.cli.console import json_option, make_console, print_json, print_table, visible
from outfitter.cli.registry_documents import Document, Given, public_pair, read_given, read_secret
from outfitter.cli.registry_place import complete_entries, open_client, place_options, server_url
from outfitter.errors import Invalid
from outfitter.formats import Syntax, render_text

_STATES = ["pending", "running", "stopping", "stopped", "done", "failed", "lost"]
_DEEPEST = 20
_WIDE = 60
_PAGE = 500
_agent = click.option("--agent", help="Only of this agent.", shell_complete=complete_entries("agents"))
_state = click.option("--state", type=click.Choice(_STATES), help="Only in this state.")
_limit = click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="So many at most.")


@click.group("runs")
def runs_command() -> None:
    """Start, list, show, follow and stop runs of agents."""


@runs_command.command("start")
@click.argument("agent", required=False, shell_complete=complete_entries("agents"))
@click.option("-f", "--file", metavar="FILE", help="The whole run request: JSON, TOML or YAML; - for standard input.")
@click.option("--prompt", metavar="TEXT", help="What it is to do; - reads standard input.")
@click.option("--header", "headers", metavar="ALIAS:NAME=VALUE", multiple=True, help="A header of one of its servers.")
@click.option(
    "--credential", "credentials", metavar="ALIAS:NAME[=env:VAR]", multiple=True,
    help="A secret header, held in memory only; asked for, or from a variable.",
)  # fmt: skip
@click.option("--parent", metavar="SESSION", help="The session that starts it; its headers are inherited.")
@place_options
@json_option
def start_command(agent: str | None, file: str | None, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - options by name
    r"""Start a run of AGENT. One that lacks something is refused with every reason, and leaves nothing behind.

    \b
    Examples:
      outfitter runs start sprint-researcher --prompt 'What changed this sprint?'
      outfitter runs start tester --prompt - --header context-store:X-Context-Namespace=team < task.md
      outfitter runs start tester --prompt 'Go' --credential jira:X-API-Key=env:JIRA_KEY --server URL
    """
    request = read_given(file) if file else Given({}, "", "", Syntax.JSON)
    document = {**request.document, **run_document(agent, **given)}
    if "agent_name" not in document:
        raise click.UsageError("name an agent, or give the request with -f")
    if document.get("credentials") and server_url() is None:
        hint = "name the service with --server"
        raise Invalid("credentials are held in the memory of a service, and none was named", hint=hint)
    with open_client() as client, request.located():
        run = client.request("POST", "/runs", body=document).json
    if as_json:
        print_json(run)
    else:
        click.echo(
            visible(f"Run {run['id']} of agent '{run['agent_name']}' in session {run['session_id']}: {run['state']}.")
        )


def run_document(
    agent: str | None, prompt: str | None, headers: Sequence[str], credentials: Sequence[str], parent: str | None
) -> Document:
    """The request for a run, from options."""
    mcp_headers: dict[str, dict[str, str]] = {}
    for item in headers:
        alias, pair = _aliased(item)
        name, value = public_pair(pair, "--header")
        mcp_headers.setdefault(alias, {})[name] = value
    secrets: dict[str, dict[str, str]] = {}
    for item in credentials:
        alias, pair = _aliased(item)
        name, _, reference = pair.partition("=")
        secrets.setdefault(alias, {})[name] = read_secret(f"{alias}:{name}", reference)
    told = sys.stdin.read() if prompt == "-" else prompt
    found = {"agent_name": agent, "prompt": told, "parent_session_id": parent}
    return {
        **{key: value for key, value in found.items() if value is not None},
        **({"mcp_headers": mcp_headers} if mcp_headers else {}),
        **({"credentials": secrets} if secrets else {}),
    }


def _aliased(item: str) -> tuple[str, str]:
    alias, sign, rest = item.partition(":")
    if not sign or not alias or not rest:
        raise click.UsageError("a header of a run begins with ALIAS:")
    return alias, rest


@runs_command.command("list")
@_agent
@_state
@_limit
@place_options
@json_option
def list_runs(agent: str | None, state: str | None, limit: int, as_json: bool) -> None:
    r"""List runs, newest first.

    \b
    Examples:
      outfitter runs list
      outfitter runs list --agent tester --state running --json
    """
    with open_client() as client:
        found = list(client.items("/runs", {"agent": agent, "state": state}, most=limit))
    if as_json:
        print_json(found)
        return
    names = ("id", "agent_name", "state", "owner", "attempt", "created_at", "created_by")
    rows = [[*(str(run[name] or "") for name in names), _short(run["prompt"])] for run in found]
    print_table(("RUN", "AGENT", "STATE", "RUNNER", "ATTEMPT", "CREATED", "BY", "PROMPT"), rows)


@runs_command.command("show")
@click.argument("run_id", metavar="RUN")
@place_options
@json_option
def show_run(run_id: str, as_json: bool) -> None:
    r"""Show one run; its credentials are nowhere to be seen.

    \b
    Examples:
      outfitter runs show run_0a1b2c
    """
    with open_client() as client:
        _print_one(client.request("GET", path_of("runs", run_id)).json, as_json=as_json)


@runs_command.command("events")
@click.argument("run_id", metavar="RUN")
@click.option("--after", type=click.IntRange(min=0), default=0, help="Only those after this number.")
@_limit
@place_options
@json_option
def list_run_events(run_id: str, after: int, limit: int, as_json: bool) -> None:
    r"""Show what a run has told while it was executed, in order.

    \b
    Examples:
      outfitter runs events run_0a1b2c
      outfitter runs events run_0a1b2c --after 120 --json
    """
    found: list[dict[str, Any]] = []
    with open_client() as client:
        following: int | None = after
        while following is not None and len(found) < limit:
            query = {"after": following, "limit": min(limit - len(found), _PAGE)}
            page = client.request("GET", path_of("runs", run_id, "events"), query=query).json
            found += page["events"]
            following = page["next"]
    if as_json:
        print_json(found)
        return
    rows = [(str(one["seq"]), one["at"], one["type"], _short(json.dumps(one["data"]))) for one in found]
    print_table(("NUMBER", "AT", "TYPE", "DATA"), rows)


@runs_command.command("tree")
@click.argument("run_id", metavar="RUN")
@place_options
@json_option
def show_tree(run_id: str, as_json: bool) -> None:
    r"""Show a run and all runs that were started from it, each with its state.

    \b
    Examples:
      outfitter runs tree run_0a1b2c
      outfitter runs tree run_0a1b2c --json
    """
    with open_client() as client:
        run = client.request("GET", path_of("runs", run_id)).json
        found = client.request("GET", path_of("sessions", run["session_id"])).json
        if as_json:
            print_json(_family(client, found, _DEEPEST))
        else:
            _print_tree(client, found)


def _family(client: ApiClient, found: dict[str, Any], left: int) -> dict[str, Any]:
    children = found["children"] if left else ()
    below = [client.request("GET", path_of("sessions", child)).json for child in children]
    kept = {name: found[name] for name in ("run_id", "id", "agent", "state")}
    return {**kept, "children": [_family(client, one, left - 1) for one in below]}


@runs_command.command("stop")
@click.argument("run_id", metavar="RUN")
@place_options
@json_option
def stop_run(run_id: str, as_json: bool) -> None:
    r"""Ask a run to end.

    \b
    Examples:
      outfitter runs stop run_0a1b2c
    """
    with open_client() as client:
        run = client.request("POST", path_of("runs", run_id, "stop")).json
    if as_json:
        print_json(run)
    else:
        click.echo(f"Run {run['id']} is {run['state']}.")


@click.command("runners")
@place_options
@json_option
def runners_command(as_json: bool) -> None:
    r"""List those who execute runs, and which of them are alive.

    \b
    Examples:
      outfitter runners
      outfitter runners --json
    """
    with open_client() as client:
        found = client.request("GET", "/runners").json["items"]
    if as_json:
        print_json(found)
        return
    rows = [
        (one["id"], "alive" if one["is_alive"] else "silent", f"{len(one['running'])} of {one['capacity']}",
         ", ".join(one["executors"]), one["last_seen"])
        for one in found
    ]  # fmt: skip
    print_table(("RUNNER", "STATE", "RUNS", "EXECUTORS", "LAST SEEN"), rows)


@click.group("sessions")
def sessions_command() -> None:
    """List sessions, and show one with those it started."""


@sessions_command.command("list")
@_agent
@_state
@_limit
@place_options
@json_option
def list_sessions(agent: str | None, state: str | None, limit: int, as_json: bool) -> None:
    r"""List sessions, newest first.

    \b
    Examples:
      outfitter sessions list --agent tester
    """
    with open_client() as client:
        found = list(client.items("/sessions", {"agent": agent, "state": state}, most=limit))
    if as_json:
        print_json(found)
        return
    names = ("id", "agent", "state", "run_id", "created_at", "parent_id")
    rows = [[str(session[name] or "") for name in names] for session in found]
    print_table(("SESSION", "AGENT", "STATE", "RUN", "CREATED", "PARENT"), rows)


@sessions_command.command("show")
@click.argument("session_id", metavar="SESSION")
@click.option("--plan", is_flag=True, help="The plan that it was given, with where each value came from.")
@place_options
@json_option
def show_session(session_id: str, plan: bool, as_json: bool) -> None:
    r"""Show one session: who started it, and the tree of those it started.

    \b
    Examples:
      outfitter sessions show session_0a1b2c
      outfitter sessions show session_0a1b2c --plan
    """
    with open_client() as client:
        found = client.request("GET", path_of("sessions", session_id)).json
        if as_json:
            print_json(found)
            return
        if plan:
            _print_one(found["plan"] or {}, as_json=False)
            return
        if found["parent_id"]:
            click.echo(f"Started by session {found['parent_id']}.")
        _print_tree(client, found)


def _print_tree(client: ApiClient, found: dict[str, Any]) -> None:
    from rich.tree import Tree

    tree = Tree(_line(found))
    _grow(client, tree, found, _DEEPEST)
    make_console().print(tree)


def _grow(client: ApiClient, tree: Any, found: dict[str, Any], left: int) -> None:  # noqa: ANN401 - rich is loaded late
    for child in found["children"] if left else ():
        below = client.request("GET", path_of("sessions", child)).json
        _grow(client, tree.add(_line(below)), below, left - 1)


def _line(session: dict[str, Any]) -> str:
    return visible(f"{session['id']}  {session['agent']}  {session['state']}  run {session['run_id']}")


def _print_one(value: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(value)
    else:
        click.echo(render_text(value, Syntax.YAML), nl=False)


def _short(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _WIDE else f"{first[: _WIDE - 1]}…"
