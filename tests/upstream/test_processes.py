"""How a server's program is found, started, shut in, ended and, after a crash of our own, ended by the next life."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from outfitter.errors import CommandForbidden, InvalidServer, OutfitterError, SpawnFailed
from outfitter.resolution import ArmedServer
from outfitter.upstream import ProcessJournal, SpawnRules, StdioLimits, StopTimes, prepare_launch
from tests.upstream.stdio_kit import (
    CHILD,
    QUICK,
    a_child,
    a_wire,
    armed,
    ask,
    check_next_call_works,
    has_ended,
    zombies,
)

INHERITED = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR"}


def a_program(folder: Path, name: str, text: str, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return file


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def spawn_error(server: ArmedServer, rules: SpawnRules | None = None) -> OutfitterError:
    with pytest.raises(OutfitterError) as caught:
        async with a_wire(server=server, rules=rules):
            pass
    await check_next_call_works()
    assert caught.value.where == "server 'child'"
    return caught.value


# ── what is started ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.anyio
@pytest.mark.promise("P01")
@pytest.mark.parametrize("trick", ["npx; touch {}", "`touch {}`", "$(touch {})", "x | touch {}", "touch {}"])
async def test_no_shell_reads_a_command(tmp_path: Path, trick: str) -> None:
    marker = tmp_path / "marker"
    text = trick.format(marker)
    error = await spawn_error(armed("${COMMAND}", variables={"COMMAND": text}))
    assert isinstance(error, SpawnFailed)
    assert str(marker) not in str(error)
    if text != f"touch {marker}":
        with pytest.raises(InvalidServer, match="shell syntax"):
            armed(text)
    async with a_wire(text) as wire:
        assert text in (await ask(wire, "look", values=[]))["argv"]
    assert not marker.exists()


@pytest.mark.anyio
@pytest.mark.promise("P03")
@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "BASH_ENV",
        "ENV",
        "PATH",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "npm_config_script_shell",
        "GIT_SSH_COMMAND",
    ],
)
async def test_a_variable_that_steers_the_program_is_refused_unless_allowed_by_name(name: str) -> None:
    server = a_child(env={name: "CNRY-1"})
    error = await spawn_error(server)
    assert isinstance(error, CommandForbidden)
    assert name in str(error)
    assert "CNRY" not in str(error)
    assert prepare_launch(server, SpawnRules(allowed_env=frozenset({name}))).env[name] == "CNRY-1"


@pytest.mark.anyio
@pytest.mark.promise("P03")
async def test_a_program_gets_the_allow_list_and_what_was_declared_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLOUD_KEY", "CNRY-2")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    server = a_child(env={"MODE": "${M:-safe}", "LANG": "C"})
    async with a_wire(server=server) as wire:
        seen = await ask(wire, "look", values=["MODE", "LANG"])
    assert seen["values"] == {"MODE": "safe", "LANG": "C"}
    # The interpreter sets LC_CTYPE itself in the C locale.
    assert set(seen["names"]) - {"LC_CTYPE"} == (INHERITED & set(os.environ)) | {"MODE", "LANG"}


def test_a_launch_shows_neither_arguments_nor_variables() -> None:
    launch = prepare_launch(a_child("--key=${K}", env={"KEY": "${K}"}, variables={"K": "CNRY-3"}))
    assert "CNRY" not in repr(launch)
    assert launch.program == Path(sys.executable)


@pytest.mark.anyio
@pytest.mark.promise("SPAWN-CLEAR")
async def test_a_missing_program_is_named(tmp_path: Path) -> None:
    error = await spawn_error(armed("no-such-program"))
    assert "'no-such-program' is not on PATH" in str(error)
    assert "does not exist" in str(await spawn_error(armed("./no-such-program")))
    plain = a_program(tmp_path, "plain", "#!/bin/sh\n", mode=0o644)
    assert "is not executable" in str(await spawn_error(armed(str(plain))))
    lost = a_program(tmp_path, "lost", "#!/no/such/interpreter\n")
    assert "interpreter" in str(await spawn_error(armed(str(lost))))
    bare = a_program(tmp_path, "bare", "neither script nor program\n")
    assert "Exec format error" in str(await spawn_error(armed(str(bare))))
    assert "does not exist" in str(await spawn_error(armed(str(tmp_path))))


@pytest.mark.anyio
@pytest.mark.promise("SPAWN-CLEAR")
@pytest.mark.parametrize("value", ["CNRY\0", "CNRY\ud800"])
async def test_a_value_that_no_program_can_be_given_is_told_without_it(value: str) -> None:
    error = await spawn_error(a_child(env={"KEY": "${K}"}, variables={"K": value}))
    assert isinstance(error, SpawnFailed)
    assert "CNRY" not in str(error)


@pytest.mark.promise("SPAWN-CLEAR")
def test_programs_are_found_on_absolute_folders_of_path_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = a_program(tmp_path / "planted", "tool", "#!/bin/sh\n")
    real = a_program(tmp_path / "real", "tool", "#!/bin/sh\n")
    monkeypatch.chdir(planted.parent)
    for path in (f".:{real.parent}", f":{real.parent}", f"planted:{real.parent}"):
        assert prepare_launch(armed("tool"), environment={"PATH": path}).program == real
    with pytest.raises(SpawnFailed, match="not on PATH"):
        prepare_launch(armed("tool"), environment={"PATH": "."})


@pytest.mark.promise("SPAWN-CLEAR")
def test_a_relative_program_lies_in_its_cwd_and_a_link_stays_a_link(tmp_path: Path) -> None:
    tool = a_program(tmp_path / "bin", "tool", "#!/bin/sh\n")
    (tmp_path / "link").symlink_to(tool)
    assert prepare_launch(armed("bin/tool", cwd=str(tmp_path))).program == tool
    assert prepare_launch(armed(str(tmp_path / "link"))).program == tmp_path / "link"


@pytest.mark.anyio
@pytest.mark.promise("P06")
async def test_a_cwd_must_exist_and_lie_in_the_allowed_folders_after_links_are_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "root" / "inside", tmp_path / "outside"
    inside.mkdir(parents=True)
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (tmp_path / "root" / "file").write_text("x")
    rules = SpawnRules(roots=(tmp_path / "root",))
    async with a_wire(server=a_child(cwd=str(inside)), rules=rules) as wire:
        assert (await ask(wire, "look", values=[]))["cwd"] == str(inside)
    for bad in (outside, inside / "link", inside / ".." / ".." / "outside"):
        assert isinstance(await spawn_error(a_child(cwd=str(bad)), rules), CommandForbidden)
    assert "does not exist" in str(await spawn_error(a_child(cwd=str(tmp_path / "none")), rules))
    assert "is not a folder" in str(await spawn_error(a_child(cwd=str(tmp_path / "root" / "file")), rules))


# ── how it ends ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.anyio
@pytest.mark.promise("P13")
async def test_a_program_that_ignores_everything_is_killed_within_the_bound_with_its_group() -> None:
    async with a_wire("--stubborn", limits=StdioLimits(stop=StopTimes(stdin_closed=0.3, terminated=0.3))) as wire:
        pid = (await ask(wire, "look", values=[]))["pid"]
        sleeper = (await ask(wire, "start_sleeper"))["pid"]
        start = time.monotonic()
    assert 0.6 <= time.monotonic() - start < 2
    assert has_ended(pid, within=0)
    assert has_ended(sleeper)
    assert zombies() == []
    await check_next_call_works()


@pytest.mark.anyio
@pytest.mark.promise("P13")
async def test_a_program_that_ends_with_its_stdin_is_not_waited_for() -> None:
    async with a_wire(limits=StdioLimits()) as wire:
        await ask(wire, "echo")
        start = time.monotonic()
    assert time.monotonic() - start < 1.5


@pytest.mark.anyio
@pytest.mark.promise("P13")
async def test_what_a_program_leaves_in_its_group_is_ended_with_it() -> None:
    async with a_wire() as wire:
        sleeper = (await ask(wire, "start_sleeper"))["pid"]
        with pytest.raises(OutfitterError, match="exited with code 0"):
            await ask(wire, "exit", code=0)
        assert has_ended(sleeper)
    await check_next_call_works()


# ── what a killed Outfitter leaves ───────────────────────────────────────────────────────────────────────────────────

OWNER = """
import sys
import anyio
from outfitter.upstream import ProcessJournal
from pathlib import Path
from tests.upstream.stdio_kit import a_wire, ask

