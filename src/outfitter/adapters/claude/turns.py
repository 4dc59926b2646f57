"""What the model says, as it comes from Claude Code: turns counted, tokens added, calls in the order they were asked.

A tool is begun while the turn that asks for it still comes in. Whoever must know what the turn has cost waits for
``settled``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import anyio
from claude_agent_sdk import AssistantMessage, StreamEvent, TextBlock, ToolUseBlock

from outfitter.adapters.reading import count, text
from outfitter.adapters.response import Usage
from outfitter.adapters.tally import Tally

Json: TypeAlias = dict[str, Any]
_WAIT_SECONDS = 60.0


@dataclass(slots=True)
class _Turn:
    """A turn that is coming in."""

    usage: Json = field(default_factory=dict[str, Any])
    text: str = ""
    calls: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class Turns:
    """The turns of one evaluation, those of its subagents too."""

    tally: Tally
    text: str = ""
    """What the model said last."""
    calls: dict[str, ToolUseBlock] = field(default_factory=dict[str, ToolUseBlock])
    """Every call it asked for, in its order."""
    fault: str = ""
    """The kind of the last error that Claude Code told in the model's place."""
    _open: dict[str | None, _Turn] = field(default_factory=dict[str | None, _Turn])
    _streamed: set[str] = field(default_factory=set[str])
    _settled: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])

    def hear(self, message: object) -> None:
        """Take one message of the client."""
        if isinstance(message, StreamEvent):
            self._hear_event(message.event, message.parent_tool_use_id)
        elif isinstance(message, AssistantMessage):
            self._hear_whole(message)

    async def settled(self, call_id: str) -> None:
        """Wait until the turn that asks for this call has come in; not for ever, as a stream may break."""
        with anyio.move_on_after(_WAIT_SECONDS):
            await self._settled.setdefault(call_id, anyio.Event()).wait()

    def _hear_event(self, event: Json, parent: str | None) -> None:
        kind = event.get("type")
        if kind == "message_start":
            begun: Json = event.get("message") or {}
            self._open[parent] = _Turn(dict(begun.get("usage") or {}))
            self._streamed.add(text(begun.get("id")))
            return
        turn = self._open.get(parent)
        if turn is None:
            return
        if kind == "message_stop":
            del self._open[parent]
            self._end(turn, parent)
        else:
            _add(turn, kind, event)

    def _hear_whole(self, message: AssistantMessage) -> None:
        if message.error is not None:
            self.fault = message.error
            return
        calls = [block for block in message.content if isinstance(block, ToolUseBlock)]
        self.calls |= {block.id: block for block in calls}
        if message.message_id in self._streamed:
            return
        # It came in one piece, as Claude Code asks when a stream broke.
        said = "".join(block.text for block in message.content if isinstance(block, TextBlock))
        turn = _Turn(dict(message.usage or {}), said, [block.id for block in calls])
        self._streamed.add(message.message_id or "")
        self._end(turn, message.parent_tool_use_id)

    def _end(self, turn: _Turn, parent: str | None) -> None:
        self.tally.take(read_usage(turn.usage))
        if parent is None:
            self.text = turn.text
        for call_id in turn.calls:
            self._settled.setdefault(call_id, anyio.Event()).set()


def _add(turn: _Turn, kind: object, event: Json) -> None:
    if kind == "content_block_start":
        block: Json = event.get("content_block") or {}
        if block.get("type") == "tool_use":
            turn.calls.append(text(block.get("id")))
    elif kind == "content_block_delta":
        turn.text += text(cast("Mapping[str, object]", event.get("delta") or {}).get("text"))
    elif kind == "message_delta":
        turn.usage |= event.get("usage") or {}


def read_usage(used: object) -> Usage:
    """Tokens as the other adapters count them: what was cached is input too."""
    cached = count(used, "cache_read_input_tokens")
    fresh = count(used, "input_tokens") + count(used, "cache_creation_input_tokens")
    return Usage(fresh + cached, count(used, "output_tokens"), cached)
