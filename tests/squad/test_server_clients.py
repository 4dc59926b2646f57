"""Clients that others wrote talk to ``outfitter squad serve``: the Inspector, the Claude Agent SDK, the Copilot SDK."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from outfitter.catalog import MCPServer
from outfitter.testing import ModelSays, model_calls
from tests.adapters.candidates import CLAUDE, COPILOT
from tests.adapters.kit import Candidate, play, prompt_of
from tests.squad.folders import new_folder
from tests.squad.server_kit import LIMIT, SERVE
from tests.upstream.real import PATIENT, PLACE, installed, node

INSPECTOR = PLACE / "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def inspect(folder: Path, *options: str) -> dict[str, Any]:
    """What the Inspector's command line prints about the server of a folder."""
    command = [node(), installed(INSPECTOR), "--cli", *SERVE, "--dir", str(folder), *options]
    environment = {**os.environ, "PATH": f"{Path(node()).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.promise("SQUAD-CLIENTS")
def test_the_inspector_lists_and_reads_and_calls(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    resources = inspect(folder, "--method", "resources/list")["resources"]
    read = inspect(folder, "--method", "resources/read", "--uri", "squad://roster")
    found = inspect(
        folder, "--method", "tools/call", "--tool-name", "squad_decision_search", "--tool-arg", "query=server"
    )
    assert "squad://agents/eecom/history" in [resource["uri"] for resource in resources]
    roster = json.loads(read["contents"][0]["text"])
    assert "eecom" in [member["id"] for member in roster["members"]]
    assert found["structuredContent"]["decisions"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("candidate", "prefix"), [(CLAUDE, "mcp__squad__"), (COPILOT, "squad-")], ids=["claude", "copilot"]
)
@pytest.mark.promise("SQUAD-CLIENTS")
async def test_an_agent_sdk_gets_the_roster_and_what_was_decided(
    tmp_path: Path, candidate: Candidate, prefix: str
) -> None:
    folder = new_folder(tmp_path)
    program, *arguments = (*SERVE, "--dir", str(folder), "--agent", "eecom")
    squad = MCPServer.stdio("squad", program, arguments, limits=PATIENT)
    turns = (
        model_calls(f"{prefix}squad_status", {}),
        model_calls(f"{prefix}squad_decision_search", {"query": "server"}),
        ModelSays("done"),
    )
    played = await play(candidate, prompt_of(mcps=[squad]), *turns, route="native")
    status, found = played.requests[-1].answers
    assert '"eecom"' in status
    assert "not instructions" in status
    assert '"snippets"' in found
    assert [(event.name, event.result.code) for event in played.events] == [
        ("squad_squad_status", ""),
        ("squad_squad_decision_search", ""),
    ]