async def main():
    async with a_wire(*sys.argv[2:], journal=ProcessJournal(Path(sys.argv[1]))) as wire:
        print((await ask(wire, "look", values=[]))["pid"], flush=True)
        print((await ask(wire, "start_sleeper"))["pid"], flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


def a_killed_owner(journal: Path, *flags: str) -> list[int]:
    """The pids of a server and its grandchild whose Outfitter was killed."""
    root = str(Path(__file__).parents[2])
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(journal), *flags], stdout=subprocess.PIPE, cwd=root, text=True
    )
    assert owner.stdout is not None
    with owner, owner.stdout:
        pids = [int(owner.stdout.readline()) for _ in range(2)]
        assert ProcessJournal(journal).reap_orphans() == ()  # its owner lives
        owner.send_signal(signal.SIGKILL)
        owner.wait(timeout=20)
    return pids


@pytest.mark.anyio
@pytest.mark.promise("F26")
@pytest.mark.parametrize("flags", [["--stubborn"], []], ids=["the leader lives on", "only the grandchild lives on"])
async def test_the_next_life_ends_what_a_killed_one_left(tmp_path: Path, flags: list[str]) -> None:
    server, sleeper = a_killed_owner(tmp_path, *flags)
    assert has_ended(server, within=0.2 if flags else 5) == (not flags)
    assert not has_ended(sleeper, within=0)
    (file,) = files_in(tmp_path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert str(CHILD) not in file.read_text()
    (record,) = ProcessJournal(tmp_path).reap_orphans()
    assert record.pid == server
    assert has_ended(server)
    assert has_ended(sleeper)
    assert files_in(tmp_path) == []
    assert ProcessJournal(tmp_path).reap_orphans() == ()
    await check_next_call_works()


@pytest.mark.promise("F26")
@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({"started": 1}, False),
        ({"boot": "another"}, False),
        ({"space": "another"}, True),
        ({"owner": os.getpid(), "owner_started": "mine"}, True),
    ],
    ids=["reused pid", "restarted machine", "another container", "living owner"],
)
def test_a_process_that_the_record_does_not_mean_is_never_touched(
    tmp_path: Path, change: dict[str, object], *, stays: bool
) -> None:
    journal = ProcessJournal(tmp_path)
    innocent = subprocess.Popen([sys.executable, "-I", "-S", str(CHILD)], stdin=subprocess.PIPE, start_new_session=True)
    with innocent:
        file = journal.record(innocent.pid, "innocent")
        assert file is not None
        content = json.loads(file.read_text())
        gone = {"owner": 2**22 + 1, "owner_started": 1} | change
        if gone["owner_started"] == "mine":
            gone["owner_started"] = content["owner_started"]
        file.write_text(json.dumps(content | gone))
        assert journal.reap_orphans() == ()
        assert innocent.poll() is None
        assert file.exists() == stays
        assert innocent.stdin is not None
        innocent.stdin.close()
        assert innocent.wait(timeout=20) == 0


