"""``outfitter run`` and ``outfitter runner`` as somebody types them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import CompletedProcess

import anyio.to_thread
import pytest

from tests.app.kit import Place, until_answer
from tests.runner.kit import PATIENCE, Team, team

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
    assert "is the service running, and is --server right?" in away.stderr
    file = place.command("runner", "--server", "http://127.0.0.1:9", "--database", "sqlite:///x")
    assert (file.returncode, "names a PostgreSQL" in file.stderr) == (3, True)


HELLO = """
import json, sys
order = json.load(sys.stdin)
print(json.dumps({"type": "result", "result": "You said: " + order["prompt"]}))
"""


def write_hello(place: Place) -> None:
    place.write("agents/mute.json", {"name": "mute"})
    program = place.write("hello.py", HELLO)
    executor = {"type": "command", "command": sys.executable, "args": [str(program)]}
    place.write("agents/hello.json", {"name": "hello", "executor": executor})


def passes_of(place: Place) -> list[Path]:
    return list((place.state / "runner").rglob("pass.json"))


async def asked(place: Place, *args: str) -> CompletedProcess[str]:
    return await anyio.to_thread.run_sync(lambda: place.command(*args))


@pytest.mark.promise("RUNNER-BESIDE")
@pytest.mark.parametrize("options", [("--open",), ("--workers", "2")])
async def test_up_with_a_runner_executes_runs_and_takes_it_along_when_it_ends(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    place = Place(tmp_path / "place", {"OUTFITTER_TOKEN": ""})
    write_hello(place)
    async with place.up("--runner", *options) as up:
        done = await asked(place, "run", "hello", "Good morning", "--follow")
        assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["done", "You said: Good morning"]), done.stderr
        (file,) = passes_of(place)
        assert file.stat().st_mode & 0o077 == 0
        token = json.loads(file.read_text())["token"]
        assert await up.stop() == 0
        assert token not in up.log()
    assert passes_of(place) == []
    async with place.up(token=token) as up:
        await until_answer(lambda: up.api("GET", "/runs"), 401)  # its token has ended with it


async def test_a_runner_beside_an_open_gateway_of_this_machine_needs_no_token(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", {"OUTFITTER_TOKEN": ""})
    write_hello(place)
    async with place.up("--open"):
        assert (await asked(place, "run", "hello", "Hi")).returncode == 0
        done = await asked(place, "runner", "--once", "--no-orchestrator")
        assert (done.returncode, "Executed 1 runs (1 done)" in done.stdout) == (0, True), done.stderr
        assert "the orchestrator is off: --no-orchestrator was given" in done.stderr
        assert passes_of(place) == []


async def test_what_no_runner_could_execute_is_said_before_a_run_is_made(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", {"OUTFITTER_TOKEN": ""})
    write_hello(place)
    async with place.up() as up:
        mute = await asked(place, "run", "mute", "Hi")
        assert (mute.returncode, '"executor": {"type"' in mute.stderr) == (3, True), mute.stderr
        near = await asked(place, "run", "helo", "Hi")
        assert (near.returncode, "did you mean 'hello'?" in near.stderr) == (4, True), near.stderr
        nobody = await asked(place, "run", "hello", "Hi", "--server", up.url)
        assert (nobody.returncode, "OUTFITTER_TOKEN" in nobody.stderr) == (6, True), nobody.stderr
        assert (await up.api("GET", "/runs"))[1]["items"] == []
    files = await asked(place, "up", "--files", "--runner")
    assert (files.returncode, "leave out --files" in files.stderr) == (3, True)


async def test_whoever_follows_a_run_hears_that_no_runner_is_alive(tmp_path: Path) -> None:
    place = Place(tmp_path / "place", {"OUTFITTER_TOKEN": ""})
    write_hello(place)
    async with place.up() as up:
        command = [sys.executable, "-m", "outfitter", "run", "hello", "Hi", "--follow"]
        async with await anyio.open_process(command, cwd=place.folder, env=place.environment) as process:
            assert process.stderr is not None
            with anyio.fail_after(PATIENCE):
                said = await process.stderr.receive()
            assert b"no runner is alive; start one: outfitter runner" in said
            (run,) = (await up.api("GET", "/runs"))[1]["items"]
            assert (await up.api("POST", f"/runs/{run['id']}/stop"))[0] < 300
            with anyio.fail_after(PATIENCE):
                assert await process.wait() == 1


async def test_nothing_heavy_is_loaded_for_the_help() -> None:
    program = (
        "import sys; from click.testing import CliRunner; from outfitter.cli.main import cli\n"
        "for line in (['--help'], ['runner', '--help'], ['run', '--help']):\n"
        "    assert CliRunner().invoke(cli, line).exit_code == 0\n"
        "assert not {'dbos', 'aiohttp', 'sqlalchemy'} & set(sys.modules)\n"
    )
    done = await anyio.run_process([sys.executable, "-c", program], check=False)
    assert done.returncode == 0, done.stderr
