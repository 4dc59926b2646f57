"""Commands that tell what happened: recorded calls, changes of the registry, events as they come."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from outfitter.cli.api_client import ApiClient
from outfitter.cli.console import visible
from outfitter.cli.registry_place import complete_entries, open_client, place_options

_LOOK_SECONDS = 1.0
_SPAN = re.compile(r"(\d{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_BEYOND = 2**53
_lines_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
_follow_option = click.option("--follow", is_flag=True, help="Go on with new ones as they come; Ctrl-C ends it.")
_since_option = click.option("--since", metavar="WHEN", help="Not older than this: 15m, 2h, 7d or 2030-01-31T12:00Z.")


@click.group("audit")
def audit_command() -> None:
    """Look at recorded calls, and at who changed the registry."""


@audit_command.command("calls")
@click.option("--agent", help="Only calls of this agent.", shell_complete=complete_entries("agents"))
@click.option("--server-alias", metavar="ALIAS", help="Only calls of this server.")
@click.option("--tool", help="Only calls of this tool.")
@click.option("--decision", help="Only calls that rules judged so: allow, deny or ask.")
@click.option("--outcome", help="Only calls that ended so, such as denied.")
@click.option("--run", metavar="ID", help="Only calls of this run.")
@_since_option
@click.option("--until", metavar="WHEN", help="Older than this, written as for --since.")
@click.option("--limit", type=click.IntRange(min=1), help="So many at most.")
@_follow_option
@place_options
@_lines_option
def calls_command(*, limit: int | None, follow: bool, as_json: bool, **given: str | None) -> None:
    r"""Show recorded calls, oldest first.

    \b
    Examples:
      outfitter audit calls --agent tester --outcome denied --since 7d
      outfitter audit calls --follow --json --server URL
    """
    wanted = {"server" if name == "server_alias" else name: value for name, value in given.items()}
    moments = {name: _moment(given[name], name) for name in ("since", "until")}
    query: dict[str, object] = {**wanted, **moments}
    with open_client() as client:
        _print_each(_calls(client, query, limit, is_endless=follow), None if as_json else _call_line)


def _calls(
    client: ApiClient, query: dict[str, object], limit: int | None, *, is_endless: bool
) -> Iterator[dict[str, Any]]:
    cursor, left = "", limit
    while left is None or left > 0:
        page = client.request("GET", "/calls", query={**query, "cursor": cursor, "limit": min(left or 500, 500)}).json
        yield from page["items"]
        left = None if left is None else left - len(page["items"])
        last = str(page["items"][-1]["seq"]) if page["items"] else cursor
        cursor = page["next_cursor"] or last
        if page["next_cursor"] is None:
            if not is_endless:
                return
            time.sleep(_LOOK_SECONDS)


def _call_line(call: dict[str, Any]) -> str:
    moment = datetime.fromtimestamp(call["started_at"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    where = f"{call['server'] or '-'}/{call['tool'] or call['shown']}"
    told = f"{moment}  {call['agent']}  {where}  {call['outcome']}  {call['duration'] * 1000:.1f} ms"
    why = call["rule"] or call["code"]
    return _one_line(f"{told}  {why}" if why else told)


@audit_command.command("changes")
@click.option("--entry", metavar="KIND/NAME", help="Only of this entry, such as agents/tester.")
@click.option("--who", help="Only changes that this author made.")
@_since_option
@_follow_option
@place_options
@_lines_option
def changes_command(entry: str | None, who: str | None, since: str | None, follow: bool, as_json: bool) -> None:
    r"""Show who changed which entry, oldest first; 'history' of an entry shows from what to what.

    \b
    Examples:
      outfitter audit changes --since 7d
      outfitter audit changes --entry agents/tester --follow --server URL
    """
    moment = _moment(since)
    first = None if moment is None else datetime.fromisoformat(moment)

    def is_wanted(change: dict[str, Any]) -> bool:
        return entry in {None, f"{change['kind']}/{change['id']}"} and who in {None, change["who"]}

    with open_client() as client:
        found = _changes(client, first, is_endless=follow)
        _print_each(filter(is_wanted, found), None if as_json else _change_line)


def _changes(client: ApiClient, first: datetime | None, *, is_endless: bool) -> Iterator[dict[str, Any]]:
    """Changes since a moment, oldest first; without an end those to come too."""
    seen = 0
    while True:
        new = list(_newer(client, seen, first))
        yield from reversed(new)
        seen = new[0]["seq"] if new else seen
        if not is_endless:
            return
        time.sleep(_LOOK_SECONDS)


def _newer(client: ApiClient, seen: int, first: datetime | None) -> Iterator[dict[str, Any]]:
    """Changes after a number and a moment, as the API has them: newest first."""
    for change in client.items("/changes"):
        if change["seq"] <= seen or (first is not None and datetime.fromisoformat(change["at"]) < first):
            return
        yield change


def _change_line(change: dict[str, Any]) -> str:
    place = f"{change['kind']}/{change['id']}"
    told = f"{change['action']}  {place}  version {change['version']}  who {change['who']}"
    return _one_line(f"{change['seq']}  {change['at']}  {told}")


@click.command("events")
@click.option(
    "--after", metavar="SEQ", type=click.IntRange(min=0), help="Begin after this event; 0 begins with the oldest."
)
@click.option("--follow/--no-follow", default=True, show_default=True, help="Go on with new events as they come.")
@place_options
@_lines_option
def events_command(after: int | None, follow: bool, as_json: bool) -> None:
    r"""Show what happens in the registry as it happens; Ctrl-C ends it.

    \b
    Examples:
      outfitter events --server URL
      outfitter events --after 0 --no-follow --json
    """
    with open_client() as client:
        _print_each(_events(client, after, is_endless=follow), None if as_json else _event_line)


def _print_each(items: Iterator[dict[str, Any]], line: Callable[[dict[str, Any]], str] | None) -> None:
    """Each as a line, or as JSON without one, until they end or somebody has seen enough."""
    try:
        for item in items:
            click.echo(json.dumps(item, ensure_ascii=False) if line is None else line(item))
    except KeyboardInterrupt:
        return


def _events(client: ApiClient, after: int | None, *, is_endless: bool) -> Iterator[dict[str, Any]]:
    """Events after a number; without an end those to come too. A break in the stream is gone over."""
    newest = None if is_endless else _newest(client)
    if newest is not None and (after is None or after >= newest):
        return
    while True:
        for event in client.events({"after": after}):
            if event.kind == "gap":
                click.echo(f"(events before {event.data['oldest']} are no longer kept)", err=True)
                continue
            yield event.data
            after = event.data["seq"]
            if newest is not None and after is not None and after >= newest:
                return
        time.sleep(_LOOK_SECONDS)


def _newest(client: ApiClient) -> int:
    """The number of the newest event: who asks for what lies beyond it is told at once."""
    stream = client.events({"after": _BEYOND})
    return next((int(event.data["newest"]) for event in stream if event.kind == "gap"), 0)


def _event_line(event: dict[str, Any]) -> str:
    told = "  ".join(f"{name} {value}" for name, value in event["data"].items() if value is not None)
    return _one_line(f"{event['seq']}  {event['at']}  {event['kind']}  {event['subject']}  {told}")


def _one_line(text: str) -> str:
    return visible(text).replace("\n", " ")


def _moment(text: str | None, name: str = "since") -> str | None:
    """A moment as the API reads it."""
    if text is None:
        return None
    span = _SPAN.fullmatch(text)
    try:
        moment = (
            datetime.now(UTC) - timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else datetime.fromisoformat(text)
        )
    except ValueError:
        raise click.UsageError(f"--{name} is 15m, 2h, 7d or a moment such as 2030-01-31T12:00Z") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()
