"""Clients of the soak: each sends calls that nobody else sends, and judges every answer by its own question.

An answer is good, an honest error, or wrong. What was heard is kept as numbers, to be compared with the records later.
"""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from benchmarks.gateway_stage import token_of
from outfitter.gateway import digest_of

GOOD, ERROR, LOST = "good", "honest error", "no answer"
_VERSION = "2026-07-28"
_META = {"protocolVersion": _VERSION, "clientCapabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}
_OK, _UNKNOWN_VISIT = 200, 404
_BUSY = frozenset({429, 503})
_ANSWER_SECONDS = 60.0
_MADE_UP_SECONDS = 10.0


def mark_of(digest: str) -> int:
    """The digest of a call's arguments, as a number that fits into eight bytes."""
    return int(digest[:16], 16)


@dataclass(slots=True)
class Heard:
    """What all clients heard."""

    counts: Counter[str] = field(default_factory=Counter[str])
    wrong: list[str] = field(default_factory=list[str])
    marks: dict[str, array[int]] = field(default_factory=lambda: {kind: array("Q") for kind in (GOOD, ERROR, LOST)})
    good_of: Counter[str] = field(default_factory=Counter[str])
    """Good answers by server."""

    def note(self, kind: str, server: str, arguments: dict[str, Any], told: object) -> None:
        """Count one answer."""
        if kind not in self.marks:
            self.wrong.append(f"{server}: asked {arguments}, heard {str(told)[:300]}")
            return
        self.counts[kind] += 1
        self.marks[kind].append(mark_of(digest_of(arguments)))
        if kind == GOOD:
            self.good_of[server] += 1


@dataclass(slots=True)
class Pace:
    """When the next call is due, whoever makes it: a client that waits for its answer does not slow the others down."""

    seconds: float = 0.0
    """From call to call; 0 is as fast as it goes."""
    _due: float = 0.0

    async def turn(self) -> None:
        """Wait for a turn; turns that nobody took are made up for, unless they are long past."""
        now = asyncio.get_running_loop().time()
        due = self._due = max(self._due + self.seconds, now - _MADE_UP_SECONDS)
        await asyncio.sleep(max(0.0, due - now) if self.seconds else 0.0)


@dataclass(slots=True)
class Client:
    """One connection of one agent in one era; it comes again when it is lost, and begins a new visit when it must."""

    name: str
    port: int
    server: str
    is_modern: bool
    heard: Heard
    _count: int = 0
    _visit: str = ""
    _streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def run(self, stop: asyncio.Event, pace: Pace) -> None:
        """Call until told to stop, whenever it is this client's turn."""
        while not stop.is_set():
            await pace.turn()
            await self.call()
        await self.close()

    async def call(self) -> str:
        """One call; what was heard."""
        self._count += 1
        arguments = {"text": f"{self.name}-{self._count}", "number": self._count}
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                if not (self.is_modern or self._visit):
                    await self._begin_visit()
                status, answer = await self._ask("tools/call", {"name": "echo", "arguments": arguments})
        except (OSError, EOFError, TimeoutError) as error:
            await self.close()
            self.heard.note(LOST, self.server, arguments, error)
            return LOST
        if status == _UNKNOWN_VISIT:
            self._visit = ""
        kind = self._judge(status, answer, arguments)
        self.heard.note(kind, self.server, arguments, (status, answer))
        return kind

    def _judge(self, status: int, answer: Any, arguments: dict[str, Any]) -> str:  # noqa: ANN401 - any JSON value
        if not isinstance(answer, dict):
            return ERROR if status in {*_BUSY, _UNKNOWN_VISIT} else "wrong"
        said = cast("dict[str, Any]", answer)
        if said.get("id") != self._count:
            return "wrong"
        if "error" in said:
            return ERROR if said["error"].get("message") else "wrong"
        result = said["result"]
        if result.get("structuredContent") == {"given": arguments} and not result.get("isError"):
            return GOOD
        return ERROR if result.get("isError") and "outfitter/outcome" in result.get("_meta", {}) else "wrong"

    async def _begin_visit(self) -> None:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _META["clientInfo"]}
        await self._ask("initialize", params)

    async def _ask(self, method: str, params: dict[str, Any]) -> tuple[int, Any]:
        reader, writer = self._streams or await self._connect()
        writer.write(self._request(method, params))
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = (line.partition(": ") for line in head[1:] if line)
        headers = {name.lower(): value for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self._visit = headers.get("mcp-session-id", self._visit) if method == "initialize" else self._visit
        if headers.get("connection") == "close":
            await self.close()
        is_json = headers.get("content-type", "").startswith("application/json")
        return int(head[0].split()[1]), msgspec.json.decode(body) if is_json else body

    def _request(self, method: str, params: dict[str, Any]) -> bytes:
        named = {"MCP-Protocol-Version": _VERSION if self.is_modern else "2025-11-25"}
        if self.is_modern:
            meta = {f"io.modelcontextprotocol/{key}": value for key, value in _META.items()}
            params = {**params, "_meta": meta}
            named |= {"Mcp-Method": method, "Mcp-Name": str(params.get("name"))}
        elif self._visit:
            named["Mcp-Session-Id"] = self._visit
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        named |= {
            "Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {token_of(self.server)}",
            "Accept": "application/json, text/event-stream", "Content-Type": "application/json",
            "Content-Length": str(len(body)),
        }  # fmt: skip
        lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        return f"POST /mcp/{self.server}/{self.server} HTTP/1.1\r\n{lines}\r\n".encode() + body

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        self._streams = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        return self._streams

    async def close(self) -> None:
        """Let go of the connection."""
        if self._streams is not None:
            streams, self._streams = self._streams, None
            streams[1].close()
