"""A conversation over an API that is told all of it with every request, as plain JSON.

What all such APIs share stands here; what one of them writes differently is its ``ApiForm``: ``chat`` has the one of
Chat Completions. Whoever sends it is given: ``send`` takes the body of a request and gives the body of the answer, or
raises an OutfitterError.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from outfitter.adapters.conversation import Offer, ToolAnswer, Turn
from outfitter.adapters.forms import Json
from outfitter.prompt import StructuredOutput
from outfitter.tools import Tool

Send: TypeAlias = Callable[[Json], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ApiForm:
    """How one API writes a conversation."""

    items: str
    """Under which name a request has the conversation."""
    answer: Callable[[ToolAnswer], Json]
    """What came of a call, as an item of the conversation."""
    function: Callable[[Tool[Any, Any]], Json]
    """A tool as it is offered."""
    output: Callable[[Json, StructuredOutput[Any]], Json]
    """What a request says more when the answer should have a form."""
    read: Callable[[Mapping[str, Any], str], tuple[list[Json], Turn]]
    """The items that a model of this name added, and its turn; Unavailable when it is no answer."""


@dataclass(slots=True)
class ApiConversation:
    """One conversation; ``params`` are added to every request."""

    model: str
    send: Send
    form: ApiForm
    params: Mapping[str, Any] = field(default_factory=dict[str, Any])
    items: list[Json] = field(default_factory=list[Json])
    _offered: tuple[Tool[Any, Any], ...] = ()
    _tools: list[Json] = field(default_factory=list[Json])

    def show(self, text: str) -> None:
        """Begin with this prompt, or have it in the place of the one it began with."""
        self.items[:1] = [{"role": "user", "content": text}]

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Add what came of the calls."""
        self.items += map(self.form.answer, answers)

    def tell(self, text: str) -> None:
        """Add a word from outside."""
        self.items.append({"role": "user", "content": text})

    async def ask(self, offer: Offer) -> Turn:
        """The model's next turn."""
        request: Json = {**self.params, "model": self.model, self.form.items: self.items}
        if offer.tools:
            request["tools"] = self._written(offer.tools)
        if offer.output is not None:
            request |= self.form.output(request, offer.output)
        added, turn = self.form.read(await self.send(request), self.model)
        self.items += added
        return turn

    def _written(self, tools: tuple[Tool[Any, Any], ...]) -> list[Json]:
        if tools != self._offered:
            self._offered, self._tools = tools, list(map(self.form.function, tools))
        return self._tools
