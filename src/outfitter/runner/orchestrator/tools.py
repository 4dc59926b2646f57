"""The tools of the orchestrator: their names, what each takes, and how a call becomes an answer.

What an agent did wrong is an answer that it can read. Neighbours: ``agents`` does what is asked, ``server`` puts the
tools on the wire.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from outfitter.errors import Invalid, OutfitterError, Refused
from outfitter.runner.orchestrator.agents import (
    Agents,
    GetResult,
    GetStatus,
    ListAgents,
    ResumeAgent,
    StartAgent,
    StopAgent,
)
from outfitter.runner.orchestrator.client import Json
from outfitter.runner.orchestrator.family import Member
from outfitter.runner.orchestrator.runs import Waiter
from outfitter.runner.texts import harmless

A = TypeVar("A", bound=msgspec.Struct)
Handle = Callable[[Agents, Member, Any, Waiter], Awaitable[Json]]
_LONGEST_ERROR = 4000


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool: what it takes, who does it, and whether it only looks."""

    about: str
    takes: type[msgspec.Struct]
    handle: Handle
    only_looks: bool = False

    @property
    def schema(self) -> Json:
        """The JSON Schema of its arguments."""
        return msgspec.json.schema(self.takes)["$defs"][self.takes.__name__]

    async def call(self, agents: Agents, caller: Member, arguments: Mapping[str, object], waiter: Waiter) -> Json:
        """The answer; Invalid says what is wrong with the arguments."""
        try:
            asked = msgspec.convert(dict(arguments), self.takes)
        except msgspec.ValidationError as error:
            raise Invalid(f"the arguments do not fit: {error}", hint="see the tool's schema") from None
        return await self.handle(agents, caller, asked, waiter)


def _entry(
    about: str,
    takes: type[A],
    handle: Callable[[Agents, Member, A, Waiter], Awaitable[Json]],
    *,
    only_looks: bool = False,
) -> ToolEntry:
    return ToolEntry(about, takes, handle, only_looks)


TOOLS: Mapping[str, ToolEntry] = {
    "list_agents": _entry(
        "Which agents there are, and what each is for.",
        ListAgents, lambda agents, caller, _asked, _waiter: agents.list(caller), only_looks=True,
    ),
    "start_agent": _entry(
        "Start an agent on a task of its own. It gets no more than you have.",
        StartAgent, lambda agents, caller, asked, waiter: agents.start(caller, asked, waiter),
    ),
    "resume_agent": _entry(
        "Go on with an agent that you started and that has ended: it remembers what was said.",
        ResumeAgent, lambda agents, caller, asked, waiter: agents.resume(caller, asked, waiter),
    ),
    "get_agent_status": _entry(
        "How an agent that you started is doing.",
        GetStatus, lambda agents, caller, asked, _waiter: agents.status(caller, asked), only_looks=True,
    ),
    "get_agent_result": _entry(
        "What an agent that you started has come to.",
        GetResult, lambda agents, caller, asked, waiter: agents.result(caller, asked, waiter), only_looks=True,
    ),
    "stop_agent": _entry(
        "Stop an agent that you started, and everything that it has started.",
        StopAgent, lambda agents, caller, asked, _waiter: agents.stop(caller, asked),
    ),
}  # fmt: skip


def told(error: OutfitterError) -> str:
    """An error as an agent reads it."""
    text = f"[{error.code}] {error.message}" + (f" ({error.hint})" if error.hint else "")
    if isinstance(error, Refused):
        text = "\n".join([text, *(f"- [{problem.code}] {problem.message}" for problem in error.problems)])
    return harmless(text)[:_LONGEST_ERROR]
