"""How far the budgets of agents are used, and beginning one anew before its time.

What the gateways of this machine have counted, for the agents of its registry or of its files; with ``--server`` what a
service has.
"""

from __future__ import annotations

import getpass
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import click

from outfitter.app import agents_here, budgets_here, has_registry
from outfitter.basics import suggest
from outfitter.cli.console import complete_names, json_option, print_json, print_table, settings
from outfitter.cli.registry_place import open_client, place_options, server_url
from outfitter.errors import UnknownAgent
from outfitter.policy import Payer, describe_state

if TYPE_CHECKING:
    from outfitter.catalog import Agent
    from outfitter.storage import BudgetBook

_BAR = 20
Shown: TypeAlias = dict[str, Any]


class Place(Protocol):
    """Where calls are counted."""

    def look(self, agent: str | None, run: str) -> Shown:
        """The agents that have budgets, and the newest resets."""
        ...

    def reset(self, agent: str, run: str, budget: str, scope: str | None) -> list[Shown]:
        """Begin budgets anew; those that were, as they were."""
        ...


class _Here:
    """The state folder of this machine."""

    def __init__(self, book: BudgetBook) -> None:
        self._book, self._agents = book, agents_here(settings())

    def look(self, agent: str | None, run: str) -> Shown:
        agents = self._agents.values() if agent is None else [self._find(agent)]
        shown = [
            {"agent": one.name, "budgets": [describe_state(state) for state in states]}
            for one in sorted(agents, key=lambda one: one.name)
            if (states := self._book.states(Payer(one.name, run), one.budgets))
        ]
        resets = [
            {name: getattr(one, name) for name in one.__struct_fields__} for one in self._book.resets(agent or "")
        ]
        return {"agents": shown, "resets": resets}

    def reset(self, agent: str, run: str, budget: str, scope: str | None) -> list[Shown]:
        by, found = f"{getpass.getuser()} (command line)", self._find(agent)
        done = self._book.reset(Payer(agent, run), found.budgets, by=by, budget=budget, scope=scope)
        return [describe_state(state) for state in done]

    def _find(self, name: str) -> Agent:
        if name not in self._agents:
            raise UnknownAgent(f"no agent '{name}'", hint=suggest(name, self._agents))
        return self._agents[name]


class _There:
    """A registry: a service's, or this machine's."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - loaded when it is used
        self._client = client

    def look(self, agent: str | None, run: str) -> Shown:
        query = {name: value for name, value in (("agent", agent), ("run", run)) if value}
        found = self._client.request("GET", "/budgets", query=query).json
        if agent is not None and not found["items"]:
            self._client.request("GET", _path(agent))
        return {"agents": found["items"], "resets": found["resets"]}

    def reset(self, agent: str, run: str, budget: str, scope: str | None) -> list[Shown]:
        wanted = {"budget": budget, "scope": scope, "run": run}
        return self._client.request("POST", f"{_path(agent)}/budgets/reset", body=wanted).json["reset"]


def _path(agent: str) -> str:
    from outfitter.cli.api_client import path_of

    return path_of("agents", agent)


@contextmanager
def _place() -> Generator[Place]:
    if server_url() is not None or has_registry(settings()):
        with open_client() as client:
            yield _There(client)
        return
    book = budgets_here(settings())
    try:
        yield _Here(book)
    finally:
        book.close()


@click.command("budgets")
@click.argument("agent", required=False, shell_complete=complete_names("agents"))
@click.option("--run", default="", metavar="ID", help="With the budgets of this run.")
@click.option("--reset", metavar="BUDGET", help="Begin this budget of AGENT anew, or 'all'; it is written down.")
@click.option("--for", "scope", metavar="SCOPE", help="With --reset: the one for this server, or SERVER/TOOL.")
@place_options
@json_option
def budgets_command(agent: str | None, run: str, reset: str | None, scope: str | None, as_json: bool) -> None:
    r"""Say how far the budgets of AGENT are used, or those of every agent that has any.

    It looks at what the gateways of this machine have counted, or at a service's. Times are UTC.

    \b
    Examples:
      outfitter budgets
      outfitter budgets coder --run run-1
      outfitter budgets coder --reset calls_per_day
      outfitter budgets coder --reset calls_per_hour --for github
    """
    if reset is not None and agent is None:
        raise click.UsageError("name the agent whose budget begins anew")
    with _place() as place:
        if reset is None or agent is None:
            _show(place.look(agent, run), as_json)
        else:
            _tell_reset(agent, place.reset(agent, run, "" if reset == "all" else reset, scope), as_json)


def _tell_reset(agent: str, done: list[Shown], as_json: bool) -> None:
    if as_json:
        print_json({"agent": agent, "reset": done})
        return
    for one in done:
        of = f" for {one['scope']}" if one["scope"] else ""
        click.echo(f"{one['budget']}{of} of agent '{agent}' begins anew; {one['used']} of {one['limit']} were used.")


def _show(found: Shown, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [[agent["agent"], *_row(one)] for agent in found["agents"] for one in agent["budgets"]]
    print_table(["AGENT", "BUDGET", "FOR", "USED", "LIMIT", "", "BEGINS ANEW IN"], rows)


def _row(one: Shown) -> tuple[str, ...]:
    used, bar = "", ""
    if one["used"] is not None:
        filled = round(min(1.0, one["used"] / one["limit"] if one["limit"] else 1.0) * _BAR)
        used, bar = str(one["used"]), "#" * filled + "." * (_BAR - filled)
    return one["budget"], one["scope"] or one["run"], used, str(one["limit"]), bar, _ending(one)


def _ending(one: Shown) -> str:
    if one["resets_at"] is None:
        return "each run" if one["used"] is None else "" if one["budget"] == "repeats" else "never"
    left = datetime.fromisoformat(one["resets_at"]) - datetime.now(UTC)
    minutes, seconds = divmod(max(0, round(left.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"
