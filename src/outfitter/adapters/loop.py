"""The tool loop for APIs that have none: ask the model, make its calls, tell it what came of them, until it answers.

One loop for all of them. It holds the limits between turns; within a call they are held by ``tools``. Parallel calls,
policies, events and undoing are those of ``outfit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio

from outfitter.adapters.conversation import Conversation, Offer, Turn
from outfitter.adapters.outfit import Outfit
from outfitter.adapters.response import PromptResponse, StopReason
from outfitter.adapters.tally import Tally
from outfitter.errors import InvalidArguments

T = TypeVar("T")
DEFAULT_ROUNDS = 50


async def converse(
    outfit: Outfit[T], conversation: Conversation, *, max_rounds: int = DEFAULT_ROUNDS
) -> PromptResponse[T]:
    """The response to the outfit's prompt; an OutfitterError when the provider fails."""
    return await _Talk(outfit, conversation, Tally(outfit.limits, max_rounds)).go()


@dataclass(slots=True)
class _Talk(Generic[T]):
    """One evaluation while it goes on."""

    outfit: Outfit[T]
    conversation: Conversation
    tally: Tally
    text: str = ""
    is_repaired: bool = False

    async def go(self) -> PromptResponse[T]:
        shown = self.outfit.rendered
        self.conversation.show(self.outfit.text)
        while True:
            turn = self._stop() or await self._ask()
            if isinstance(turn, PromptResponse):
                return turn
            if not turn.uses:
                if (ended := self._end(turn)) is not None:
                    return ended
            elif (stopped := self._stop()) is not None:
                return stopped
            else:
                self.conversation.answer(await self.outfit.call_all(turn.uses))
                if self.outfit.rendered is not shown:
                    shown = self.outfit.rendered
                    self.conversation.show(self.outfit.text)

    def _stop(self) -> PromptResponse[T] | None:
        """The response when nothing more may be begun."""
        reached = self.tally.reached()
        return None if reached is None else self._ended(*reached)

    async def _ask(self) -> Turn | PromptResponse[T]:
        outfit = self.outfit
        turn: Turn | None = None
        with anyio.move_on_after(outfit.limits.seconds):
            turn = await self.conversation.ask(Offer(outfit.tools(), outfit.rendered.structured_output))
        if turn is None:
            return self._ended(StopReason.DEADLINE, "the model did not answer before the deadline")
        self.tally.take(turn.usage)
        self.text = turn.text
        return turn

    def _end(self, turn: Turn) -> PromptResponse[T] | None:
        """The response to the model's last word; None when it is asked to mend it."""
        form = self.outfit.rendered.structured_output
        if turn.ending is not StopReason.DONE or form is None:
            return self._ended(turn.ending, turn.detail)
        try:
            return self._ended(StopReason.DONE, output=form.parse(turn.text))
        except InvalidArguments as fault:
            if self.is_repaired:
                return self._ended(StopReason.INVALID_OUTPUT, fault.message)
            self.is_repaired = True
            self.conversation.tell(f"{fault.message}. Answer again, with the JSON that was asked for and nothing else.")
            return None

    def _ended(self, reason: StopReason, detail: str = "", *, output: Any = None) -> PromptResponse[T]:  # noqa: ANN401 - the form's own type
        made, tally = tuple(self.outfit.made), self.tally
        return PromptResponse(self.text, output, made, tally.usage, tally.rounds, reason, detail)
