"""One program of a run: everything it started is gone with it, and what nobody looks after is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from outfitter.errors import SpawnFailed, StorageUnavailable
from outfitter.runner import Program, end_orphans, end_run, run_program
from tests.app.kit import until
from tests.runner.kit import lives, marked, until_gone

pytestmark = pytest.mark.anyio
OWN_SPACE = str(Path("/proc/self/ns/pid").readlink())
_TREE = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
wait = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
children = [subprocess.Popen([sys.executable, "-c", wait], start_new_session=away) for away in (False, True)]
print(os.getpid(), *(child.pid for child in children), flush=True)
if sys.argv[1] == "stay":
    time.sleep(600)
"""


def tree(run_id: str, *args: str) -> Program:
    return Program(run_id, (sys.executable, "-c", _TREE, *args), dict(os.environ))


@pytest.mark.promise("RUNNER-TREE")
async def test_what_a_program_leaves_is_ended_when_it_exits() -> None:
    heard = bytearray()
    done = await run_program(tree("run-leaves", "go"), b"{}", heard.extend)
    assert done.code == 0
    assert not any(lives(int(pid)) for pid in heard.split())
    assert not marked("run-leaves")


@pytest.mark.promise("RUNNER-TREE")
async def test_a_program_that_is_cancelled_is_gone_with_its_whole_tree_even_if_it_does_not_want_to() -> None:
    heard = bytearray()
    async with anyio.create_task_group() as group:
        group.start_soon(run_program, tree("run-stays", "stay"), b"{}", heard.extend)
        await until(lambda: heard.endswith(b"\n"))
        assert all(lives(int(pid)) for pid in heard.split())
        group.cancel_scope.cancel()
    assert len(heard.split()) == 3
    assert not any(lives(int(pid)) for pid in heard.split())


async def test_a_program_that_reads_nothing_and_says_much_is_heard_to_its_end() -> None:
    heard = bytearray()
    code = "import sys; sys.stdout.write('x' * 3_000_000); sys.stderr.write('y' * 500_000); sys.exit(7)"
    program = Program("run-loud", (sys.executable, "-c", code), dict(os.environ))
    done = await run_program(program, b"z" * 5_000_000, heard.extend)
    assert (done.code, len(heard)) == (7, 3_000_000)
    assert 0 < len(done.stderr) <= 64 * 1024


async def test_what_goes_wrong_while_a_program_is_heard_ends_it_and_is_raised() -> None:
    heard = bytearray()

    def hear(data: bytes) -> None:
        heard.extend(data)
        if heard.endswith(b"\n"):
            raise StorageUnavailable("no space is left")

    with pytest.raises(StorageUnavailable, match="no space is left"):
        await run_program(tree("run-unheard", "stay"), b"{}", hear)
    pids = [int(pid) for pid in heard.split()]
    assert len(pids) == 3
    assert not any(map(lives, pids))
    quick = Program("run-unheard", (sys.executable, "-c", "print(1)"), dict(os.environ))
    with pytest.raises(StorageUnavailable, match="no space is left"):
        await run_program(quick, b"{}", hear)


async def test_marks_of_a_runner_in_a_container_mean_nothing_here() -> None:
    def sleeper(space: str) -> subprocess.Popen[bytes]:
        marks = {"OUTFITTER_RUN_ID": "run-elsewhere", "OUTFITTER_RUN_OWNER": f"1-1-somewhere@{space}"}
        return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, **marks})

    theirs, ours = sleeper("pid:[1]"), sleeper(OWN_SPACE)
    try:
        assert await anyio.to_thread.run_sync(end_orphans) >= 1
        await anyio.to_thread.run_sync(ours.wait, 60)
        await anyio.to_thread.run_sync(end_run, "run-elsewhere")
        assert theirs.poll() is None
    finally:
        for one in (theirs, ours):
            one.kill()
            one.wait(60)


async def test_what_cannot_be_started_is_an_error_that_names_the_program(tmp_path: Path) -> None:
    for argv in ((str(tmp_path / "nothing"),), (sys.executable, "a\0b")):
        with pytest.raises(SpawnFailed, match="cannot be started"):
            await run_program(Program("run-none", argv, {}), b"", lambda _: None)


@pytest.mark.promise("F25")
async def test_processes_of_a_runner_that_was_killed_are_ended_by_the_next_one(tmp_path: Path) -> None:
    script = (
        "import anyio, os, sys\nfrom outfitter.runner import Program, run_program\n"
        f"program = Program('run-orphaned', (sys.executable, '-c', {_TREE!r}, 'stay'), dict(os.environ))\n"
        "anyio.run(run_program, program, b'', lambda data: os.write(1, data))\n"
    )
    runner = subprocess.Popen(  # noqa: ASYNC220 - it is killed below
        [sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=tmp_path
    )
    assert runner.stdout is not None
    pids = [int(pid) for pid in runner.stdout.readline().split()]
    assert await anyio.to_thread.run_sync(end_orphans) == 0, "its runner lives"
    assert all(map(lives, pids))
    runner.kill()
    runner.wait()
    runner.stdout.close()
    assert await anyio.to_thread.run_sync(end_orphans) >= 3
    await until_gone(lambda: any(map(lives, pids)))
