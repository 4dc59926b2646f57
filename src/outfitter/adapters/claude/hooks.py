"""What Claude Code asks before and after each tool call. A hook that fails blocks the call.

Before: no call is begun when a limit is reached; calls that Claude Code makes itself begin on the one path of all
calls. After: what came of them. After all calls of a turn: ``wink`` is listed again where its tools have changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from claude_agent_sdk import ClaudeSDKClient, HookMatcher

from outfitter.adapters.claude.abroad import Abroad, cli_name
from outfitter.adapters.claude.guests import Guests
from outfitter.adapters.claude.turns import Turns
from outfitter.adapters.claude.wink import WINK
from outfitter.adapters.conversation import ToolUse
from outfitter.adapters.outfit import Outfit
from outfitter.adapters.reading import text
from outfitter.adapters.response import StopReason
from outfitter.calls import ToolResult
from outfitter.errors import Unavailable
from outfitter.tools import Tool

Json: TypeAlias = dict[str, Any]
_FORM = "StructuredOutput"
_HOOK_SECONDS = 600.0
"""Longer than a person is waited for; Claude Code itself would give a hook up after a minute."""
_ALLOW: Json = {"permissionDecision": "allow"}


@dataclass(slots=True)
class Hooks:
    """The hooks of one evaluation."""

    outfit: Outfit[Any]
    turns: Turns
    guests: Guests
    abroad: Abroad
    client: ClaudeSDKClient | None = None
    stopped: tuple[StopReason, str] | None = None
    """The limit that ended the evaluation."""
    seen: set[str] = field(default_factory=set[str])
    """The calls that a hook was told of."""
    listed: tuple[Tool[Any, Any], ...] = ()
    """The tools of ``wink`` as Claude Code knows them."""

    @property
    def connected(self) -> ClaudeSDKClient:
        """The client, which is there while hooks are called."""
        if self.client is None:
            raise Unavailable("there is no client", where="claude")
        return self.client

    def table(self) -> Any:  # noqa: ANN401 - the SDK's type does not know every event that Claude Code has
        """The hooks as the SDK takes them."""
        known = {
            "PreToolUse": self._before,
            "PostToolUse": self._after,
            "PostToolUseFailure": self._after,
            "PostToolBatch": self._after_all,
        }
        return {
            event: [HookMatcher(hooks=[cast("Any", hook)], timeout=_HOOK_SECONDS, on_failure="block")]
            for event, hook in known.items()
        }

    async def _before(self, hooked: Mapping[str, Any], call_id: str | None, _context: object) -> Json:
        called, known = text(hooked.get("tool_name")), call_id or text(hooked.get("tool_use_id"))
        self.seen.add(known)
        if called == _FORM:
            return _decision(_ALLOW)
        if not hooked.get("agent_id"):  # a subagent's turns do not all come through
            await self.turns.settled(known)
        self.stopped = self.stopped or self.turns.tally.reached()
        if self.stopped is not None:
            reason = self.stopped[1]
            return {"continue_": False, "stopReason": reason, **_denied(reason)}
        if called.startswith(cli_name(WINK, "")):
            return _decision(_ALLOW)
        told = await self._begin(hooked, called, known)
        return _decision(_ALLOW) if told is None else _denied(told)

    async def _begin(self, hooked: Mapping[str, Any], called: str, call_id: str) -> str | None:
        server = self.abroad.server_of(hooked)
        if not server and "mcp_server" not in hooked:
            self.guests.invite(called)  # one of Claude Code's own
        use = ToolUse(call_id, self.abroad.guest_of(hooked), dict(hooked.get("tool_input") or {}))
        return await self.guests.begin(use, self.abroad.rest(server))

    async def _after(self, hooked: Mapping[str, Any], call_id: str | None, _context: object) -> Json:
        event, known = text(hooked.get("hook_event_name")), call_id or text(hooked.get("tool_use_id"))
        server = self.abroad.server_of(hooked)
        if event == "PostToolUse":
            self.abroad.note(server, None)
            await self.guests.end(known, _result(hooked.get("tool_response")))
            return {}
        said = text(hooked.get("error")) or "it failed"
        fault = self.abroad.note(server, said) if server else None
        await self.guests.end(known, ToolResult.error(said) if fault is None else fault)
        return {} if fault is None else _context_of(event, self.abroad.tell(server, fault))

    async def _after_all(self, _hooked: Mapping[str, Any], _call_id: str | None, _context: object) -> Json:
        if self.outfit.tools() != self.listed:
            # Off and on again is how Claude Code asks a server of this process for its list.
            await self.connected.toggle_mcp_server(WINK, enabled=False)
            await self.connected.toggle_mcp_server(WINK, enabled=True)
        return {}


def _decision(said: Json) -> Json:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}


def _denied(reason: str) -> Json:
    return _decision({"permissionDecision": "deny", "permissionDecisionReason": reason})


def _context_of(event: str, said: str) -> Json:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": said}}


def _result(response: object) -> ToolResult[Any]:
    """What the model was given, as the result of a call."""
    blocks = cast("list[Json]", response) if isinstance(response, list) else []
    said = "\n".join(text(block.get("text")) for block in blocks) if blocks else text(cast("object", response))
    try:
        value: Any = json.loads(said)
    except (ValueError, RecursionError):
        value = None
    return ToolResult(said, cast("Any", value) if isinstance(value, dict | list) else None)
