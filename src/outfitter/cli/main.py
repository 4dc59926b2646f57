"""The top of the command line: which commands there are, and what an error becomes at this door.

Commands are imported when they run, so that ``outfitter --help`` loads click and nothing else.
"""

from __future__ import annotations

import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import NoReturn

import click

from outfitter.errors import (
    Conflict,
    Forbidden,
    InUse,
    Invalid,
    McpError,
    NotFound,
    OutfitterError,
    Refused,
    Unavailable,
)

COMMANDS = {
    "init": ("setup", "Make a catalog folder."),
    "demo": ("setup", "Write the demo catalog and explain what each of its agents gets."),
    "validate": ("inspect", "Check every file, ref, header and filter of the catalog."),
    "servers": ("registry_entries", "The MCP servers: list, show, add, edit, approve, remove, undo."),
    "capabilities": ("registry_entries", "What several agents share: list, show, add, edit, remove, undo."),
    "agents": ("registry_entries", "The agents: list, show, resolve, add, edit, approve, remove, undo."),
    "resolve": ("registry_trying", "Say what a change of the registry would do to an agent; nothing is stored."),
    "run": ("run", "Have an agent do something, and follow it to its end."),
    "runner": ("runner", "Execute runs of agents on this machine."),
    "runs": ("registry_runs", "Start, list, show, follow and stop runs of agents."),
    "runners": ("registry_runs", "List those who execute runs, and which of them are alive."),
    "sessions": ("registry_runs", "List sessions, and show one with those it started."),
    "tokens": ("registry_tokens", "Issue, list and revoke the tokens of the registry's API."),
    "keys": ("keys", "Look after the keys that seal the registry's sensitive literals."),
    "audit": ("registry_audit", "Look at recorded calls, and at who changed the registry."),
    "events": ("registry_audit", "Show what happens in the registry as it happens."),
    "api": ("registry_trying", "Print a page of the registry's API as it is."),
    "squad": ("squad", "A repository's squad: init, check, export, import, approve-tools, serve."),
    "apply": ("catalog_sync", "Make the registry like a catalog folder: the plan first, then all or nothing."),
    "drift": ("catalog_sync", "Say where the registry and a catalog folder differ."),
    "explain": ("explain", "Say what an agent gets, and where each value comes from."),
    "why-not": ("explain", "Say why an agent lacks a tool, a header or a server."),
    "connect": ("live", "Connect an agent's servers and say how it went."),
    "tools": ("live", "List the tools that an agent really gets."),
    "call": ("live", "Call one tool as an agent would."),
    "up": ("serving", "Run the gateway: one MCP endpoint for every agent."),
    "gateway": ("gateway_stdio", "Be an agent's endpoint on stdin and stdout, for clients that start commands."),
    "connect-client": ("clients", "Point Claude Code, VS Code, Cursor or Copilot at an agent's endpoint."),
    "token": ("token", "Issue, list and revoke the tokens that let agents in."),
    "budgets": ("budgets", "Say how far the budgets of agents are used, and begin one anew."),
    "status": ("watching", "Say whether the gateway runs, and how each server does."),
    "tail": ("watching", "Show calls as they happen."),
    "approvals": ("approvals", "Approve or refuse calls that a rule asks a person about."),
    "results": ("results", "Results that were too large for a model and are kept here: list, show, clear."),
    "approve": ("live", "Approve the program of a stdio server as it is now."),
    "pins": ("pins", "What was approved of the servers' tools, and what changed and waits."),
    "add": ("add", "Add a known server (trello, postgres, slack, ...) and give it to the right agents."),
    "registry": ("official", "Search a registry of the official MCP API, and add what it offers."),
    "import": ("exchange", "Bring servers from another program's file into the catalog."),
    "export": ("exchange", "Write servers in another program's format."),
    "migrate": ("exchange", "Turn inline servers into registry entries with refs."),
    "record": ("record", "Stand between a client and a server, and keep what they say in a file."),
    "replay": ("replay", "Be the MCP server that was recorded; nothing is asked anywhere else."),
    "proxy": ("record", "Stand between a client and a server, and have things go wrong on purpose."),
    "doctor": ("doctor", "Check variables, commands, URLs and secrets on this machine."),
    "completion": ("setup", "Print the completion script of a shell."),
}

