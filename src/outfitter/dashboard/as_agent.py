"""A call as an agent would make it: through the gateway, with its filters, rules and records, for a person at a page.

For each visit a token of the agent is made that lives for a minute and names the person; it is taken back at the end.
So the record of the call names the token, and the token names who asked. Only those who may issue tokens can do this.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from outfitter.basics import Secret
from outfitter.dashboard.inside import Inside
from outfitter.dashboard.looks import path_part
from outfitter.errors import ProtocolViolation

if TYPE_CHECKING:
    from outfitter.dashboard.page import Page

_SECONDS = 60
_MOST_TOOLS = 10_000
_VERSION = "2026-07-28"
_META = "io.modelcontextprotocol/"


@dataclass(slots=True)
class AsAgent:
    """Asks the endpoint of one agent."""

    agent: str
    _gateway: Inside
    _ids: int = field(default=0)

    async def tools(self) -> list[dict[str, Any]]:
        """Every tool that the agent is shown."""
        found: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        while len(found) < _MOST_TOOLS:
            answer = (await self.ask("tools/list", cursor)).get("result", {})
            found += answer.get("tools", [])
            if not answer.get("nextCursor"):
                break
            cursor = {"cursor": answer["nextCursor"]}
        return found

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The whole answer to a request of the protocol: with a result, or an error."""
        self._ids += 1
        meta: dict[str, Any] = {f"{_META}protocolVersion": _VERSION, f"{_META}clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": {"_meta": meta, **params}}
        headers = [
            (b"accept", b"application/json, text/event-stream"),
            (b"mcp-protocol-version", _VERSION.encode()),
            (b"mcp-method", method.encode()),
        ]
        if method == "tools/call":
            headers.append((b"mcp-name", str(params["name"]).encode()))
        path = f"/mcp/{path_part(self.agent)}"
        answer = await self._gateway.ask("POST", path, {}, msgspec.json.encode(body), tuple(headers), is_checked=False)
        return _last_of(answer.content)


@asynccontextmanager
async def as_agent(page: Page, agent: str) -> AsyncGenerator[AsAgent]:
    """Whoever looks at the page, as this agent; Forbidden for those who may not issue tokens."""
    who = "" if page.who is None else page.who.name
    wanted = {"role": "agent", "agent": agent, "label": f"playground of {who}"[:100], "expires_in": _SECONDS}
    made = await page.api.send("POST", "/tokens", wanted)
    gateway = Inside(page.request.scope["state"]["gateway"])
    try:
        yield AsAgent(agent, gateway.for_request(page.request.scope, Secret(made["token"])))
    finally:
        await page.api.send("DELETE", f"/tokens/{path_part(made['id'])}")


def _last_of(content: bytes) -> dict[str, Any]:
    """The answer itself: the body, or the last event of a stream."""
    text = content
    if not content.startswith(b"{"):
        lines = [line.removeprefix(b"data:").strip() for line in content.splitlines() if line.startswith(b"data:")]
        text = next((line for line in reversed(lines) if b'"id"' in line), b"")
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise ProtocolViolation("the gateway gave no answer that can be read") from None
