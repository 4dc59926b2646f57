"""The adapter kit: what every adapter is tried with. A new adapter is one more line in ``candidates``.

The same prompt, servers, policies and failures must give the same tools, denials and events, whatever the adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from outfitter.adapters import Adapter, PromptResponse
from outfitter.bridge import McpConnectionPool
from outfitter.calls import ToolInvoked
from outfitter.catalog import MCPServer
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate, SectionVisibility
from outfitter.session import Session
from outfitter.testing import ModelRequest, ModelTurn, Script, ScriptedModel, ScriptedTool, stdio_server
from outfitter.tools import Budget, Deadline, Tool
from outfitter.upstream import Patience, Pool

T = TypeVar("T")
MODEL_KEY = "sk-key-of-the-model"
DEAD = MCPServer.http("dead", "http://127.0.0.1:9/mcp")
_QUICK = Patience(tries=1, first_wait=0.02, longest_wait=0.05, cooldown=30)


def same(name: str) -> str:
    """The name as it is."""
    return name


@dataclass(frozen=True, slots=True)
class Candidate:
    """One adapter: how it is made for a scripted model, and how it shows the name of a tool to the model."""

    id: str
    name: str
    make: Callable[..., Adapter]
    shown: Callable[[str], str] = same


@dataclass(frozen=True, slots=True)
class Played(Generic[T]):
    """What an evaluation left behind."""

    response: PromptResponse[T]
    requests: tuple[ModelRequest, ...]
    session: Session

    @property
    def events(self) -> tuple[ToolInvoked, ...]:
        """The event of every call."""
        return self.session[ToolInvoked].all()


@dataclass(slots=True)
class Play:
    """An evaluation to be played: the turns of the model, the session and limits, options of the adapter."""

    candidate: Candidate
    turns: Sequence[ModelTurn]
    session: Session = field(default_factory=Session)
    deadline: Deadline | None = None
    budget: Budget | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    async def of(self, prompt: Prompt[T]) -> Played[T]:
        """What comes of this prompt."""
        with ScriptedModel(*self.turns) as model:
            adapter = self.candidate.make(model, **self.options)
            response = await adapter.aevaluate(prompt, session=self.session, deadline=self.deadline, budget=self.budget)
            return Played(response, tuple(model.requests), self.session)


async def play(candidate: Candidate, prompt: Prompt[T], *turns: ModelTurn, **options: Any) -> Played[T]:  # noqa: ANN401 - options of any adapter
    """What comes of the prompt when the model takes these turns."""
    return await Play(candidate, turns, options=options).of(prompt)


def prompt_of(*tools: Tool[Any, Any], mcps: Sequence[MCPServer] = (), **more: Any) -> Prompt[None]:  # noqa: ANN401 - options of a section
    """A prompt of one section with these tools and servers."""
    section = MarkdownSection(title="Task", key="task", template="Do it.", tools=tools, mcps=mcps, **more)
    return Prompt(PromptTemplate(ns="kit", key="prompt", sections=[section]))


def hidden(*mcps: MCPServer, tools: Sequence[Tool[Any, Any]] = ()) -> Prompt[None]:
    """A prompt whose section is only told of until the model opens it."""
    section = MarkdownSection(
        title="Numbers",
        key="numbers",
        template="Calculate with care.",
        summary="Calculations.",
        visibility=SectionVisibility.SUMMARY,
        mcps=mcps,
        tools=tools,
    )
    return Prompt(PromptTemplate(ns="kit", key="hidden", sections=[section]))


OPENING = {"section_keys": ["numbers"], "reason": "there is something to calculate"}


def scripted(name: str = "demo", *tools: str | ScriptedTool, **script: Any) -> MCPServer:  # noqa: ANN401 - any field of a script
    """A real server process with these of the built-in tools."""
    known = {tool.name: tool for tool in Script().tools}
    chosen = tuple(known[tool] if isinstance(tool, str) else tool for tool in tools)
    return stdio_server(Script(name, tools=chosen, **script))


def quick_pool() -> McpConnectionPool:
    """A pool that does not wait long for the dead."""
    return McpConnectionPool(make_pool=lambda: Pool(patience=_QUICK))
