"""A server that is never the limit: echoes tool calls in both eras, over HTTP on a port or over stdio.

``python -m benchmarks.gateway_upstream PORT [TOOLS]`` or ``… stdio``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, cast

import httptools
import msgspec

_INFO = {"name": "bench", "version": "1"}
_META = {"io.modelcontextprotocol/serverInfo": _INFO}
_KEPT = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": _META}
_encode = msgspec.json.Encoder().encode


class _Params(msgspec.Struct):
    name: str = ""
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _Request(msgspec.Struct):
    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"")
    params: _Params = msgspec.field(default_factory=_Params)


_decode = msgspec.json.Decoder(_Request).decode


def tools(count: int) -> list[dict[str, Any]]:
    """So many tools; the first is ``echo``."""
    names = ["echo", *(f"tool{number}" for number in range(1, count))]
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return [{"name": name, "description": "echoes", "inputSchema": schema} for name in names]


def answer(data: bytes, count: int) -> bytes | None:
    """The response to a message; None for a notification."""
    request = _decode(data)
    ident = bytes(request.id)
    if not ident:
        return None
    if request.method == "tools/call":
        said = b'"resultType":"complete","content":[{"type":"text","text":"echo"}],"structuredContent":{"given":'
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b%b}}}' % (ident, said, bytes(request.params.arguments))
    known: dict[str, dict[str, Any]] = {
        "tools/list": {"tools": tools(count), **_KEPT},
        "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **_KEPT},
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": _INFO},
    }
    found = known.get(request.method)
    if found is None:
        return _encode({"jsonrpc": "2.0", "id": request.id, "error": {"code": -32601, "message": "Method not found"}})
    return _encode({"jsonrpc": "2.0", "id": request.id, "result": found})


class Upstream(asyncio.Protocol):
    """One connection."""

    def __init__(self, count: int) -> None:
        """Answer for so many tools."""
        self._count = count
        self._parser = httptools.HttpRequestParser(self)
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the handle."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Collect."""
        self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer."""
        body, self._body = b"".join(self._body), []
        said = answer(body, self._count) if self._parser.get_method() == b"POST" else None
        if said is None:
            status = b"202 Accepted" if body else b"405 Method Not Allowed"
            self._transport.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said)
        self._transport.write(head + said)


async def serve(port: int, count: int) -> None:
    """Answer on a port until killed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Upstream(count), "127.0.0.1", port, backlog=1024)
    async with server:
        await server.serve_forever()


def pipe() -> None:
    """Answer on stdin and stdout until stdin ends, as many lines at a time as there are."""
    rest = b""
    while piece := os.read(0, 1 << 16):
        *lines, rest = (rest + piece).split(b"\n")
        said = [one for line in lines if line and (one := answer(line, 10)) is not None]
        if said:
            _write(b"\n".join(said) + b"\n")


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        pipe()
    else:
        import uvloop

        uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10))  # noqa: PLR2004
