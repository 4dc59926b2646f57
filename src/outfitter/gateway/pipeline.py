"""The order in which a tool call is handled. Authentication and the plan come before: a call is asked of a view."""

from __future__ import annotations

from collections.abc import Sequence

from outfitter.gateway.asked import Asked, Next, Step
from outfitter.gateway.governing import Governing
from outfitter.gateway.limits import Turnstile
from outfitter.gateway.recorder import Recorder
from outfitter.gateway.seats import SeatBook
from outfitter.gateway.steps.agreeing import agree
from outfitter.gateway.steps.approving import Approving
from outfitter.gateway.steps.completing import complete
from outfitter.gateway.steps.judging import judge
from outfitter.gateway.steps.keeping import KeepingAside
from outfitter.gateway.steps.limiting import Limiting
from outfitter.gateway.steps.naming import find_tool
from outfitter.gateway.steps.reading import ReadingKept
from outfitter.gateway.steps.recording import Keeping, Recording
from outfitter.gateway.steps.sending import send
from outfitter.gateway.steps.spending import Spending
from outfitter.upstream import Message


def steps_of(
    recorder: Recorder, turnstile: Turnstile, keeping: Keeping, governing: Governing, seats: SeatBook
) -> tuple[Step, ...]:
    """Every step of a call, the first outermost: nothing happens that is not recorded."""
    spending = Spending(governing.accounts)
    return (
        Recording(recorder, keeping),
        Limiting(turnstile),
        ReadingKept(governing.shelf, spending),
        find_tool,
        agree,
        complete,
        judge,
        Approving(governing.approvals, seats, turnstile),
        spending,
        KeepingAside(governing.shelf),
        send,
    )


def compose(steps: Sequence[Step]) -> Next:
    """The steps as one caller, the first outermost."""
    chain: Next = _nowhere
    for step in reversed(steps):
        chain = _bind(step, chain)
    return chain


def _bind(step: Step, go_on: Next) -> Next:
    async def run(asked: Asked) -> Message:
        return await step(asked, go_on)

    return run


async def _nowhere(asked: Asked) -> Message:
    raise TypeError(f"no step answered '{asked.name}'")
