"""What does Copilot tell while it works? Its events, read into what was said, what was used and how it ended."""

from __future__ import annotations

from typing import Any

import anyio
from copilot import SessionEvent

from outfitter.adapters.copilot.calls import Calls
from outfitter.adapters.forms import Json
from outfitter.adapters.reading import text
from outfitter.adapters.response import StopReason, Usage
from outfitter.adapters.tally import Tally

_HEARD = frozenset(
    {
        *("assistant.usage", "assistant.message", "session.error", "session.idle"),
        *("tool.execution_start", "tool.execution_complete"),
    }
)


class Ear:
    """Listens to one session. ``woken`` is set when Copilot rests, or when it must be stopped."""

    def __init__(self, tally: Tally, calls: Calls) -> None:
        """Nothing was heard yet."""
        self.tally = tally
        self.calls = calls
        self.text = ""
        self.is_refused = False
        self.error: Json | None = None
        self.stopped: tuple[StopReason, str] | None = None
        self.resting = anyio.Event()
        self.woken = anyio.Event()

    def begin(self) -> None:
        """Listen to what comes of the next message."""
        self.error, self.resting, self.woken = None, anyio.Event(), anyio.Event()

    def may_go_on(self) -> str | None:
        """Why nothing more may be begun; whoever waits is woken then."""
        reached = self.stopped or self.tally.reached()
        if reached is None:
            return None
        self.stopped = reached
        self.woken.set()
        return reached[1]

    def hear(self, event: SessionEvent) -> None:
        """Take one event in."""
        spoken: Any = event
        kind = str(getattr(event.type, "value", event.type))
        if kind not in _HEARD:
            return
        told: Json = spoken.to_dict()
        self._take(kind, told.get("data") or {}, is_main=not told.get("agentId"))

    def _take(self, kind: str, data: dict[str, Any], *, is_main: bool) -> None:
        if kind == "assistant.usage":
            self.is_refused = bool(data.get("contentFilterTriggered"))
            names = ("inputTokens", "outputTokens", "cacheReadTokens")
            self.tally.take(Usage(*(int(data.get(name) or 0) for name in names)))
        elif kind == "tool.execution_start":
            self.calls.begun(text(data.get("toolCallId")), text(data.get("toolName")), data.get("arguments"))
        elif kind == "tool.execution_complete":
            error: Json = data.get("error") or {}
            self.calls.ended(text(data.get("toolCallId")), text(error.get("message")))
        elif kind == "assistant.message" and is_main:
            self.text = text(data.get("content"))
        elif kind == "session.error" and is_main:
            self.error = data
        elif kind == "session.idle" and is_main:
            self.resting.set()
            self.woken.set()