SECTIONS = {
    "Begin": ("init", "demo", "doctor", "completion"),
    "What exists": ("servers", "capabilities", "agents", "validate", "explain", "why-not"),
    "The team's registry": (
        "resolve",
        "tokens",
        "keys",
        "audit",
        "events",
        "api",
        "apply",
        "drift",
    ),
    "Squads": ("squad",),
    "Running agents": ("run", "runner", "runs", "runners", "sessions"),
    "Try it": ("connect", "tools", "call", "approve"),
    "The gateway": (
        "up",
        "gateway",
        "connect-client",
        "token",
        "status",
        "tail",
        "results",
        "approvals",
        "pins",
        "budgets",
    ),
    "Tests": ("record", "replay", "proxy"),
    "Exchange": ("add", "registry", "import", "export", "migrate"),
}
"""How the help sorts the commands; one that is in no section stands at the end."""

EXIT_CODES: dict[type[OutfitterError], int] = {
    OutfitterError: 1,
    Invalid: 3,
    NotFound: 4,
    Conflict: 5,
    Forbidden: 6,
    Unavailable: 7,
    McpError: 7,
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for; their help lines are known before."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the module that holds the command."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"outfitter.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_") + "_command")
        _keep_lines(command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - same
        """Write the table without importing anything."""
        sorted_in = {name for names in SECTIONS.values() for name in names}
        others = {"More": tuple(name for name in COMMANDS if name not in sorted_in)}
        widest = max(map(len, COMMANDS))
        for title, names in {**SECTIONS, **others}.items():
            rows = [(name.ljust(widest), COMMANDS[name][1]) for name in names if name in COMMANDS]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest a command when the name is a near miss."""
        from outfitter.basics import suggest

        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command '{args[0]}' ({suggest(args[0], COMMANDS)})")
        return super().resolve_command(ctx, args)


def _keep_lines(command: click.Command) -> None:
    """Have click keep the lines of the examples: docstrings are raw, so its mark stands there in two characters."""
    command.help = None if command.help is None else command.help.replace("\\b\n", "\b\n")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _keep_lines(inner)


_EPILOG = """\b
Examples:
  outfitter demo                           write the demo catalog and explain it
  outfitter explain tester                 what the tester gets, and why
  outfitter why-not tester merge_pull_request
  outfitter import .mcp.json --dry-run     what an import would bring

Exit codes: 0 done, 1 problems found, 2 wrong usage, 3 invalid input, 4 not found,
5 conflict, 6 forbidden, 7 unavailable."""


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.option(
    "--catalog",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="OUTFITTER_CATALOG",
    help="The catalog folder (default: ./outfitter).",
)
@click.version_option(metadata.version("outfitter"), prog_name="outfitter")
@click.pass_context
def cli(ctx: click.Context, catalog: Path | None) -> None:
    """Fit out every agent with exactly the MCP servers, tools and headers it should have."""
    ctx.obj = catalog


def exit_code(error: OutfitterError) -> int:
    """The exit code of an error, by the branch of the tree it is on."""
    if isinstance(error, Refused) and len({exit_code(problem) for problem in error.problems}) == 1:
        return exit_code(error.problems[0])
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def error_json(error: OutfitterError) -> dict[str, object]:
    """An error as JSON values."""
    shown: dict[str, object] = {"code": error.code, "message": error.message, "where": error.where, "hint": error.hint}
    if isinstance(error, Refused):
        shown["problems"] = [error_json(problem) for problem in error.problems]
    if isinstance(error, InUse):
        shown["users"] = [{"kind": user.kind, "id": user.id} for user in error.users]
    return shown


def main() -> NoReturn:
    """Run the command line; every error Outfitter raises on purpose becomes a message and an exit code."""
    try:
        code = cli.main(prog_name="outfitter", standalone_mode=False)
    except OutfitterError as error:
        _report(error)
        sys.exit(exit_code(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped; nothing more was done.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(code if isinstance(code, int) else 0)


def _report(error: OutfitterError) -> None:
    if "--json" in sys.argv:
        import json

        click.echo(json.dumps({"error": error_json(error)}, indent=2, ensure_ascii=False))
    else:
        click.echo(f"Error [{error.code}] {error}", err=True)
