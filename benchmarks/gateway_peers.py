"""Other gateways that can be installed from a registry, in front of the same program, each in its fastest setting.

They speak the handshake era: a visit is opened first, and every request names it. One that cannot be installed here is
left out, and the table says so.
"""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gateway_stage import Stage, free_port

_PROGRAM = (sys.executable, "-m", "benchmarks.gateway_upstream", "stdio")
_ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_VERSION = "2025-06-18"
_INSTALL_SECONDS = 180
_IDS = 2000
"""Requests of one visit that are under way at the same time must not have the same id."""


@dataclass(frozen=True, slots=True)
class Peer:
    """How one of them is fetched and started; None when what fetches it is not here."""

    name: str
    command: Callable[[int], tuple[str, ...] | None]
    fetch: Callable[[], tuple[str, ...] | None]


def _uv(*arguments: str) -> tuple[str, ...] | None:
    uv = Path(sys.executable).parent / "uv"
    found = str(uv) if uv.exists() else shutil.which("uv")
    return None if found is None else (found, "tool", "run", "--from", "mcp-proxy==0.13.0", "mcp-proxy", *arguments)


def _npx(*arguments: str) -> tuple[str, ...] | None:
    npx = shutil.which("npx")
    return None if npx is None else (npx, "-y", "supergateway@4.0.0", *arguments)


def _supergateway(port: int) -> tuple[str, ...] | None:
    how = ("--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", str(port))
    return _npx("--stdio", " ".join(_PROGRAM), *how)


def _mcp_proxy(port: int) -> tuple[str, ...] | None:
    return _uv("--port", str(port), "--log-level", "ERROR", "--pass-environment", "--", *_PROGRAM)


PEERS = (
    Peer("supergateway", _supergateway, lambda: _npx("--help")),
    Peer("mcp-proxy", _mcp_proxy, lambda: _uv("--version")),
)


def start(one: Stage, peer: Peer) -> tuple[int, int, list[bytes]] | None:
    """Port, pid and whole requests for a peer that answers; None when it cannot be had here."""
    port = free_port()
    fetch, command = peer.fetch(), peer.command(port)
    if fetch is None or command is None:
        return None
    try:
        subprocess.run(fetch, check=True, capture_output=True, timeout=_INSTALL_SECONDS)
        pid = one.start(*command, port=port)
        visit = _open_visit(port, tries=20)
        return port, pid, [_request(port, visit, ident) for ident in range(1, _IDS)]
    except (subprocess.SubprocessError, OSError, RuntimeError, http.client.HTTPException) as error:
        print(f"{peer.name} is left out: {error}", file=sys.stderr)
        return None


def _open_visit(port: int, tries: int) -> str:
    """The id of a new visit; a gateway may listen before it can answer."""
    try:
        return _shake_hands(port)
    except (OSError, http.client.HTTPException):
        if not tries:
            raise
    time.sleep(0.5)
    return _open_visit(port, tries - 1)


def _shake_hands(port: int) -> str:
    info = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info}
    visit = _post(port, message, {})
    _post(port, {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"Mcp-Session-Id": visit})
    return visit


def _post(port: int, message: object, headers: dict[str, str]) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/mcp", json.dumps(message), {**_ACCEPT, **headers})
        response = connection.getresponse()
        response.read()
        return response.headers.get("Mcp-Session-Id") or ""
    finally:
        connection.close()


def _request(port: int, visit: str, ident: int) -> bytes:
    params = {"name": "echo", "arguments": {"text": "hello " * 20, "number": 7}}
    body = json.dumps({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}).encode()
    named = {"Mcp-Session-Id": visit} if visit else {}
    headers = {"Host": f"127.0.0.1:{port}", **_ACCEPT, "MCP-Protocol-Version": _VERSION, **named}
    lines = "".join(f"{name}: {value}\r\n" for name, value in {**headers, "Content-Length": str(len(body))}.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body
