"""The tools that were seen, for the gateway of one catalog: where they are kept, and who hears of an approval.

What waits and why is ``gateway.sightings``; the files are ``storage.sightings``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from outfitter.app.news import read_news
from outfitter.app.settings import Settings
from outfitter.resolution import Notice, RunPlan

if TYPE_CHECKING:
    from outfitter.gateway import Desk
    from outfitter.storage import ToolSightings, WaitingTool

_LOOK_SECONDS = 1.0


def sightings_of(settings: Settings) -> ToolSightings:
    """The sightings of this catalog; another catalog's servers of the same name are others."""
    from outfitter.storage import ToolSightings

    catalog = hashlib.sha256(str(settings.catalog.resolve()).encode()).hexdigest()[:16]
    return ToolSightings(settings.state / "sightings" / catalog)


async def follow_sightings(seen: ToolSightings, desk: Desk) -> None:
    """Have lists made again when another process has approved something, until the gateway ends."""
    import anyio

    from outfitter.gateway import look_again

    while not desk.closing.is_set():
        with anyio.move_on_after(_LOOK_SECONDS):
            await desk.closing.wait()
        changed = seen.changed()
        if changed:
            look_again(desk.exchange, changed)


def waiting_here(settings: Settings) -> tuple[WaitingTool, ...]:
    """The tools that wait in the catalog that this machine's gateway serves; in that of the settings, if none runs."""
    told = read_news(settings.state / "gateway.json") or {}
    served = str(told.get("catalog") or "")
    return sightings_of(replace(settings, catalog=Path(served)) if served else settings).waiting()


def waiting_of(seen: ToolSightings, plan: RunPlan) -> Mapping[str, tuple[str, ...]]:
    """The tools that wait in a plan, by alias."""
    waits = [one for one in seen.waiting() if one.agent == plan.agent.name]
    found = {
        alias: tuple(one.tool for one in waits if one.server == planned.id and planned.allows(one.tool))
        for alias, planned in plan.servers.items()
    }
    return {alias: tools for alias, tools in found.items() if tools}


def with_waiting(plan: RunPlan, waiting: Mapping[str, tuple[str, ...]]) -> RunPlan:
    """The plan with a notice of what waits."""
    notices = [
        Notice(
            "tools_waiting",
            f"server '{alias}': {', '.join(tools)} appeared later under an exclude rule and waits for approval "
            f"(outfitter squad approve-tools {plan.servers[alias].id})",
        )
        for alias, tools in waiting.items()
    ]
    return replace(plan, notices=(*plan.notices, *notices)) if notices else plan
