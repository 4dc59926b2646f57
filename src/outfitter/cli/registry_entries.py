"""The command groups of the registry's entries: servers, capabilities, agents. One set of commands, three kinds.

``list`` and ``show`` are about the catalog folder where there is no registry; the rest needs a registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from outfitter.cli import inspect
from outfitter.cli.registry_bringing import import_servers, probe_server
from outfitter.cli.registry_changing import (
    approve_executor,
    approve_server,
    make_add,
    make_edit,
    make_rm,
    make_rollback,
)
from outfitter.cli.registry_documents import Document, public_pair, read_secret
from outfitter.cli.registry_reading import make_history, make_list, make_show, make_users, resolve_agent
from outfitter.cli.registry_words import AGENTS, CAPABILITIES, SERVERS, Words

Options = Sequence[Callable[..., Any]]
_DESCRIPTION = click.option("--description", help="What it is for.")
_USE = click.option(
    "--use",
    "uses",
    metavar="[ALIAS=]SERVER",
    multiple=True,
    help="A server of the registry, under its own name or an alias.",
)
_SERVER_OPTIONS: Options = (
    click.option("--url", help="Where a remote server is."),
    click.option("--command", help="The program of a stdio server; for admins."),
    click.option("--arg", "args", multiple=True, metavar="ARGUMENT", help="An argument of the program."),
    click.option("--type", type=click.Choice(["http", "sse", "stdio"]), help="How it is spoken to."),
    click.option("--title", metavar="NAME", help="Its name for people."),
    _DESCRIPTION,
    click.option("--header", "headers", metavar="NAME=VALUE", multiple=True,
                 help="A default header; ${VAR} is filled in later."),
    click.option("--secret-header", "secrets", metavar="NAME[=env:VAR]", multiple=True,
                 help="A header that is kept sealed; asked for, or from a variable."),
    click.option("--required-header", "required", metavar="NAME", multiple=True,
                 help="A header that every run must have."),
)  # fmt: skip
_CAPABILITY_OPTIONS: Options = (_DESCRIPTION, click.option("--text", help="What agents with it are told."), _USE)
_AGENT_OPTIONS: Options = (
    _DESCRIPTION,
    click.option("--role", help="What it does in the team."),
    click.option("--system-prompt", help="What it is told."),
    click.option("--capability", "capabilities", metavar="NAME", multiple=True, help="A capability that it has."),
    _USE,
)


def _server_document(given: dict[str, Any]) -> Document:
    headers = dict(public_pair(item, "--header") for item in given["headers"])
    schema: Document = {name: {"required": True} for name in given["required"]}
    for item in given["secrets"]:
        name, _, reference = item.partition("=")
        headers[name] = read_secret(name, reference)
        schema.setdefault(name, {})["sensitive"] = True
    named = {"name": given["title"], "header_schema": schema, "default_headers": headers, "args": list(given["args"])}
    return _filled({**named, **{key: given[key] for key in ("description", "type", "url", "command")}})


def _capability_document(given: dict[str, Any]) -> Document:
    return _filled({"description": given["description"], "text": given["text"], "mcpServers": _uses(given)})


def _agent_document(given: dict[str, Any]) -> Document:
    kept = {key: given[key] for key in ("description", "role", "system_prompt")}
    return _filled({**kept, "capabilities": list(given["capabilities"]), "mcpServers": _uses(given)})


def _uses(given: dict[str, Any]) -> Document:
    pairs = (item.rpartition("=") for item in given["uses"])
    return {alias or ref: {"ref": ref} for alias, _, ref in pairs}


def _filled(document: Document) -> Document:
    return {key: value for key, value in document.items() if value}


def _group(words: Words, folder: tuple[click.Command, click.Command], *more: click.Command) -> click.Group:
    group = click.Group(words.command, help=_ABOUT[words.command])
    list_, show = folder
    commands = (
        make_list(words, list_), make_show(words, show), *more, make_edit(words), make_rm(words),
        make_users(words), make_history(words), make_rollback(words),
    )  # fmt: skip
    for command in commands:
        group.add_command(command)
    return group


_ABOUT = {
    "servers": "The MCP servers of the registry: list, show, add, import, probe, edit, approve, remove, undo.",
    "capabilities": "What several agents share: list, show, add, edit, remove, undo.",
    "agents": "The agents of the team: list, show, resolve, add, edit, approve, remove, undo.",
}
servers_command = _group(
    SERVERS,
    (inspect.list_servers, inspect.show_server),
    make_add(
        SERVERS, _SERVER_OPTIONS, _server_document,
        "context-store --url http://localhost:9501/mcp --header X-Context-Namespace=default",
    ),
    approve_server,
    import_servers,
    probe_server,
)  # fmt: skip
capabilities_command = _group(
    CAPABILITIES,
    (inspect.list_capabilities, inspect.show_capability),
    make_add(CAPABILITIES, _CAPABILITY_OPTIONS, _capability_document, "knowledge --use context-store"),
)
agents_command = _group(
    AGENTS,
    (inspect.list_agents, inspect.show_agent),
    make_add(AGENTS, _AGENT_OPTIONS, _agent_document, "tester --use context-store --use jira=atlassian"),
    resolve_agent,
    approve_executor,
)
