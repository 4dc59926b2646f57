"""The command that plays a recording back: as a server on stdin and stdout or on loopback, or as a list.

Neighbour: ``record`` makes recordings.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import click

from outfitter.cli.between import header_option, read_headers, run_on_pipes
from outfitter.cli.pipes import lines_of_stdin, stop_when_told, write_all

if TYPE_CHECKING:
    from outfitter.formats import Cassette, CassetteEntry
    from outfitter.testing import LiveServer, Replayer

Opened: TypeAlias = "Callable[[], AbstractAsyncContextManager[Replayer]]"


@click.command("replay")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--http", "port", type=click.IntRange(0, 65535), help="Serve on this port of loopback; 0 for a free one.")
@click.option("--fallback", metavar="COMMAND|URL", help="Ask this server what was not recorded.")
@click.option("--add", "adds", is_flag=True, help="Add what --fallback answers to the recording.")
@header_option
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Add a line of JSON for each request; started again with the same file, the replay goes on behind it.",
)  # fmt: skip
@click.option("--list", "lists", is_flag=True, help="Say what is recorded, and serve nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text, with --list.")
def replay_command(file: Path, port: int | None, report: Path | None, lists: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - what is behind it
    r"""Be the MCP server that was recorded, in both protocol eras. Nothing is asked anywhere else.

    A request is answered when its method and parameters were recorded; where the recording has a mask, any value
    fits. The same request asked again gets the next recorded answer, and after the last one the last again. What was
    not recorded is an error that names it and the nearest that was, and exit code 1 at the end.

    \b
    Examples:
      outfitter replay time.jsonl
      outfitter replay time.jsonl --http 0
      outfitter replay time.jsonl --list
      outfitter replay time.jsonl --fallback 'uvx mcp-server-time' --add
    """
    from outfitter.testing import load_cassette, open_replayer

    if lists:
        _list(load_cassette(file), as_json=as_json)
        return
    live, before = _behind(**given), _given(report)
    opened = partial(open_replayer, file, partial(_hear, report), live, adds=given["adds"], given=before)
    counted: list[Replayer] = []
    if port is None:
        run_on_pipes(partial(_on_pipes, opened, counted))
    else:
        anyio.run(_on_http, opened, counted, file, port)
    _end(counted[0])


def _behind(fallback: str | None, adds: bool, headers: tuple[str, ...]) -> LiveServer | None:
    if fallback is not None:
        from outfitter.testing import fallback_server

        return fallback_server(fallback, read_headers(headers))
    if adds:
        raise click.UsageError("--add says what to do with the answers of --fallback; give both")
    return None


async def _on_pipes(opened: Opened, counted: list[Replayer], descriptor: int) -> None:
    from outfitter.testing import replay_lines

    async with opened() as replayer:
        counted.append(replayer)
        await replay_lines(replayer, lines_of_stdin(), partial(write_all, descriptor))


async def _on_http(opened: Opened, counted: list[Replayer], file: Path, port: int) -> None:
    from outfitter.testing import replay_http

    async with opened() as replayer, replay_http(replayer, port) as url:
        counted.append(replayer)
        click.echo(f"Replaying {file} at {url}")
        with anyio.CancelScope() as scope:
            await stop_when_told(scope)


def _given(report: Path | None) -> list[int]:
    """The lines of the recording that were answers before, as the report says."""
    if report is None or not report.exists():
        return []
    events = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    return [event["line"] for event in events if event["event"] == "answered"]


def _hear(report: Path | None, event: str, request: str, line: int) -> None:
    """Say on stderr what is unusual, and write everything down."""
    words = {
        "missed": "not recorded",
        "repeated": "asked more often than recorded, the last answer again",
        "live": "not recorded, asked the live server",
    }
    if event in words:
        click.echo(f"{words[event]}: {request}", err=True)
    if report is not None:
        with report.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"event": event, "request": request, "line": line}, ensure_ascii=False) + "\n")


def _end(replayer: Replayer) -> None:
    counts, unused = replayer.counts, replayer.playback.unused()
    told = ", ".join(f"{counts[event]} {event}" for event in ("answered", "repeated", "live", "missed"))
    click.echo(f"Replayed: {told}; {unused} recorded and not asked for.", err=True)
    if counts["missed"]:
        raise SystemExit(1)


def _list(cassette: Cassette, *, as_json: bool) -> None:
    from outfitter.cli.console import print_json, print_table

    rows = [_row(entry) for entry in cassette.entries]
    header = cassette.header
    if as_json:
        told = {"recorded": header.recorded, "server": header.server, "era": header.era, "cut": cassette.is_cut}
        print_json({**told, "entries": rows})
        return
    click.echo(f"Recorded {header.recorded} from {header.server}, {header.era} era.")
    if cassette.is_cut:
        click.echo("The last line was cut off and is left out.")
    columns = ("line", "request", "answer", "notices", "masked")
    print_table([column.upper() for column in columns], [[str(row[column]) for column in columns] for row in rows])


def _row(entry: CassetteEntry) -> dict[str, object]:
    from outfitter.formats import Exchange
    from outfitter.testing import entry_in_words

    row: dict[str, object] = {"line": entry.line, "request": entry_in_words(entry)}
    if not isinstance(entry, Exchange):
        return {**row, "answer": "notice", "notices": 0, "masked": 0}
    failed = entry.result is not None and entry.result.get("isError") is True
    answer = "error" if entry.error is not None else "failed" if failed else "result"
    return {**row, "answer": answer, "notices": len(entry.notices), "masked": len(entry.masked)}
