"""A call that a rule asks about waits for a person, for a bounded time.

Whoever answers first counts: somebody at the dashboard, the command line or the API, or, where the agent's
configuration says so, the person at the client. A yes is used once, and only if neither the rules nor the tool have
changed meanwhile. What is asked is ``gateway.wishes``; where it waits is ``storage``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from outfitter.basics import quote
from outfitter.errors import OutfitterError, StorageUnavailable
from outfitter.gateway.approvals import Approvals
from outfitter.gateway.asked import Asked, Next, told
from outfitter.gateway.faults import Rejected
from outfitter.gateway.limits import Turnstile
from outfitter.gateway.seats import SeatBook
from outfitter.gateway.views import as_object
from outfitter.gateway.wishes import can_be_asked, pin_of, policy_of, question_of, read_answer, wish_of
from outfitter.policy import Ask, Wish
from outfitter.upstream import Message

if TYPE_CHECKING:
    from outfitter.storage import Approval

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.2
_BEAT_SECONDS = 5.0
_STEP = 1e-6
"""How much the progress of waiting grows at a time: what the server reports later is more."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Approving:
    """Has a call wait until somebody has answered, or nobody has for too long."""

    approvals: Approvals
    seats: SeatBook
    turnstile: Turnstile

    async def __call__(self, asked: Asked, go_on: Next) -> Message:
        """Ask where a rule says so; every refusal is a result that the model can read."""
        if not isinstance(asked.decision, Ask):
            return await go_on(asked)
        if asked.item is None:
            raise TypeError("a call is approved after its tool is found")
        wish = wish_of(asked, asked.item, asked.decision.reason)
        seconds = min(self.approvals.wait, asked.view.seat.planned(asked.item.alias).definition.value.limits.total)
        try:
            found = await _off_loop(self.approvals.ask, wish, seconds)
        except StorageUnavailable as error:
            _log.warning("nobody can be asked: %s", error)
            found = None
        if found is None:
            return _required(asked, "nobody can be asked now; try again later")
        waiting = _Waiting(self, asked, wish, found)
        if found.state == "waiting":
            _log.warning(
                "%s of server '%s' waits for approval, for agent '%s': outfitter approvals approve %s",
                quote(wish.tool), wish.server, wish.agent, found.id,
            )  # fmt: skip
            await waiting.wait(seconds)
        if waiting.found.state != "used":
            return waiting.refusal(seconds)
        asked.verdict = waiting.found.verdict
        return await go_on(asked)

    async def stands(self, asked: Asked, wish: Wish) -> bool:
        """Whether the rules and the tool are what they were when the wish was made."""
        try:
            seat = await self.seats.arm(asked.view.seat.name)
            listing = await asked.view.listing("tools/list", asked.visitor)
        except OutfitterError:
            return False
        item = listing.items.get(asked.name)
        return item is not None and pin_of(item) == wish.pin and policy_of(seat.plan) == wish.policy


@dataclass(slots=True)
class _Waiting:
    """One call while it waits."""

    step: Approving
    asked: Asked
    wish: Wish
    found: Approval
    is_changed: bool = False
    is_put_away: bool = False
    _done: anyio.Event = field(default_factory=anyio.Event)

    async def wait(self, seconds: float) -> None:
        """Wait for the first answer; what nobody has answered can be answered later."""
        agent = self.asked.view.seat.plan.agent
        try:
            with anyio.move_on_after(seconds):
                async with anyio.create_task_group() as group:
                    group.start_soon(self._follow)
                    group.start_soon(self._beat)
                    if agent.client_approvals and can_be_asked(self.asked.visitor):
                        group.start_soon(self._ask_client)
                    await self._done.wait()
                    group.cancel_scope.cancel()
        finally:
            if self.found.state != "used":
                with anyio.CancelScope(shield=True), suppress(StorageUnavailable):
                    await _off_loop(self.step.approvals.leave, self.found.id)

    async def _follow(self) -> None:
        """Look for an answer that was given elsewhere, until there is one."""
        approvals, ident = self.step.approvals, self.found.id
        while not self.step.turnstile.is_closing:
            with suppress(StorageUnavailable):
                if approvals.look(ident) != "waiting":
                    await self._settle(partial(approvals.take, ident))
                    return
            await anyio.sleep(_LOOK_SECONDS)
        self._done.set()

    async def _beat(self) -> None:
        """Tell a client that asked for progress that the call is alive."""
        token = as_object(self.asked.params.get("_meta")).get("progressToken")
        beats = 0
        while token is not None:
            beats += 1
            params = {"progressToken": token, "progress": beats * _STEP, "message": "waits for a person's approval"}
            self.asked.visitor.channel.tell({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            await anyio.sleep(_BEAT_SECONDS)

    async def _ask_client(self) -> None:
        """Have the client ask its person; one that cannot leaves it to others."""
        visitor = self.asked.visitor
        try:
            said = await visitor.channel.ask("elicitation/create", question_of(self.wish))
        except Rejected:
            return
        verdict = read_answer(said, visitor.principal.token_id)
        if verdict is None:
            self.is_put_away = True
            self._done.set()
        else:
            await self._settle(partial(self.step.approvals.answer, self.found.id, verdict))

    async def _settle(self, use: Callable[[], Approval]) -> None:
        """Use the answer, if what it was given for still stands. Not broken off: a yes is used, or it is not."""
        with anyio.CancelScope(shield=True):
            if self._done.is_set():
                return
            self._done.set()
            if not await self.step.stands(self.asked, self.wish):
                self.is_changed = True
                return
            with suppress(OutfitterError):  # what cannot be used is no yes
                self.found = await _off_loop(use)

    def refusal(self, seconds: float) -> Message:
        """What the model is told of a call that was not approved."""
        asked, found = self.asked, self.found
        if found.state == "denied":
            return told(f"'{asked.name}' was {found.verdict}", code="denied", approval=found.id)
        if self.is_changed:
            return _required(asked, "the rules or the tool have changed meanwhile; call again", found.id)
        later = f"once it is approved (outfitter approvals approve {found.id}), call again with the same arguments"
        if self.is_put_away or not seconds:
            return _required(asked, later, found.id)
        text = f"{_asks(asked)}; nobody answered within {seconds:g} s; {later}"
        return told(text, code="approval_expired", approval=found.id)


def _asks(asked: Asked) -> str:
    reason = "" if asked.decision is None else asked.decision.reason
    return f"'{asked.name}' needs a person's approval: {reason}"


def _required(asked: Asked, what: str, ident: str = "") -> Message:
    details = {"approval": ident} if ident else {}
    return told(f"{_asks(asked)}; {what}", code="approval_required", **details)


async def _off_loop(job: Callable[..., T], *args: object) -> T:
    return await anyio.to_thread.run_sync(job, *args)
