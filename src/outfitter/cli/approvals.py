"""Commands about calls that wait for a person: list, show, approve, deny.

They work on the state folder of this machine, whichever way its gateway was started; with ``--server`` on a service.
"""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias

import click

from outfitter.app import approvals_of
from outfitter.cli.console import complete_names, json_option, print_json, print_table, settings, visible
from outfitter.cli.registry_place import open_client, place_options, server_url
from outfitter.policy import Verdict
from outfitter.storage import ApprovalStore

_LOOK_SECONDS = 0.5
_LONGEST = 200
Shown: TypeAlias = dict[str, Any]


class Place(Protocol):
    """Where calls wait."""

    def list(self, state: str, agent: str | None) -> list[Shown]:
        """Those in a state, or all; newest first."""
        ...

    def get(self, ident: str) -> Shown:
        """One of them."""
        ...

    def decide(self, ident: str, *, is_yes: bool) -> Shown:
        """Say yes or no."""
        ...


class _Here:
    """The state folder of this machine."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store

    def list(self, state: str, agent: str | None) -> list[Shown]:
        states: Any = [state] if state else []
        return [one.to_json() for one in self._store.list(states, agent)]

    def get(self, ident: str) -> Shown:
        return self._store.get(ident).to_json()

    def decide(self, ident: str, *, is_yes: bool) -> Shown:
        return self._store.decide(ident, Verdict(is_yes, getpass.getuser(), "command line")).to_json()


class _There:
    """A service."""

    def __init__(self, client: Any) -> None:  # noqa: ANN401 - loaded when it is used
        self._client = client

    def list(self, state: str, agent: str | None) -> list[Shown]:
        wanted = {name: value for name, value in (("state", state), ("agent", agent)) if value}
        return self._client.request("GET", "/approvals", query=wanted).json["items"]

    def get(self, ident: str) -> Shown:
        return self._client.request("GET", _path(ident)).json

    def decide(self, ident: str, *, is_yes: bool) -> Shown:
        return self._client.request("POST", f"{_path(ident)}/{'approve' if is_yes else 'deny'}").json


def _path(ident: str) -> str:
    from outfitter.cli.api_client import path_of

    return path_of("approvals", ident)


@contextmanager
def _place() -> Generator[Place]:
    if server_url() is not None:
        with open_client() as client:
            yield _There(client)
        return
    store = approvals_of(settings())
    try:
        yield _Here(store)
    finally:
        store.close()


@click.group("approvals")
def approvals_command() -> None:
    """Approve or refuse calls that a rule asks a person about."""


@approvals_command.command("list")
@click.option("--all", "show_all", is_flag=True, help="Also those that were answered, used or have expired.")
@click.option("--agent", help="Only calls of this agent.", shell_complete=complete_names("agents"))
@click.option("--watch", is_flag=True, help="Show them as they come; Ctrl-C ends it. With --json one object per line.")
@place_options
@json_option
def list_approvals(show_all: bool, agent: str | None, watch: bool, as_json: bool) -> None:
    r"""List the calls that wait for a person.

    \b
    Examples:
      outfitter approvals list
      outfitter approvals list --watch
      outfitter approvals list --all --agent tester --json
    """
    state = "" if show_all else "waiting"
    with _place() as place:
        if watch:
            _watch(place, state, agent, as_json=as_json)
            return
        found = place.list(state, agent)
    if as_json:
        print_json(found)
        return
    titles = ["ID", "STATE", "AGENT", "CALL", "REASON", "LEFT", "ANSWERED BY"]
    print_table(titles, [[one["id"], one["state"], one["agent"], *_cells(one)] for one in found])


def _cells(one: Shown) -> list[str]:
    left = f"{one['seconds_left']:.0f} s" if one["state"] in {"waiting", "approved", "denied"} else ""
    return [_call(one), one["reason"], left, _answered(one)]


def _call(one: Shown) -> str:
    text = json.dumps(one["arguments"], ensure_ascii=False)
    return f"{one['server']}/{one['tool']} {text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}"


def _answered(one: Shown) -> str:
    return f"{one['decided_by']} ({one['decided_where']})" if one["decided_by"] else ""


def _watch(place: Place, state: str, agent: str | None, *, as_json: bool) -> None:
    seen: set[tuple[str, str]] = set()
    try:
        while True:
            for one in reversed(place.list(state, agent)):
                if (one["id"], one["state"]) not in seen:
                    seen.add((one["id"], one["state"]))
                    click.echo(json.dumps(one, ensure_ascii=False) if as_json else visible(_line(one)))
            time.sleep(_LOOK_SECONDS)
    except KeyboardInterrupt:
        return


def _line(one: Shown) -> str:
    told = f"{one['id']}  {one['state']}  {one['agent']}  {_call(one)}  {one['reason']}"
    return told.replace("\n", " ")


@approvals_command.command("show")
@click.argument("ident", metavar="ID")
@place_options
@json_option
def show_approval(ident: str, as_json: bool) -> None:
    r"""Show one call: who asks, with which arguments (secrets are masked), and what was said of it.

    \b
    Examples:
      outfitter approvals show 3f9a1c0b7d21
    """
    with _place() as place:
        one = place.get(ident)
    if as_json:
        print_json(one)
        return
    for name, value in one.items():
        if value not in ("", None):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            click.echo(visible(f"{name.replace('_', ' ')}: {text}"))


@approvals_command.command("approve")
@click.argument("idents", metavar="ID...", nargs=-1, required=True)
@place_options
@json_option
def approve_calls(idents: tuple[str, ...], as_json: bool) -> None:
    r"""Let calls be made, each once and with the arguments that are shown.

    \b
    Examples:
      outfitter approvals approve 3f9a1c0b7d21
    """
    _decide(idents, is_yes=True, as_json=as_json)


@approvals_command.command("deny")
@click.argument("idents", metavar="ID...", nargs=-1, required=True)
@place_options
@json_option
def deny_calls(idents: tuple[str, ...], as_json: bool) -> None:
    r"""Refuse calls; the model is told that a person said no.

    \b
    Examples:
      outfitter approvals deny 3f9a1c0b7d21
    """
    _decide(idents, is_yes=False, as_json=as_json)


def _decide(idents: tuple[str, ...], *, is_yes: bool, as_json: bool) -> None:
    with _place() as place:
        decided = [place.decide(ident, is_yes=is_yes) for ident in idents]
    if as_json:
        print_json(decided)
        return
    for one in decided:
        word = "Approved" if is_yes else "Refused"
        later = "" if one["waits_until"] else f"; it counts for the next equal call, for {one['seconds_left']:.0f} s"
        click.echo(visible(f"{word} {one['server']}/{one['tool']} of agent '{one['agent']}'{later}."))
