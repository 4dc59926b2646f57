"""Runs executed by a model or an agent SDK: a program of our own that speaks as every other executor's does.

It is a process of its own, so that stopping a run, its time limit and the death of the runner end an SDK and everything
that the SDK started, like any other program. Neighbours: ``program`` is what runs there, ``command`` starts it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import anyio.to_thread
import msgspec

from outfitter.errors import OutfitterError
from outfitter.runner.executors.command import CommandExecutor, document_of
from outfitter.runner.orders import Ended, WorkOrder
from outfitter.runner.ports import Report

PROMPTED = ("claude-code", "copilot", "litellm", "openai")
"""The types of executor that are ours."""
_MODULE = "outfitter.runner.executors.program"


@dataclass(frozen=True, slots=True)
class PromptedExecutor:
    """Evaluates the prompt with the model that the agent's document names."""

    command: CommandExecutor

    async def execute(self, order: WorkOrder, report: Report) -> Ended:
        """How the run ended."""
        spec = order.agent.executor
        if spec is None:
            return Ended.failed("no_executor", f"agent '{order.agent.name}' does not say how it is executed")
        own = msgspec.structs.replace(spec, command=sys.executable, args=("-P", "-m", _MODULE))
        try:
            launch = await anyio.to_thread.run_sync(self.command.launch, own, order.agent.name)
        except OutfitterError as error:
            return Ended.failed(error.code, str(error))
        document = {
            **document_of(order),
            "executor": {"type": spec.type, "model": spec.model},
            "seconds": order.seconds,
        }
        return await self.command.run(order, launch, document, report)
