"""The command that serves the team's state on stdin and stdout. Neighbour: ``squad`` has the group it stands in."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from outfitter.app import Settings, open_team
from outfitter.basics import quote, suggest
from outfitter.cli.console import settings
from outfitter.errors import UnknownAgent

if TYPE_CHECKING:
    from outfitter.squad import TeamState, Viewer


@click.command("serve")
@click.option(
    "--dir", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A .squad folder, or a repository with one (default: that of this folder).",
)  # fmt: skip
@click.option("--agent", metavar="NAME", help="Serve what this agent may see; without it, everything.")
@click.option(
    "--issues", "has_issues", is_flag=True,
    help="Ask the GitHub or Azure DevOps server of the squad file for the backlog, with this environment.",
)  # fmt: skip
def serve_command(folder: Path | None, agent: str | None, has_issues: bool) -> None:
    r"""Be an MCP server with the team's state, for the client that starts this command. It only reads.

    The roster, decisions, backlog, agents and metrics are resources squad://..., and squad_status and
    squad_decision_search are tools. Without a .squad folder here or above, and without --dir, it serves Outfitter's
    own state: agents, runs, recorded calls and changes of the registry, or the agents of the catalog folder. Which of
    them it is stands on stderr and in the server's instructions.

    \b
    Examples:
      outfitter squad serve
      outfitter squad serve --dir ../shop
      outfitter squad serve --agent tester
      outfitter squad serve --issues
    """
    # What reads stdin cannot be interrupted, and there is nothing to put in order: Ctrl-C ends it as it is.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    environment = os.environ if has_issues else None
    anyio.run(partial(_serve, settings(), folder, agent, environment), backend_options={"use_uvloop": True})


async def _serve(
    chosen: Settings, folder: Path | None, agent: str | None, environment: Mapping[str, str] | None
) -> None:
    from outfitter.squad import Viewer, serve_stdio

    async with open_team(chosen, folder, environment) as team:
        viewer = Viewer(agent)
        whose = "everything" if agent is None else f"what {quote(agent)} may see"
        await _check(team.state, viewer)
        click.echo(f"{team.told} Serving {whose} on stdin and stdout.", err=True)
        await serve_stdio(team.state, viewer, team.told)


async def _check(state: TeamState, viewer: Viewer) -> None:
    """Refuse an agent that is not of the team; where nobody can be read, it is served as a stranger."""
    from outfitter.squad import member_of

    members = (await state.roster()).value
    if viewer.agent is not None and members and member_of(viewer, members) is None:
        hint = suggest(viewer.agent, [member.id for member in members])
        raise UnknownAgent(f"there is no agent {quote(viewer.agent)} in the team", where=state.name, hint=hint)
