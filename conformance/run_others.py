"""Let clients that other people wrote talk to the gateway: the TypeScript SDK and the Inspector's command line.

``python -m conformance.run_others``. Behind one endpoint stand all real servers that the tests use. Exits 1 when a
client does not see all of them, or cannot call one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from conformance.run_gateway import gateway
from conformance.setup import SetupFailed, cache_folder, client_path, install, node_path
from outfitter.catalog import MCPServer, StdioTransport
from tests.upstream.real import npm_server, python_server, sqlite_server

_HERE = Path(__file__).resolve().parent
_SECONDS = 120.0
_TOOL, _WORD = "everything_echo", "hello from another client"


def real_servers(folder: Path) -> list[MCPServer]:
    """Every server of the registries that the tests talk to."""
    return [
        python_server("git"),
        python_server("time", "--local-timezone", "UTC"),
        python_server("fetch"),
        sqlite_server(folder / "data.db"),
        npm_server("everything"),
        npm_server("filesystem", str(folder)),
        npm_server("memory", env={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}),
        npm_server("sequential-thinking"),
    ]


def described(server: MCPServer) -> dict[str, Any]:
    """A server as an agent's file has it."""
    transport = server.transport
    if not isinstance(transport, StdioTransport):
        raise SetupFailed(f"{server.name} is not started by a command")
    return {"command": transport.command, "args": list(transport.args), "env": dict(server.env)}


def run_node(*arguments: str) -> str:
    """What a program of node prints; SetupFailed when it fails."""
    path = f"{node_path().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        [str(node_path()), *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    if done.returncode != 0:
        raise SetupFailed(f"{Path(arguments[0]).name} ended with {done.returncode}: {done.stderr[-600:]}")
    return done.stdout


def sdk(url: str) -> tuple[list[str], str]:
    """The tools that the TypeScript SDK lists, and what it hears when it calls one."""
    arguments = json.dumps({"message": _WORD})
    shown = json.loads(run_node(str(_HERE / "sdk_client.mjs"), str(cache_folder() / "clients"), url, _TOOL, arguments))
    return shown["tools"], json.dumps(shown["result"])


def inspector(url: str) -> tuple[list[str], str]:
    """The same by the Inspector's command line."""
    program = str(client_path("inspector", "clients", "launcher", "build", "index.js"))
    options = (program, "--cli", url, "--transport", "http", "--method")
    listed: dict[str, Any] = json.loads(run_node(*options, "tools/list"))
    called = run_node(*options, "tools/call", "--tool-name", _TOOL, "--tool-arg", f"message={_WORD}")
    return [tool["name"] for tool in listed["tools"]], called


def squad(folder: Path) -> bool:
    """Whether the Inspector lists, reads and searches what ``outfitter squad serve`` says of a folder."""
    team = folder / "team" / ".squad"
    team.mkdir(parents=True)
    members = "| Name | Role | Charter | Status |\n|---|---|---|---|\n| Ripley | Lead | — | ✅ Active |\n"
    (team / "team.md").write_text(f"# Team\n\n## Members\n\n{members}", encoding="utf-8")
    (team / "decisions.md").write_text(f"# Decisions\n\n### 2026-01-31: {_WORD}\n\n**By:** Ripley\n", encoding="utf-8")
    program = str(client_path("inspector", "clients", "launcher", "build", "index.js"))
    served = (sys.executable, "-m", "outfitter", "squad", "serve", "--dir", str(team.parent))
    options = (program, "--cli", *served, "--method")
    listed = run_node(*options, "resources/list")
    roster = run_node(*options, "resources/read", "--uri", "squad://roster")
    found = run_node(*options, "tools/call", "--tool-name", "squad_decision_search", "--tool-arg", f"query={_WORD}")
    return "squad://agents/ripley/history" in listed and "Ripley" in roster and _WORD in found


def run() -> int:
    """Run every client and print what came of it; how many failed."""
    install()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        try:
            is_good = squad(Path(name))
        except (SetupFailed, subprocess.TimeoutExpired) as failure:
            print(f"Inspector, the squad's server: {failure}", flush=True)
            is_good = False
        print(f"Inspector, the squad's server: {'ok' if is_good else 'FAILED'}", flush=True)
        failures += not is_good
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        servers = real_servers(folder)
        with gateway(folder, {server.name: described(server) for server in servers}) as endpoint:
            for title, client in (("TypeScript SDK", sdk), ("Inspector", inspector)):
                try:
                    tools, heard = client(endpoint)
                except (SetupFailed, ValueError, KeyError, subprocess.TimeoutExpired) as failure:
                    print(f"{title}: FAILED: {failure}", flush=True)
                    failures += 1
                    continue
                missing = [one.name for one in servers if not any(tool.startswith(f"{one.name}_") for tool in tools)]
                is_good = not missing and _WORD in heard
                failures += not is_good
                verdict = "ok" if is_good else f"FAILED: missing {missing or 'the answer'}"
                print(f"{title}: {len(tools)} tools of {len(servers)} servers  {verdict}", flush=True)
    return failures


if __name__ == "__main__":
    try:
        sys.exit(1 if run() else 0)
    except SetupFailed as failure:
        sys.exit(str(failure))
