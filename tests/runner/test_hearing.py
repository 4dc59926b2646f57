"""What a program says: events and a result, with its secrets masked and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outfitter.errors import StorageUnavailable
from outfitter.runner import CommandExecutor, Ended, WorkOrder

pytestmark = pytest.mark.anyio
TOKEN = "oft_the-token-of-the-run"
ORCHESTRATOR = "http://127.0.0.1:9999/mcp/s-secret-place"
Event = tuple[str, Mapping[str, Any]]


def order(program: str, folder: Path, **env: object) -> WorkOrder:
    file = folder / "program.py"
    file.write_text(program)
    run = {"id": "run-heard", "agent_name": "a", "prompt": "x", "session_id": "s", "state": "running"}
    executor = {"type": "command", "command": sys.executable, "args": [str(file)], "env": env}
    written = {
        "run": run,
        "attempt": 1,
        "agent": {"name": "a", "executor": executor},
        "gateway": {"url": "http://127.0.0.1:9/mcp", "token": TOKEN},
        "orchestrator_url": ORCHESTRATOR,
    }
    return msgspec.convert(written, WorkOrder)


async def heard(wanted: WorkOrder, folder: Path, **environment: str) -> tuple[Ended, list[Event]]:
    events: list[Event] = []
    executor = CommandExecutor(folder / "work", {"PATH": "/usr/bin", **environment})
    ended = await executor.execute(wanted, lambda kind, data: events.append((kind, data)))
    return ended, events


SAYS = """
import json, os, sys
document = json.load(sys.stdin)
secrets = [os.environ[name] for name in ("MY_PASSWORD", "PLACE")] + [document["mcp"]["token"]]
print(json.dumps({"type": "step", "data": {"texts": secrets, "url": document["orchestrator_url"], secrets[0]: 1}}))
print(json.dumps({"type": "info", "text": "more information", "level": os.environ["LOG_LEVEL"]}))
print(json.dumps({"type": "result", "result": [secrets, {"type": os.environ["KIND"]}]}))
"""


@pytest.mark.promise("N06")
async def test_secrets_are_masked_however_they_are_written_and_other_variables_are_not(tmp_path: Path) -> None:
    password = 'quote" back\\slash \u00e9'
    env = {"MY_PASSWORD": password, "PLACE": "${DB_PASSWORD}", "LOG_LEVEL": "${LEVEL}", "KIND": "type"}
    wanted = order(SAYS, tmp_path, **env)
    ended, events = await heard(wanted, tmp_path, DB_PASSWORD="open-sesame", LEVEL="info")
    assert (ended.state, ended.error) == ("done", None)
    assert [kind for kind, _ in events] == ["step", "info"]
    assert events[1][1] == {"text": "more information", "level": "info"}
    assert ended.result[1] == {"type": "type"}
    told = json.dumps([events, ended.result], ensure_ascii=False)
    for hidden in (json.dumps(password, ensure_ascii=False)[1:-1], "open-sesame", TOKEN, ORCHESTRATOR):
        assert hidden not in told


@pytest.mark.promise("N06")
async def test_a_secret_that_is_cut_off_at_the_end_of_the_text_is_not_shown_in_part(tmp_path: Path) -> None:
    program = f"print('x' * (1024 * 1024 - 12) + {TOKEN!r})"
    ended, _ = await heard(order(program, tmp_path), tmp_path)
    assert isinstance(ended.result, str)
    assert "oft_" not in ended.result
    assert "more" in ended.result


async def test_a_line_that_is_too_long_is_text_and_the_lines_around_it_are_events(tmp_path: Path) -> None:
    program = (
        "import json\nprint(json.dumps({'type': 'first'}))\nprint(json.dumps({'type': 'long', 'x': 'x' * 3_000_000}))\n"
        "print(json.dumps({'type': 'last'}))\nprint(json.dumps({'type': 'result', 'result': 'y' * 1_000_000}))\n"
    )
    ended, events = await heard(order(program, tmp_path), tmp_path)
    assert [kind for kind, _ in events] == ["first", "last"]
    assert ended.result == "y" * 1_000_000


async def test_a_run_whose_events_cannot_be_kept_fails_and_says_why(tmp_path: Path) -> None:
    def full(_: str, __: Mapping[str, Any]) -> None:
        raise StorageUnavailable("an event cannot be kept: No space left on device")

    program = 'print(\'{"type": "step"}\\n{"type": "result", "result": 1}\', flush=True)'
    for ending in ("", "; import time; time.sleep(600)"):
        wanted = order(program + ending, tmp_path)
        ended = await CommandExecutor(tmp_path / "work", {"PATH": "/usr/bin"}).execute(wanted, full)
        assert (ended.state, ended.error is not None and ended.error.code) == ("failed", StorageUnavailable.code)


async def test_a_program_s_temporary_files_are_gone_with_its_run_unless_it_has_a_place_of_its_own(
    tmp_path: Path,
) -> None:
    program = "import tempfile\nprint(tempfile.mkstemp()[1])"
    ended, _ = await heard(order(program, tmp_path), tmp_path)
    assert Path(str(ended.result)).is_relative_to(tmp_path / "work")
    assert not list((tmp_path / "work").iterdir())
    (tmp_path / "own").mkdir()
    ended, _ = await heard(order(program, tmp_path, TMPDIR=str(tmp_path / "own")), tmp_path)
    assert Path(str(ended.result)).is_relative_to(tmp_path / "own")
