"""Calls that Claude Code makes by itself, on the one path of all calls: governed before, recorded after.

For each tool there is a guest in the outfit, whose handler waits for what Claude Code says came of the call. So a call
of a guest is checked, kept in a transaction and recorded by the same code as every other; it begins with the hook
before the tool and ends with the hook after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup

from outfitter.adapters.conversation import ToolAnswer, ToolUse
from outfitter.adapters.outfit import Outfit
from outfitter.calls import ToolResult
from outfitter.catalog import MCPServer
from outfitter.errors import OutfitterError
from outfitter.policy import ToolPolicy
from outfitter.schemas import Shape, read_schema
from outfitter.tools import Tool, ToolContext


@dataclass(slots=True)
class _Stay:
    """One call of a guest while it goes on."""

    met: anyio.Event = field(default_factory=anyio.Event)
    """It has begun, or was refused."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    left: anyio.Event = field(default_factory=anyio.Event)
    """Its event was left."""
    result: ToolResult[Any] | OutfitterError | None = None
    answer: ToolAnswer | None = None


class Guests:
    """The guests of one evaluation. ``group`` owns their calls: when it is cancelled, they are."""

    def __init__(self, outfit: Outfit[Any], group: TaskGroup) -> None:
        """Nobody is there yet."""
        self._outfit = outfit
        self._group = group
        self._stays: dict[str, _Stay] = {}
        self._shape: Shape = read_schema({"type": "object"}, name="Arguments")

    def invite(self, name: str, *, server: MCPServer | None = None, tool: str = "", description: str = "") -> None:
        """Have a guest of this name, once."""
        if any(guest.name == name for guest in self._outfit.guests):
            return
        guest = Tool[Any, Any](
            name=name,
            description=description or name,
            handler=self._wait,
            arguments=self._shape,
            server=None if server is None else server.name,
            tool=tool,
            policies=() if server is None else cast("tuple[ToolPolicy, ...]", server.policies),
            fallback="" if server is None else server.fallback,
            is_bounded=True,
        )
        self._outfit.guests = (*self._outfit.guests, guest)

    async def begin(self, use: ToolUse, fault: OutfitterError | None = None) -> str | None:
        """Begin a call that Claude Code is about to make; what the model is told when it may not be made.

        With a fault it is not made, and ends in that at once.
        """
        stay = self._stays[use.call_id] = _Stay(result=fault)
        if fault is not None:
            stay.ended.set()
        self._group.start_soon(self._conduct, use, stay)
        await (stay.met if fault is None else stay.left).wait()
        return None if stay.answer is None else stay.answer.text

    async def end(self, call_id: str, result: ToolResult[Any] | OutfitterError) -> None:
        """Say what came of the call; its event has been left when this returns."""
        stay = self._stays.get(call_id)
        if stay is not None:
            stay.result = result
            stay.ended.set()
            await stay.left.wait()

    async def _conduct(self, use: ToolUse, stay: _Stay) -> None:
        try:
            stay.answer = await self._outfit.call(use)
        finally:
            self._stays.pop(use.call_id, None)
            stay.met.set()
            stay.left.set()

    async def _wait(self, _params: object, *, context: ToolContext) -> ToolResult[Any]:
        """Wait, as the handler of every guest, until the call has been made elsewhere."""
        stay = self._stays[context.call_id]
        stay.met.set()
        await stay.ended.wait()
        if isinstance(stay.result, ToolResult):
            return stay.result
        raise cast("OutfitterError", stay.result)
