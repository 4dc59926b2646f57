"""The command for clients that only start commands: an agent's endpoint on stdin and stdout."""

from __future__ import annotations

import os
from functools import partial

import anyio
import click

from outfitter.app import Settings, open_endpoint
from outfitter.cli.console import complete_names, settings
from outfitter.cli.pipes import lines_of_stdin, own_stdout, stop_when_told, write_all


@click.command("gateway")
@click.option("--stdio", "is_stdio", is_flag=True, required=True, help="Speak on stdin and stdout.")
@click.option("--agent", required=True, shell_complete=complete_names("agents"), help="Whose endpoint it is.")
@click.option("--server", help="This server alone, under its own names.")
@click.option("--files", "uses_files", is_flag=True, help="Serve the catalog folder, also where there is a registry.")
def gateway_command(is_stdio: bool, agent: str, server: str | None, uses_files: bool) -> None:
    r"""Be an agent's MCP endpoint for the client that starts this command.

    Where 'outfitter up' has made a registry, its agents are served; else those of the catalog folder.

    \b
    Examples:
      outfitter gateway --stdio --agent tester
      outfitter gateway --stdio --agent tester --server github
      outfitter gateway --stdio --agent tester --files
    """
    del is_stdio
    run = partial(_run, settings(), agent, server, uses_files=uses_files, out=own_stdout())
    anyio.run(run, backend_options={"use_uvloop": True})


async def _run(chosen: Settings, agent: str, server: str | None, *, uses_files: bool, out: int) -> None:
    from outfitter.gateway import StdioFront

    async with (
        open_endpoint(chosen, os.environ, uses_files=uses_files) as desk,
        anyio.create_task_group() as group,
    ):
        await desk.open_view(agent, server)
        group.start_soon(stop_when_told, group.cancel_scope)
        await StdioFront(desk, agent, server).serve(lines_of_stdin(), partial(write_all, out))
        group.cancel_scope.cancel()
