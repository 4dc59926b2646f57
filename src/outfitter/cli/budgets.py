"""How far the budgets of agents are used on this machine, and beginning one anew before its time."""

from __future__ import annotations

import getpass
import time
from typing import TYPE_CHECKING

import click

from outfitter.app import agents_here, budgets_here
from outfitter.basics import suggest
from outfitter.cli.console import complete_names, json_option, print_json, print_table, settings
from outfitter.errors import UnknownAgent
from outfitter.policy import BudgetState, Payer, describe_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outfitter.catalog import Agent
    from outfitter.storage import BudgetBook

_BAR = 20


@click.command("budgets")
@click.argument("agent", required=False, shell_complete=complete_names("agents"))
@click.option("--run", default="", metavar="ID", help="With the budgets of this run.")
@click.option("--reset", metavar="BUDGET", help="Begin this budget of AGENT anew, or 'all'; it is written down.")
@click.option("--for", "scope", metavar="SCOPE", help="With --reset: the one for this server, or SERVER/TOOL.")
@json_option
def budgets_command(agent: str | None, run: str, reset: str | None, scope: str | None, as_json: bool) -> None:
    r"""Say how far the budgets of AGENT are used, or those of every agent.

    It looks at what the gateways of this machine have counted. Times are UTC.

    \b
    Examples:
      outfitter budgets
      outfitter budgets coder --run run-1
      outfitter budgets coder --reset calls_per_day
      outfitter budgets coder --reset calls_per_hour --for github
    """
    if reset is not None and agent is None:
        raise click.UsageError("name the agent whose budget begins anew")
    known = agents_here(settings())
    if agent is not None and agent not in known:
        raise UnknownAgent(f"no agent '{agent}'", hint=suggest(agent, known))
    book = budgets_here(settings())
    try:
        if reset is not None and agent is not None:
            _reset(book, known[agent], Payer(agent, run), "" if reset == "all" else reset, scope, as_json)
        else:
            _show(book, known if agent is None else {agent: known[agent]}, run, as_json)
    finally:
        book.close()


def _reset(book: BudgetBook, agent: Agent, payer: Payer, budget: str, scope: str | None, as_json: bool) -> None:
    done = book.reset(payer, agent.budgets, by=f"{getpass.getuser()} (command line)", budget=budget, scope=scope)
    if as_json:
        print_json({"agent": agent.name, "reset": [describe_state(state) for state in done]})
        return
    for state in done:
        of = f" for {state.scope}" if state.scope else ""
        click.echo(f"{state.budget}{of} of agent '{agent.name}' begins anew; {state.used} of {state.limit} were used.")


def _show(book: BudgetBook, agents: Mapping[str, Agent], run: str, as_json: bool) -> None:
    found = {name: book.states(Payer(name, run), one.budgets) for name, one in sorted(agents.items())}
    only = next(iter(agents)) if len(agents) == 1 else ""
    if as_json:
        shown = [
            {"agent": name, "budgets": [describe_state(state) for state in states]} for name, states in found.items()
        ]
        resets = [{name: getattr(one, name) for name in one.__struct_fields__} for one in book.resets(only)]
        print_json({"agents": shown, "resets": resets})
        return
    rows = [[name, *_row(state)] for name, states in found.items() for state in states]
    print_table(["AGENT", "BUDGET", "FOR", "USED", "LIMIT", "", "BEGINS ANEW IN"], rows)


def _row(state: BudgetState) -> tuple[str, ...]:
    filled = round(state.share * _BAR)
    used = "" if state.used is None else str(state.used)
    bar = "" if state.used is None else "#" * filled + "." * (_BAR - filled)
    return state.budget, state.scope or state.run, used, str(state.limit), bar, _ending(state)


def _ending(state: BudgetState) -> str:
    if state.resets_at is None:
        return "each run" if state.used is None else "" if state.budget == "repeats" else "never"
    minutes, seconds = divmod(max(0, round(state.resets_at - time.time())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
