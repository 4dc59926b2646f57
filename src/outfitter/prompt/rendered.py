"""What rendering gives: the text, and everything an agent loop needs to act on it. It does not change any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from outfitter.catalog import MCPServer
from outfitter.policy import ToolPolicy
from outfitter.prompt.external import ExternalToolBundle
from outfitter.prompt.output import StructuredOutput
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline, ResourceRegistry, SearchedTool, Tool, Toolbox, ToolContext

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class PromptDescriptor:
    """Which prompt it was: its namespace and key, and the hash of each section's text for overrides to compare."""

    ns: str
    key: str
    sections: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class RenderedPrompt(Generic[T_co]):
    """A prompt ready for a model. ``mcps`` and ``tools`` come from sections that are shown whole, in reading order."""

    text: str
    tools: tuple[Tool[Any, Any], ...] = ()
    mcps: tuple[MCPServer, ...] = ()
    mcp_tools: tuple[ExternalToolBundle, ...] = ()
    """What the servers offer, where rendering was told to ask them."""
    policies: tuple[ToolPolicy, ...] = ()
    resources: Mapping[type, object] = field(default_factory=dict[type, object], repr=False)
    structured_output: StructuredOutput[T_co] | None = None
    deadline: Deadline | None = None
    budget: Budget | BudgetTracker | None = None
    """A tracker goes on counting when the prompt is rendered again; a bare budget begins anew with each toolbox."""
    descriptor: PromptDescriptor | None = None
    summarised: tuple[str, ...] = ()
    """The sections that are only told of."""
    searched: tuple[SearchedTool, ...] = ()
    """The tools that are found by search instead of being listed."""
    searched_servers: frozenset[str] = frozenset()
    """The servers whose tools are to be searched once they are connected."""
    session: Session | None = field(default=None, repr=False, compare=False)
    """The session it was rendered with."""

    def toolbox(self, session: Session | None = None, *, adapter: str = "outfitter") -> Toolbox:
        """The tools with the surroundings they are called in, by default with the session of the rendering."""
        tracker = BudgetTracker(self.budget) if isinstance(self.budget, Budget) else self.budget
        limit = None if tracker is None else tracker.budget.deadline
        context = ToolContext(
            session=session or self.session or Session(),
            resources=ResourceRegistry(self.resources),
            deadline=_earlier(self.deadline, limit),
            policies=self.policies,
            budget=tracker,
            adapter=adapter,
        )
        return Toolbox.of(self.tools, context)


def _earlier(one: Deadline | None, other: Deadline | None) -> Deadline | None:
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda deadline: deadline.expires_at)
