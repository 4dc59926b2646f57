"""What every adapter is: something that evaluates a prompt with a model, blocking or awaited."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar, TypeVar

from outfitter.adapters.response import PromptResponse
from outfitter.errors import Invalid
from outfitter.prompt import Prompt
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline

T = TypeVar("T")


class Adapter(ABC):
    """One way to a model. ``name``, such as ``openai``, stands in the events of the prompt's own tools."""

    __slots__ = ()
    name: ClassVar[str]

    def evaluate(
        self,
        prompt: Prompt[T],
        *,
        session: Session | None = None,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[T]:
        """The response to the prompt."""
        self.check_blocking()
        return run_blocking(partial(self.aevaluate, prompt, session=session, deadline=deadline, budget=budget))

    def check_blocking(self) -> None:
        """Refuse to be waited for, where that cannot be."""
        return

    @abstractmethod
    async def aevaluate(
        self,
        prompt: Prompt[T],
        *,
        session: Session | None = None,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[T]:
        """The response to the prompt, awaited; cancelling it cancels its calls and lets its servers go."""
        ...


def run_blocking(job: Callable[[], Awaitable[T]]) -> T:
    """The job's result in a loop of its own; Invalid where a loop is running already."""

    async def run() -> T:
        return await job()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Not by anyio: where sniffio is installed, a thread with a copied context looks to it like one with a loop.
        return asyncio.run(run())
    raise Invalid("a blocking evaluation was asked for in a running loop", hint="await aevaluate(…)")
