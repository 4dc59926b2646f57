"""Command lines that are refused whatever they do."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outfitter.basics import Secret
from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.errors import CommandForbidden, Refused, UpstreamLost
from outfitter.resolution import Supply, arm, resolve
from outfitter.upstream import (
    ProgramChanged,
    ProgramRegister,
    SpawnRules,
    inline_code_fault,
    prepare_launch,
    require,
    secret_argument,
)
from tests.upstream.stage import armed


@pytest.mark.promise("P02")
@pytest.mark.parametrize(
    ("command", "args"),
    [
        ("sh", ("-c", "touch marker")),
        ("/bin/bash", ("script.sh",)),
        ("python3.11", ("-c", "print(1)")),
        ("python", ("-c", "print(1)")),
        ("node", ("-e", "1")),
        ("node", ("--eval=1",)),
        ("env", ("X=1", "npx", "pkg")),
        ("npx", ("-c", "rm x")),
        ("uvx", ("--from", "git+https://example.com/x", "tool")),
        ("perl", ("-e", "1")),
        ("sudo", ("npx", "pkg")),
    ],
)
def test_a_command_line_that_carries_code_is_refused(command: str, args: tuple[str, ...]) -> None:
    assert inline_code_fault(command, args) is not None
    with pytest.raises(CommandForbidden):
        prepare_launch(armed(MCPServer.stdio("x", command, args)))


@pytest.mark.parametrize(
    ("command", "args"),
    [("npx", ("-y", "pkg@1.0")), ("uvx", ("mcp-server-git",)), ("python", ("-m", "server")), ("node", ("server.js",))],
)
def test_a_command_line_that_names_what_it_runs_is_fine(command: str, args: tuple[str, ...]) -> None:
    assert inline_code_fault(command, args) is None


def test_an_administrator_may_allow_inline_code() -> None:
    rules = SpawnRules(inline_code=True)
    assert prepare_launch(armed(MCPServer.stdio("x", "sh", ("-c", "true"))), rules).program.name == "sh"


@pytest.mark.promise("P05")
def test_a_secret_in_the_arguments_is_refused_before_anything_starts() -> None:
    server = MCPServer.stdio("x", "true", ("--token", "${MY_TOKEN}"))
    catalog = Catalog.of([ServerEntry(server)], [], [Agent("a", servers={"x": ServerRef("x")})])
    plan = arm(resolve("a", catalog), Supply({"MY_TOKEN": Secret("CNRY-8")}))
    assert secret_argument(server.args) == "MY_TOKEN"
    with pytest.raises(CommandForbidden, match="MY_TOKEN") as raised:
        prepare_launch(plan.servers["x"])
    assert "CNRY-8" not in str(raised.value)


@pytest.mark.promise("F15")
def test_a_required_server_that_is_gone_refuses_the_run_and_an_optional_one_does_not() -> None:
    optional, needed = MCPServer.stdio("a", "true"), MCPServer.stdio("b", "true", required=True)
    planned = {server.name: armed(server).planned for server in (optional, needed)}
    require({"a": UpstreamLost("gone")}, planned)
    with pytest.raises(Refused, match="gone"):
        require({"a": UpstreamLost("fine"), "b": UpstreamLost("gone")}, planned)


def _program(folder: Path, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    program = folder / "server-program"
    program.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.promise("P07")
def test_a_program_that_was_replaced_is_refused_until_it_is_approved(tmp_path: Path) -> None:
    program = _program(tmp_path / "bin", "exit 0")
    register = ProgramRegister(tmp_path / "state")
    rules, server = SpawnRules(programs=register), armed(MCPServer.stdio("x", str(program)))
    assert prepare_launch(server, rules).program == program
    assert prepare_launch(server, rules).program == program
    _program(tmp_path / "bin", "exit 1")
    with pytest.raises(ProgramChanged, match="was replaced") as raised:
        prepare_launch(server, rules)
    assert raised.value.code == "exec_changed"
    assert register.approve("x") == 1
    assert prepare_launch(server, rules).program == program


@pytest.mark.promise("P07")
def test_a_program_planted_earlier_on_the_path_is_noticed(tmp_path: Path) -> None:
    real, planted = tmp_path / "real", tmp_path / "planted"
    _program(real, "exit 0")
    rules = SpawnRules(programs=ProgramRegister(tmp_path / "state"))
    server = armed(MCPServer.stdio("x", "server-program"))
    path = f"{planted}{os.pathsep}{real}"
    assert prepare_launch(server, rules, {"PATH": path}).program == real / "server-program"
    _program(planted, "exit 0")
    with pytest.raises(ProgramChanged, match="is now found at"):
        prepare_launch(server, rules, {"PATH": path})


def test_a_touched_program_with_the_same_content_is_the_same_program(tmp_path: Path) -> None:
    program = _program(tmp_path / "bin", "exit 0")
    rules, server = SpawnRules(programs=ProgramRegister(tmp_path / "state")), armed(MCPServer.stdio("x", str(program)))
    prepare_launch(server, rules)
    os.utime(program, (1, 1))
    assert prepare_launch(server, rules).program == program
