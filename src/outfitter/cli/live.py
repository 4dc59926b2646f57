"""Commands that really connect: which servers answer, which tools they have, and one call by hand."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import click

from outfitter.app import (
    Finding,
    LiveTools,
    Outfit,
    Verdict,
    arm_plan,
    counted_here,
    make_pool,
    note_live,
    pins_of,
    plan_of,
    program_register,
)
from outfitter.catalog import Agent, Catalog, JsonValue, ServerRef
from outfitter.cli.console import (
    complete_names,
    environment,
    json_option,
    load,
    make_console,
    print_json,
    print_table,
    settings,
    visible,
)
from outfitter.cli.tokens import print_weights, weigh_live
from outfitter.errors import Invalid, NeedsAuth, OutfitterError, Unavailable
from outfitter.resolution import resolve
from outfitter.upstream import Connection, Link, Message, State, connect_all

if TYPE_CHECKING:
    from rich.status import Status

T = TypeVar("T")


def _outfit(name: str) -> Outfit:
    return arm_plan(plan_of(name, load()), environment(), settings())


def _in_pool(outfit: Outfit, job: Callable[[dict[str, Connection | OutfitterError]], Awaitable[T]]) -> T:
    """Connect every server of an outfit, do the job, close everything."""

    async def main(status: Status) -> T:
        waiting = set(outfit.servers)

        def tell(alias: str, _found: object) -> None:
            waiting.discard(alias)
            status.update(f"connecting {', '.join(sorted(waiting))}" if waiting else "")

        async with make_pool(settings()) as pool:
            found = await connect_all(pool, outfit.servers, tell)
            status.stop()
            return await job(found)

    from rich.console import Console

    with Console(stderr=True).status(f"connecting {', '.join(sorted(outfit.servers))}") as status:
        return anyio.run(main, status)


@click.command("connect")
@click.argument("name", metavar="AGENT|SERVER", shell_complete=complete_names("agents"))
@json_option
def connect_command(name: str, as_json: bool) -> None:
    r"""Connect every server of an agent, or one server, and say how it went; exit code 1 when one failed.

    \b
    Examples:
      outfitter connect tester
      outfitter connect github --json
    """
    outfit = _outfit(name)
    rows = _in_pool(outfit, _describe_all)
    if as_json:
        print_json(rows)
    else:
        columns = ("server", "state", "era", "version", "tools", "milliseconds", "error")
        print_table([column.upper() for column in columns], [[str(row[c] or "") for c in columns] for row in rows])
    if any(row["error"] for row in rows):
        click.get_current_context().exit(1)


async def _describe_all(found: dict[str, Connection | OutfitterError]) -> list[dict[str, JsonValue]]:
    return [await _describe(alias, connection) for alias, connection in found.items()]


def _state_of(error: OutfitterError) -> State:
    """The state of a server that is not connected: tried in vain, refused, or not tried at all."""
    if isinstance(error, NeedsAuth):
        return State.NEEDS_AUTH
    return State.DOWN if isinstance(error, Unavailable) else State.CONFIGURED


async def _describe(alias: str, connection: Connection | OutfitterError) -> dict[str, JsonValue]:
    row: dict[str, JsonValue] = dict.fromkeys(("server", "state", "era", "version", "tools", "milliseconds", "error"))
    row["server"] = alias
    if isinstance(connection, OutfitterError):
        return {**row, "state": _state_of(connection).value, "error": str(connection)}
    start = anyio.current_time()
    try:
        tools = await connection.use(lambda link: link.list_tools())
    except OutfitterError as error:
        return {**row, "state": connection.health.state.value, "error": str(error)}
    agreed = connection.agreement
    return {
        **row,
        "state": connection.health.state.value,
        "era": agreed.era.value if agreed else None,
        "version": agreed.version if agreed else None,
        "tools": len(tools),
        "milliseconds": round((anyio.current_time() - start) * 1000, 1),
    }


def examine_live(catalog: Catalog) -> tuple[Finding, ...]:
    """One finding for each server that some agent uses: whether it answers."""
    used = [name for name in catalog.servers if catalog.users_of(name)]
    if not used:
        return ()
    plan = resolve(Agent("doctor", servers={name: ServerRef(name) for name in used}), catalog)
    rows = _in_pool(arm_plan(plan, environment(), settings()), _describe_all)
    return tuple(_finding(row) for row in rows)


def _finding(row: dict[str, JsonValue]) -> Finding:
    if row["error"]:
        return Finding("live", str(row["server"]), Verdict.FAIL, str(row["error"]))
    words = f"{row['state']}, {row['era']} {row['version']}, {row['tools']} tools, {row['milliseconds']} ms"
    return Finding("live", str(row["server"]), Verdict.OK, words)


async def _list_live(outfit: Outfit, only: str | None, found: dict[str, Connection | OutfitterError]) -> LiveTools:
    listed: dict[str, list[Message]] = {}
    for alias, connection in found.items():
        if only not in {None, alias}:
            continue
        if isinstance(connection, OutfitterError):
            click.echo(f"note: server '{alias}' is left out: {connection}", err=True)
            continue
        listed[alias] = await connection.use(lambda link: link.list_tools())
        if connection.agreement is not None:
            note_live(settings(), outfit.plan, alias, listed[alias], connection.agreement)
    shown = cast("dict[str, list[dict[str, JsonValue]]]", listed)
    return LiveTools.of(outfit.plan, shown, pins_of(settings()))


@click.command("approve")
@click.argument("server", shell_complete=complete_names("servers"))
@json_option
def approve_command(server: str, as_json: bool) -> None:
    r"""Approve the program of a stdio server as it is now, after it was replaced or is found elsewhere.

    \b
    Examples:
      outfitter approve filesystem
    """
    load().server(server)
    forgotten = program_register(settings()).approve(server)
    if as_json:
        print_json({"server": server, "forgotten": forgotten})
    else:
        click.echo(f"The next start of '{server}' is recorded as approved ({forgotten} older records forgotten).")


@click.command("tools")
@click.argument("name", metavar="AGENT|SERVER", shell_complete=complete_names("agents"))
@click.option("--server", help="Only this server of the agent.")
@click.option("--tokens", is_flag=True, help="About how many tokens each definition takes, the heaviest first.")
@json_option
def tools_command(name: str, server: str | None, tokens: bool, as_json: bool) -> None:
    r"""List the tools that an agent really gets, under the names a model sees.

    \b
    Examples:
      outfitter tools tester
      outfitter tools tester --tokens
      outfitter tools tester --server github --json
    """
    outfit = _outfit(name)

    async def job(found: dict[str, Connection | OutfitterError]) -> LiveTools:
        return await _list_live(outfit, server, found)

    live = _in_pool(outfit, job)
    if tokens:
        print_weights(weigh_live(outfit.plan, live), as_json=as_json)
        return
    if as_json:
        shown = live.names.shown
        print_json([{"shown": shown[key], "server": key.server, "tool": tool} for key, tool in live.tools.items()])
        return
    rows = [
        (live.names.shown[key], key.server, str(tool.get("description") or "").partition("\n")[0])
        for key, tool in live.tools.items()
    ]
    print_table(("TOOL", "SERVER", "DESCRIPTION"), rows)


@click.command("call")
@click.argument("name", metavar="AGENT|SERVER", shell_complete=complete_names("agents"))
@click.argument("tool")
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--json", "given", metavar="ARGS", help="The arguments as one JSON object.")
@click.option("--raw", is_flag=True, help="Print the whole result as JSON.")
def call_command(name: str, tool: str, pairs: tuple[str, ...], given: str | None, raw: bool) -> None:
    r"""Call one tool as the agent would: the same filters, rules, budgets and headers. Values are JSON, or else text.

    \b
    Examples:
      outfitter call tester filesystem_read_file path=README.md
      outfitter call tester github/get_issue --json '{"number": 7}'
    """
    arguments = _arguments(pairs, given)
    outfit = _outfit(name)

    async def job(found: dict[str, Connection | OutfitterError]) -> Message:
        live = await _list_live(outfit, None, found)
        key = live.find(tool)
        sent = live.check(key, arguments)
        connection = found[key.server]
        if isinstance(connection, OutfitterError):
            raise connection
        with counted_here(settings(), outfit.plan.agent, key, sent) as charge:
            result = await connection.use(partial(_call, tool=key.tool, arguments=cast("Message", sent)))
            charge(result)
        return result

    result = _in_pool(outfit, job)
    if raw:
        print_json(result)
    else:
        click.echo(_text_of(result))
    if result.get("isError"):
        click.get_current_context().exit(1)


async def _call(link: Link, tool: str, arguments: Message) -> Message:
    from rich.progress import Progress

    console = make_console()
    console.stderr = True
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(visible(tool), total=None)

        def show(params: Message) -> None:
            total, done, words = params.get("total"), params.get("progress"), params.get("message")
            progress.update(
                task,
                total=float(total) if isinstance(total, int | float) else None,
                completed=float(done) if isinstance(done, int | float) else 0,
                description=visible(str(words or tool)),
            )

        return await link.call_tool(tool, arguments, on_progress=show)


def _arguments(pairs: tuple[str, ...], given: str | None) -> Message:
    arguments: Any = _parse(given, "--json") if given is not None else {}
    if not isinstance(arguments, dict):
        raise Invalid("the arguments must be a JSON object", hint='for example --json \'{"path": "README.md"}\'')
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Invalid(f"'{visible(pair)}' is not KEY=VALUE")
        try:
            arguments[key] = json.loads(value)
        except ValueError:
            arguments[key] = value
    return cast("Message", arguments)


def _parse(text: str, where: str) -> Any:  # noqa: ANN401 - JSON is what it is
    try:
        return json.loads(text)
    except ValueError as error:
        raise Invalid(f"not JSON: {error}", where=where) from None


def _text_of(result: Message) -> str:
    content = result.get("content")
    parts = [
        visible(str(part.get("text"))) if part.get("type") == "text" else f"[{part.get('type')}]"
        for part in cast("list[Message]", content if isinstance(content, list) else [])
    ]
    return "\n".join(parts) if parts else json.dumps(result, indent=2, ensure_ascii=False)
