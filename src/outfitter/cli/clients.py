"""Point another program at an agent's endpoint: its configuration, printed or merged into its file."""

from __future__ import annotations

from pathlib import Path

import click

from outfitter.basics import suggest
from outfitter.catalog import MCPServer, ServerEntry
from outfitter.cli.console import complete_names, json_option, load, print_json, visible
from outfitter.errors import UnknownAgent, UnknownAlias
from outfitter.formats import MAX_BYTES, Client, write_client
from outfitter.storage import read_bytes, write_files

_CLIENTS = {
    "claude": Client.CLAUDE_CODE,
    "vscode": Client.VSCODE,
    "cursor": Client.CURSOR,
    "copilot": Client.COPILOT_CLI,
}
_TOKEN = "Bearer ${OUTFITTER_TOKEN}"  # noqa: S105 - a reference, not a token


@click.command("connect-client")
@click.argument("client", type=click.Choice(list(_CLIENTS)))
@click.option("--agent", required=True, shell_complete=complete_names("agents"), help="Whose endpoint it is to use.")
@click.option("--server", help="Only this server of the agent, under its own tool names.")
@click.option("--url", default="http://127.0.0.1:8700", show_default=True, help="Where the gateway is.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Merge into this file.")
@json_option
def connect_client_command(
    client: str, agent: str, server: str | None, url: str, output: Path | None, as_json: bool
) -> None:
    r"""Print the configuration that points a client at an agent's endpoint, or merge it into the client's file.

    The token is not written: the client reads it from the variable OUTFITTER_TOKEN.

    \b
    Examples:
      outfitter connect-client claude --agent tester -o .mcp.json
      outfitter connect-client vscode --agent tester -o .vscode/mcp.json
      outfitter connect-client cursor --agent lead --server github
    """
    _check(agent, server)
    endpoint = f"{url.rstrip('/')}/mcp/{agent}" + (f"/{server}" if server else "")
    name = f"outfitter-{agent}{f'-{server}' if server else ''}".lower()[:64]
    entry = ServerEntry(MCPServer.http(name, endpoint), default_headers={"Authorization": _TOKEN})
    existing = read_bytes(output, MAX_BYTES).decode() if output is not None and output.exists() else None
    written = write_client(_CLIENTS[client], [entry], existing)
    if output is not None:
        write_files({output: written.text})
    if as_json:
        print_json({"client": client, "endpoint": endpoint, "output": str(output or ""), "text": written.text})
        return
    for note in written.notes:
        click.echo(f"note: {visible(note)}", err=True)
    click.echo(f"Wrote {output}." if output else written.text, nl=output is not None)


def _check(agent: str, server: str | None) -> None:
    from outfitter.resolution import resolve

    catalog = load()
    if agent not in catalog.agents:
        raise UnknownAgent(f"no agent '{agent}'", hint=suggest(agent, catalog.agents))
    servers = resolve(agent, catalog).servers
    if server is not None and server not in servers:
        raise UnknownAlias(f"agent '{agent}' has no server '{server}'", hint=suggest(server, servers))
