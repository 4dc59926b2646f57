"""The two questions: what does this agent get and why, and why does it not get that."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from outfitter.app import last_seen_of, pins_of, waiting_of
from outfitter.catalog import Catalog, RunRequest
from outfitter.cli.console import complete_names, folder, json_option, load, make_console, print_json, settings
from outfitter.cli.paint import paint_explanation, paint_why_not
from outfitter.cli.tokens import seen_line
from outfitter.formats import MAX_BYTES, Syntax, read_document, read_run
from outfitter.resolution import RunPlan, explain, resolve, weigh_seen, why_not, with_waiting
from outfitter.storage import read_bytes

_run_option = click.option(
    "--run", "run_file", metavar="FILE", help="A run request (JSON, TOML or YAML; - for standard input)."
)
_parent_option = click.option(
    "--parent",
    "parent_files",
    metavar="FILE",
    multiple=True,
    help="The run request of the parent session; repeat it for a deeper chain, outermost first.",
)


@click.command("explain")
@click.argument("agent", shell_complete=complete_names("agents"))
@_run_option
@_parent_option
@json_option
def explain_command(agent: str, run_file: str | None, parent_files: tuple[str, ...], as_json: bool) -> None:
    r"""Say what AGENT gets, where each value comes from and what it overruled.

    Without --run it explains the blueprint; with --run the run is checked as if it were started now.

    \b
    Examples:
      outfitter explain sprint-researcher
      outfitter explain sprint-researcher --run run.json
      outfitter explain tester --parent lead-run.json --json
    """
    place = folder()
    plan = _plan(load(), agent, run_file, parent_files)
    explanation = explain(with_waiting(plan, waiting_of(pins_of(settings()), plan)))
    weights = weigh_seen(plan, last_seen_of(settings()).recall)
    if as_json:
        known = {"tool_tokens": weights.to_json()} if weights.tools else {}
        print_json({**explanation.to_json(), **known})
    else:
        paint_explanation(make_console(), explanation, root=place.path)
        if weights.tools:
            click.echo(seen_line(weights))


@click.command("why-not")
@click.argument("agent", shell_complete=complete_names("agents"))
@click.argument("name")
@_run_option
@_parent_option
@json_option
def why_not_command(
    agent: str,
    name: str,
    run_file: str | None,
    parent_files: tuple[str, ...],
    as_json: bool,
) -> None:
    r"""Say why AGENT lacks NAME: a tool, a header, a server, SERVER/TOOL, or the name a model sees.

    \b
    Examples:
      outfitter why-not tester merge_pull_request
      outfitter why-not alpha-project-assistant X-Confluence-Spaces
      outfitter why-not designer postgres
    """
    place = folder()
    plan = _plan(load(), agent, run_file, parent_files)
    answers = why_not(plan, name, waiting_of(pins_of(settings()), plan))
    if as_json:
        print_json({"agent": agent, "answers": [answer.to_json() for answer in answers]})
    else:
        paint_why_not(make_console(), agent, answers, root=place.path)


def _plan(catalog: Catalog, agent: str, run_file: str | None, parent_files: tuple[str, ...]) -> RunPlan:
    parent: RunPlan | None = None
    for file in parent_files:
        request = _read_request(file)
        parent = resolve(request.agent_name, catalog, request, parent)
    run = None if run_file is None else _read_request(run_file)
    return resolve(agent, catalog, run, parent)


def _read_request(file: str) -> RunRequest:
    if file == "-":
        data, source, syntax = sys.stdin.buffer.read(MAX_BYTES + 1), "standard input", Syntax.JSON
    else:
        data, source, syntax = read_bytes(Path(file), MAX_BYTES), file, Syntax.of(file)
    return read_document(data, source, syntax, lambda value: read_run(value, source))
