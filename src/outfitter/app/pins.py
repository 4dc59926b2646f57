"""The pins of the gateway of one catalog: where they are kept, who hears of a decision, and what a plan says of them.

What waits and why is ``gateway.pins``; the file is ``storage.pins``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from outfitter.app.news import as_served
from outfitter.app.settings import Settings
from outfitter.policy import Held, PinState
from outfitter.resolution import RunPlan

if TYPE_CHECKING:
    from outfitter.gateway import Desk
    from outfitter.storage import PinBook, PinDesk, WaitingTool

_LOOK_SECONDS = 1.0


def pins_of(settings: Settings) -> PinBook:
    """The pins of this catalog; another catalog's servers of the same name are others."""
    from outfitter.storage import PinBook

    return PinBook.at(settings.of_catalog("pins").with_suffix(".db"))


def pin_desk(settings: Settings) -> PinDesk:
    """The same pins, as people look at them."""
    from outfitter.storage import PinDesk

    return PinDesk(pins_of(settings))


def pins_here(settings: Settings) -> PinBook:
    """The pins of the catalog that this machine's gateway serves; of that of the settings, if none runs."""
    return pins_of(as_served(settings))


async def follow_pins(book: PinBook, desk: Desk) -> None:
    """Have lists made again when another process has decided something, until the gateway ends."""
    import anyio

    while not desk.closing.is_set():
        with anyio.move_on_after(_LOOK_SECONDS):
            await desk.closing.wait()
        changed = book.changed()
        if changed:
            desk.look_again(changed)


def waiting_here(settings: Settings) -> tuple[WaitingTool, ...]:
    """The tools that appeared later and wait, in the catalog that this machine's gateway serves."""
    return pins_here(settings).late.waiting()


def pending_here(settings: Settings) -> int:
    """How many definitions wait for a person in that catalog."""
    return sum(pin.state is PinState.PENDING for pin in pins_here(settings).pins())


def waiting_of(book: PinBook, plan: RunPlan) -> Mapping[str, Mapping[str, Held]]:
    """The tools that are held back in a plan, by alias; under no name, the instructions of a server."""
    from outfitter.storage import PinDesk

    return PinDesk(book).waiting_of(plan)
