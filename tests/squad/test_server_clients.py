"""Clients that others wrote talk to ``outfitter squad serve``: the Claude Agent SDK and the Copilot SDK.

The Inspector does so in ``make conformance``, where it is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.catalog import MCPServer
from outfitter.testing import ModelSays, model_calls
from tests.adapters.candidates import CLAUDE, COPILOT
from tests.adapters.kit import Candidate, play, prompt_of
from tests.squad.folders import new_folder
from tests.squad.server_kit import SERVE
from tests.upstream.real import PATIENT


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
