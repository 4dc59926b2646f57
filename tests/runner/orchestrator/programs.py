"""Programs that are agents and call the orchestrator through the gateway, and the runner that executes them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from tests.app.kit import Place, Up, ended
from tests.runner.orchestrator.kit import PATIENCE

ORCHESTRATOR = {
    "id": "orchestrator",
    "url": "${AGENT_ORCHESTRATOR_MCP_URL}",
    "header_schema": {"X-Agent-Session-Id": {"type": "string", "required": True, "internal": True}},
}
LEAD = """
import json, sys, urllib.request

order = json.load(sys.stdin)
META = "io.modelcontextprotocol/"


def call(server, tool, seconds=90, **arguments):
    meta = {f"{META}protocolVersion": "2026-07-28", f"{META}clientCapabilities": {}, "progressToken": 1}
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {order['mcp']['token']}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call", "Mcp-Name": tool,
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    request = urllib.request.Request(order["mcp"]["servers"][server], body, headers)
    with urllib.request.urlopen(request, timeout=seconds) as answer:
        text = answer.read().decode()
    found = json.loads(text[text.rindex("data: ") + 6:] if text.startswith(("event:", "data:", ":")) else text)
    return found["result"]


"""
END = 'print(json.dumps({"type": "result", "result": said}))\n'


@asynccontextmanager
async def running(place: Place, url: str, token: str, *args: str) -> AsyncGenerator[None]:
    """A runner as somebody starts it on the command line."""
    command = [sys.executable, "-m", "outfitter", "runner", "--server", url, *args]
    environment = {**place.environment, "OUTFITTER_TOKEN": token}
    with (place.folder / "runner.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=place.folder, env=environment, stdout=log, stderr=log)  # noqa: ASYNC220 - starting takes no time
    try:
        yield
    finally:
        process.terminate()
        await ended(process)


async def ended_runs(up: Up, session: str, count: int) -> list[dict[str, Any]]:
    """The runs of a session once so many have ended, oldest first."""
    with anyio.fail_after(PATIENCE):
        while True:
            listed = (await up.api("GET", "/runs?limit=500"))[1]["items"]
            runs = [run for run in reversed(listed) if run["session_id"] == session and run["ended_at"] is not None]
            if len(runs) >= count:
                return runs
            await anyio.sleep(0.1)