@pytest.mark.promise("F26")
def test_a_folder_that_is_missing_or_holds_something_else_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert ProcessJournal(tmp_path / "none").reap_orphans() == ()
    (tmp_path / "x.json").write_text("no record")
    assert ProcessJournal(tmp_path).reap_orphans() == ()
    assert "x.json" in caplog.text


@pytest.mark.anyio
@pytest.mark.promise("F26")
async def test_a_record_is_there_while_the_process_is(tmp_path: Path) -> None:
    folder = tmp_path / "journal"
    async with a_wire(journal=ProcessJournal(folder)) as wire:
        pid = (await ask(wire, "look", values=[]))["pid"]
        (file,) = files_in(folder)
        assert json.loads(file.read_text())["pid"] == pid
    assert files_in(folder) == []
    (tmp_path / "file").write_text("x")
    with pytest.raises(SpawnFailed, match="record cannot be written"):
        async with a_wire(journal=ProcessJournal(tmp_path / "file")):
            pass
    assert zombies() == []


# ── the sandbox ──────────────────────────────────────────────────────────────────────────────────────────────────────

ISOLATED = SpawnRules(sandbox="isolated")
STAND_IN = '#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done\nshift\nexec "$@"\n'


@pytest.mark.promise("SANDBOX")
def test_without_bubblewrap_an_isolated_server_is_not_started(tmp_path: Path) -> None:
    with pytest.raises(SpawnFailed, match="bwrap") as caught:
        prepare_launch(a_child(), ISOLATED, {"PATH": str(tmp_path)})
    assert "install" in caught.value.hint


@pytest.mark.promise("SANDBOX")
def test_an_isolated_server_sees_no_network_no_home_and_writes_only_its_cwd(tmp_path: Path) -> None:
    bwrap = a_program(tmp_path / "bin", "bwrap", STAND_IN)
    home, cwd = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    cwd.mkdir()
    environment = {"PATH": str(bwrap.parent), "HOME": str(home)}
    argv = " ".join(prepare_launch(a_child("--unshare-none", cwd=str(cwd)), ISOLATED, environment).argv)
    options, _, program = argv.partition(" -- ")
    assert options.startswith(f"{bwrap} --unshare-all --die-with-parent --ro-bind / /")
    assert f"--tmpfs {home}" in options
    assert options.endswith(f"--bind {cwd} {cwd} --chdir {cwd}")
    assert program.endswith("--unshare-none")
    for wide in (tmp_path, home, Path("/")):
        with pytest.raises(SpawnFailed, match="too wide"):
            prepare_launch(a_child(cwd=str(wide)), ISOLATED, environment)
    assert "--chdir /tmp" in " ".join(prepare_launch(a_child(), ISOLATED, environment).argv)


@pytest.mark.anyio
@pytest.mark.promise("SANDBOX")
async def test_a_wrapped_server_works_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bwrap = a_program(tmp_path / "bin", "bwrap", STAND_IN)
    monkeypatch.setenv("PATH", f"{bwrap.parent}:{os.environ['PATH']}")
    async with a_wire(rules=ISOLATED, limits=StdioLimits(stop=QUICK)) as wire:
        with anyio.fail_after(20):
            assert await ask(wire, "echo", inside=True) == {"inside": True}
