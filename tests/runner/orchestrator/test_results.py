"""What an agent reads of another agent's result: never too long, never what a terminal would obey. N11."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runner.orchestrator.kit import stage

pytestmark = [pytest.mark.anyio, pytest.mark.promise("ORCHESTRATOR-RESULTS")]
RED = "\x1b[31mred\x1b]0;title\x07"
LONGEST = 64 * 1024


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (None, None),
        ("plain\n\ttext ✓", "plain\n\ttext ✓"),
        (RED, "\\x1b[31mred\\x1b]0;title\\x07"),
        ({RED: [RED, 1, None, {"deep": "\u202etxt"}]}, None),
        ("null\x00 c1\x9b", "null\\x00 c1\\x9b"),
    ],
)
async def test_what_a_terminal_would_obey_is_written_out(tmp_path: Path, result: Any, shown: object) -> None:  # noqa: ANN401 - any JSON
    async with stage(tmp_path, "lead", "worker") as here:
        top = await here.begin()
        child = (await here.call(top, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        await here.play(child, result=result)
        said = await here.call(top, "get_agent_result", session_id=child)
        written = json.dumps(said.shown, ensure_ascii=False) + said.text
        assert not any(bad in written for bad in ("\x1b", "\\u001b", "\u202e", "\x9b", "\\u0000"))
        if shown is not None or result is None:
            assert said["result"] == shown
        assert json.loads(said.text) == said.shown


@pytest.mark.parametrize("kind", ["text", "list", "deep"])
async def test_a_result_that_is_too_long_is_cut_and_says_so(tmp_path: Path, kind: str) -> None:
    async with stage(tmp_path, "lead", "worker") as here:
        top = await here.begin()
        child = (await here.call(top, "start_agent", agent="worker", prompt="x", mode="poll"))["session_id"]
        deep: Any = "x" * 200_000
        for _ in range(25):
            deep = [deep]
        result: dict[str, Any] = {"text": "ä" * 500_000, "list": ["word"] * 100_000, "deep": deep}
        await here.play(child, result=result[kind])
        said = await here.call(top, "get_agent_result", session_id=child)
        assert said["is_cut"] is True
        assert said["length"] >= 200_000
        assert len(said["result"]) == LONGEST + 1
        assert len(said.text) < LONGEST * 2
