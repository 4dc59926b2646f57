"""``outfitter run`` and ``outfitter runner`` as somebody types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import CompletedProcess

import anyio.to_thread
import pytest

from tests.app.kit import Place
from tests.runner.kit import Team, team

pytestmark = pytest.mark.anyio


async def typed(one: Team, *args: str) -> CompletedProcess[str]:
    variables = {"OUTFITTER_TOKEN": one.up.token or "", "OUTFITTER_SERVER": one.up.url}
    place = Place(one.folder, variables)
    return await anyio.to_thread.run_sync(lambda: place.command(*args))


async def test_a_run_is_started_and_followed_to_its_end(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent()
        with one.runner():
            good = await typed(one, "run", "worker", "count 3 0", "--follow")
            assert good.returncode == 0, good.stderr
            assert good.stdout.count("tick") == 3
            assert good.stdout.splitlines()[-2:] == ["done", "3"]
            bad = await typed(one, "run", "worker", "fail", "--follow", "--json")
            assert bad.returncode == 1
            assert json.loads(bad.stdout)["error"]["code"] == "executor_failed"
            began = await typed(one, "run", "worker", "count 1 0")
            assert (began.returncode, "pending" in began.stdout) == (0, True)
            evil = await typed(one, "run", "worker", "bad", "--follow")
            assert "\x1b" not in evil.stdout


async def test_what_cannot_be_done_is_said_with_an_exit_code(tmp_path: Path) -> None:
    place = Place(tmp_path)
    nowhere = place.command("runner")
    assert (nowhere.returncode, "no service was named" in nowhere.stderr) == (3, True)
    plain = place.command("runner", "--server", "http://example.com")
    assert (plain.returncode, "in clear" in plain.stderr) == (6, True)
    unnamed = place.command("runner", "--server", "http://127.0.0.1:9", "--id", "a/b")
    assert (unnamed.returncode, "no name for a runner" in unnamed.stderr) == (3, True)
    away = place.command("runner", "--server", "http://127.0.0.1:9", "--once")
    assert (away.returncode, "cannot be reached" in away.stderr) == (7, True)
    file = place.command("runner", "--server", "http://127.0.0.1:9", "--database", "sqlite:///x")
    assert (file.returncode, "names a PostgreSQL" in file.stderr) == (3, True)


async def test_nothing_heavy_is_loaded_for_the_help() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from outfitter.cli.main import cli\n"
        "for line in (['--help'], ['runner', '--help'], ['run', '--help']):\n"
        "    assert CliRunner().invoke(cli, line).exit_code == 0\n"
        "assert not {'dbos', 'aiohttp', 'sqlalchemy'} & set(sys.modules)\n"
    )
    done = await anyio.run_process([sys.executable, "-c", program], check=False)
    assert done.returncode == 0, done.stderr
