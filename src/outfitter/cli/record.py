"""Commands that stand between a client and a server: ``record`` keeps what they say, ``proxy`` spoils some of it.

Both speak MCP on stdin and stdout; what they have to say themselves goes to stderr. ``replay`` plays a recording.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outfitter.cli.between import header_option, read_headers, run_on_pipes
from outfitter.cli.pipes import lines_of_stdin, write_all

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from outfitter.testing import Existing, FaultReport

F = TypeVar("F", bound=Callable[..., object])
_REST = {"allow_interspersed_args": False}
"""What stands behind the first word of the command belongs to the command."""


def _complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion from the catalog; a recording itself needs none."""
    from outfitter.cli.console import complete_names

    return complete_names("agents")(ctx, param, incomplete)


def _server_options(command: F) -> F:
    """Give a command the ways to say which server is meant."""
    for option in (
        click.argument("command", nargs=-1, type=click.UNPROCESSED),
        header_option,
        click.option("--url", help="The address of a remote server."),
    ):
        command = option(command)
    return command


@click.command("record", context_settings=_REST)
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Where the recording goes; {time} in its name becomes the time of the start.",
)  # fmt: skip
@click.option("--agent", shell_complete=_complete_agents, help="Record this agent's endpoint of the gateway.")
@click.option("--overwrite", "existing", flag_value="overwrite", help="Replace a recording that is there.")
@click.option("--append", "existing", flag_value="append", help="Go on with a recording that is there.")
@click.option(
    "--hide", "hidden", multiple=True, metavar="VARIABLE", help="The value of this variable is a secret, too."
)
@_server_options
def record_command(
    out: Path, existing: Existing | None, headers: tuple[str, ...], **given: Any,  # noqa: ANN401 - the rest says which server
) -> None:  # fmt: skip
    r"""Stand between an MCP client and a server, and keep what they say in one file.

    A client's config names this command in the place of the server's own. Secrets are masked before anything is
    written: what stands under a name such as 'token', what a schema marks, what looks like a credential, the
    values of headers and of variables with such names, wherever they come again. The file is for its owner alone.

    \b
    Examples:
      outfitter record --out time.jsonl -- uvx mcp-server-time
      outfitter record --out github.jsonl --url https://example.com/mcp --header 'Authorization=Bearer ${TOKEN}'
      outfitter record --out 'tester-{time}.jsonl' --agent tester
    """
    from outfitter.testing import live_server, record_lines

    live = live_server(headers=read_headers(headers), **given)

    async def job(descriptor: int) -> None:
        write = partial(write_all, descriptor)
        file = await record_lines(live, out, lines_of_stdin(), write, existing=existing or "keep")
        told = f"Recorded {file.lines} lines from {live.shown} in {file.path}." if file.lines else "Nothing was said."
        click.echo(told, err=True)

    run_on_pipes(job)


@click.command("proxy", context_settings=_REST)
@click.option("--faults", default="", metavar="FAULTS", help="What goes wrong how often; see below.")
@click.option(
    "--report", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write what was done as JSON."
)
@_server_options
def proxy_command(
    faults: str, report: Path | None, url: str | None, headers: tuple[str, ...], command: tuple[str, ...]
) -> None:
    r"""Stand between an MCP client and a server, and have things go wrong on purpose.

    \b
    Faults, with a comma between them:
      delay=200ms, delay=50ms..2s   every request is held up, for as long or for a time in between
      drop=5%        the request never arrives, and nothing is answered
      lose=5%        the server does its work, and the answer is lost
      error=10%      a JSON-RPC error instead of the answer
      fail=10%       a tool result that says it failed
      disconnect=1%  the connection ends
      seed=7         the same seed strikes the same requests
      method=tools/call   only requests of this method

    At the end it says what it did; started again with the same report, it goes on with it. Requests that open a
    connection are spared.

    \b
    Examples:
      outfitter proxy --faults delay=200ms,drop=5%,error=10%,seed=7 -- uvx mcp-server-time
      outfitter proxy --faults disconnect=2%,seed=1 --report faults.json --url http://127.0.0.1:9000/mcp
    """
    from outfitter.testing import Dice, FaultRates, FaultReport, live_server, proxy_lines

    live = live_server(command=command, url=url, headers=read_headers(headers))
    before = None if report is None or not report.exists() else FaultReport.from_json(report.read_text("utf-8"))
    dice = Dice(FaultRates.parse(faults), before)

    async def job(descriptor: int) -> None:
        await proxy_lines(live, dice, lines_of_stdin(), partial(write_all, descriptor))

    try:
        run_on_pipes(job)
    finally:
        _tell(dice.report(), report)


def _tell(done: FaultReport, report: Path | None) -> None:
    sys.stderr.write(f"{done.in_words()}\n")
    if report is not None:
        draft = report.with_name(f".{report.name}.{os.getpid()}")
        draft.write_text(done.to_json() + "\n", encoding="utf-8")
        draft.replace(report)
