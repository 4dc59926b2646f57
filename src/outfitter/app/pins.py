"""The pins of the gateway of one catalog: where they are kept, who hears of a decision, and what a plan says of them.

What waits and why is ``gateway.pins``; the file is ``storage.pins``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from outfitter.app.news import read_news
from outfitter.app.settings import Settings
from outfitter.policy import Held, PinState, Why
from outfitter.resolution import Notice, RunPlan, approval_of, pin_key

if TYPE_CHECKING:
    from outfitter.gateway import Desk
    from outfitter.storage import PinBook, PinDesk, WaitingTool

_LOOK_SECONDS = 1.0


def pins_of(settings: Settings) -> PinBook:
    """The pins of this catalog; another catalog's servers of the same name are others."""
    from outfitter.storage import PinBook

    catalog = hashlib.sha256(str(settings.catalog.resolve()).encode()).hexdigest()[:16]
    return PinBook.at(settings.state / "pins" / f"{catalog}.db")


def pin_desk(settings: Settings) -> PinDesk:
    """The same pins, as people look at them."""
    from outfitter.storage import PinDesk

    return PinDesk(pins_of(settings))


def pins_here(settings: Settings) -> PinBook:
    """The pins of the catalog that this machine's gateway serves; of that of the settings, if none runs."""
    told = read_news(settings.state / "gateway.json") or {}
    served = str(told.get("catalog") or "")
    return pins_of(replace(settings, catalog=Path(served)) if served else settings)


async def follow_pins(book: PinBook, desk: Desk) -> None:
    """Have lists made again when another process has decided something, until the gateway ends."""
    import anyio

    from outfitter.gateway import look_again

    while not desk.closing.is_set():
        with anyio.move_on_after(_LOOK_SECONDS):
            await desk.closing.wait()
        changed = book.changed()
        if changed:
            look_again(desk.exchange, changed)


def waiting_here(settings: Settings) -> tuple[WaitingTool, ...]:
    """The tools that appeared later and wait, in the catalog that this machine's gateway serves."""
    return pins_here(settings).late.waiting()


def waiting_of(book: PinBook, plan: RunPlan) -> Mapping[str, Mapping[str, Held]]:
    """The tools that are held back in a plan, by alias; under no name, the instructions of a server."""
    late, found = book.late.waiting(), dict[str, Mapping[str, Held]]()
    for alias, planned in plan.servers.items():
        key, agent = pin_key(planned, plan.agent.name), plan.agent.name
        held = {one.tool: Held(one.tool, Why.LATE) for one in late if (one.server, one.agent) == (key, agent)}
        for pin in book.pins(key):
            if pin.state is not PinState.PINNED:
                held[pin.name] = Held(pin.name, pin.why, pin.was, pin.state is PinState.REJECTED)
        found[alias] = {name: one for name, one in held.items() if not name or planned.allows(name)}
    return {alias: held for alias, held in found.items() if held}


def with_waiting(plan: RunPlan, waiting: Mapping[str, Mapping[str, Held]]) -> RunPlan:
    """The plan with a notice of what waits."""
    notices = [_notice(plan, alias, one) for alias, held in waiting.items() for one in held.values()]
    return replace(plan, notices=(*plan.notices, *notices)) if notices else plan


def _notice(plan: RunPlan, alias: str, held: Held) -> Notice:
    what, how = held.name or "what it says of itself", approval_of(pin_key(plan.servers[alias], plan.agent.name), held)
    told = f"server '{alias}': {what} waits for approval: {held.reason} ({how})"
    return Notice("tools_waiting" if held.why is Why.LATE else "pin_mismatch", told)
