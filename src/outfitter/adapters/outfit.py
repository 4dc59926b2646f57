"""A prompt fitted out for one evaluation: rendered, its servers connected, its tools ready to be called.

What every adapter needs, whoever runs the loop: ours (``loop``) or an agent SDK. Owner: the task that enters the block;
it connects when entered and lets every server go when left, also when it is cancelled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar, cast

import anyio

from outfitter.adapters.conversation import ToolAnswer, ToolUse
from outfitter.adapters.response import MadeCall
from outfitter.adapters.servers import join_servers
from outfitter.bridge import BridgeOptions, LiveServers, McpConnectionPool, McpResources
from outfitter.calls import META_NAMES, ToolResult, tell_missing
from outfitter.catalog import MCPServer
from outfitter.errors import McpConnectionError
from outfitter.prompt import OpenedSections, Prompt, RenderedPrompt
from outfitter.session import Session
from outfitter.tools import (
    Budget,
    BudgetTracker,
    Deadline,
    ResourceRegistry,
    SearchedTool,
    Tool,
    Toolbox,
    ToolContext,
    searching_tools,
)

T = TypeVar("T")
McpMode: TypeAlias = Literal["bridge", "ignore"]
Way: TypeAlias = McpMode | Literal["leave"]
"""What is done with servers: connected here, left out, or left to an SDK that connects them itself."""
_log = logging.getLogger(__name__)
_IGNORED = "adapters.mcp_ignored"


@dataclass(frozen=True, slots=True)
class Fitting:
    """How an adapter fits out its prompts. A pool that is given must be open, and stays open."""

    adapter: str
    mcp: Way = "bridge"
    servers: tuple[MCPServer, ...] = ()
    pool: McpConnectionPool | None = None
    bridging: BridgeOptions = field(default_factory=BridgeOptions)
    confine: Callable[[MCPServer], MCPServer] | None = None
    """What every server is made before it is used, where it is to be held in bounds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Until when, and how much: the earlier of two deadlines holds."""

    deadline: Deadline | None = None
    budget: BudgetTracker | None = None

    @classmethod
    def of(cls, deadline: Deadline | None, budget: Budget | BudgetTracker | None) -> Limits:
        """The limits of one evaluation; a tracker goes on counting where it is."""
        tracker = BudgetTracker(budget) if isinstance(budget, Budget) else budget
        known = (deadline, None if tracker is None else tracker.budget.deadline)
        found = sorted((each for each in known if each is not None), key=lambda each: each.expires_at)
        return cls(found[0] if found else None, tracker)

    @property
    def seconds(self) -> float | None:
        """The seconds that are left; None without a deadline."""
        return None if self.deadline is None else self.deadline.remaining()

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self.seconds == 0.0

    def overspent(self) -> str | None:
        """Which tokens were spent beyond the budget, if any."""
        return None if self.budget is None else self.budget.spend_tokens(0, 0)


class Outfit(Generic[T]):
    """One prompt in one evaluation. An asynchronous context manager."""

    def __init__(self, prompt: Prompt[T], fitting: Fitting, *, session: Session | None, limits: Limits) -> None:
        """Rendered, with nothing connected yet."""
        self.prompt = prompt
        self.fitting = fitting
        self.session = session or Session()
        self.limits = limits
        self.made: list[MadeCall] = []
        self.guests: tuple[Tool[Any, Any], ...] = ()
        """Tools that somebody else runs and offers: a call of one is governed and recorded here all the same."""
        self.rendered: RenderedPrompt[T] = self._render()
        self.servers = self._chosen()
        """The servers whose tools are offered now; none when they are ignored."""
        self._live: LiveServers | None = None
        self._missing = ""
        self._search: tuple[tuple[SearchedTool, ...], tuple[Tool[Any, Any], ...]] = ((), ())
        """The tools that are searched, and the tools that search them."""

    # ── the prompt ──

    def _render(self) -> RenderedPrompt[T]:
        return self.prompt.render(session=self.session, deadline=self.limits.deadline, budget=self.limits.budget)

    def _chosen(self) -> tuple[MCPServer, ...]:
        fitting, prompted = self.fitting, self.rendered.mcps
        if fitting.mcp != "ignore":
            strict = self.prompt.template.strict_mcps
            joined = join_servers(fitting.servers, prompted, adapter=fitting.adapter, is_strict=strict)
            return joined if fitting.confine is None else tuple(map(fitting.confine, joined))
        if prompted:
            extra = {"event": _IGNORED, "context": {"count": len(prompted), "prompt": self.prompt.template.id}}
            _log.debug("%s: %d servers of '%s'", _IGNORED, len(prompted), self.prompt.template.id, extra=extra)
        return ()

    @property
    def text(self) -> str:
        """The prompt as the model is told it: as it is rendered, and which servers are not available."""
        return "\n\n".join(filter(None, (self.rendered.text, self._missing)))

    async def reopen(self) -> str:
        """Render again after sections were opened, and connect what they bring; what the model should know of it."""
        self.rendered = self._render()
        self.servers = self._chosen()
        await self._connect_what_answers()
        return self._missing

    async def _connect_what_answers(self) -> None:
        """Connect, and go on without servers that nobody must have; McpConnectionError for one that is required."""
        try:
            await self._connect()
        except McpConnectionError as error:
            if self._must_have(error.server_name):
                raise
            await self._disconnect()  # it is raised only when no server at all can be connected
            _log.warning("not connected: %s", error)
            down = [server.name for server in self.servers]
        else:
            down = [] if self._live is None else sorted(self._live.failures)
        self._missing = tell_missing(down, {server.name: server.fallback for server in self.servers})

    def _must_have(self, name: str) -> bool:
        return not name or any(server.name == name and server.required for server in self.servers)

    # ── connecting ──

    async def __aenter__(self) -> Self:
        """Connect the servers of the adapter and of every section that is shown; what cannot be is told the model.

        McpConnectionError when a server that is required is missing.
        """
        try:
            await self._connect_what_answers()
            self.toolbox()  # two tools of one name are found now, not in the middle
        except BaseException:
            await self._disconnect()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Let every server go."""
        await self._disconnect()

    async def _disconnect(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with anyio.CancelScope(shield=True):
                await live.adisconnect()

    async def _connect(self) -> None:
        """Connect the servers that are not connected yet; at the deadline nothing stays connected."""
        fitting = self.fitting
        if fitting.mcp != "bridge":
            return
        live = self._live or LiveServers((), session=self.session, pool=fitting.pool, options=fitting.bridging)
        known = {server.name for server in live.servers}
        missing = [server for server in self.servers if server.name not in known]
        if not missing:
            return
        # All of them are bridged together, so that no two tools get one name; those that stand stay connected.
        live.servers = (*live.servers, *missing)
        self._live = live
        with anyio.move_on_after(self.limits.seconds) as scope:
            await live.aconnect()
        if scope.cancelled_caught:
            await self._disconnect()

    # ── the tools ──

    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """What the model may call now: the prompt's own tools, then those of its servers as they are at this moment."""
        bridged, searched = self._bridged(), self.rendered.searched_servers
        if not searched:
            return (*self.rendered.tools, *bridged)
        found = (*self.rendered.searched, *(SearchedTool(tool) for tool in bridged if tool.server in searched))
        if self._search[0] != found:
            self._search = found, searching_tools(found)
        own = (tool for tool in self.rendered.tools if tool.name not in META_NAMES)
        return (*own, *self._search[1], *(tool for tool in bridged if tool.server not in searched))

    def _bridged(self) -> tuple[Tool[Any, Any], ...]:
        if self._live is None:
            return ()
        shown = {server.name for server in self.servers}
        return tuple(tool for tool in self._live.tool_set.tools if tool.server in shown)

    def toolbox(self) -> Toolbox:
        """The tools with the surroundings they are called in."""
        own = self.rendered.toolbox(self.session, adapter=self.fitting.adapter).context
        context = own if self._live is None else _with_pool(own, self._live.pool)
        return Toolbox.of((*self.tools(), *self.guests), context)

    async def call(self, use: ToolUse) -> ToolAnswer:
        """What the model is told about one call, which is governed and recorded like every call."""
        (answer,) = await self.call_all((use,))
        return answer

    async def call_all(self, uses: Sequence[ToolUse]) -> tuple[ToolAnswer, ...]:
        """What the model is told about the calls of one turn, which are made at the same time.

        Where they opened sections, the outfit has changed afterwards: ``rendered``, its servers and its tools.
        """
        box = self.toolbox()
        results: dict[int, ToolResult[Any]] = {}

        async def call(index: int, use: ToolUse) -> None:
            arguments = cast("dict[str, Any]", use.arguments)  # a text is refused there, with an event
            results[index] = await box.aexecute(use.name, arguments, call_id=use.call_id)

        try:
            async with anyio.create_task_group() as group:
                for index, use in enumerate(uses):
                    group.start_soon(call, index, use)
        finally:
            asked = [(uses[index], results[index]) for index in sorted(results)]
            self.made += [MadeCall(use.call_id, use.name, use.arguments, result) for use, result in asked]
        opened = {index for index, result in results.items() if _opens(result)}
        note = await self.reopen() if opened else ""
        return tuple(ToolAnswer(use, results[index], note if index in opened else "") for index, use in enumerate(uses))


def _opens(result: ToolResult[Any]) -> bool:
    """Whether the prompt must be rendered again after this call."""
    return result.success and isinstance(result.value, OpenedSections)


def _with_pool(context: ToolContext, pool: McpConnectionPool) -> ToolContext:
    found: dict[type, object] = {McpConnectionPool: pool, McpResources: McpResources(pool)}
    # What a section brought itself stays.
    return replace(context, resources=ResourceRegistry(found).merged(context.resources.entries))
