"""Command lines that are refused whatever they do."""

from __future__ import annotations

import pytest

from outfitter.basics import Secret
from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef
from outfitter.errors import CommandForbidden, Refused, UpstreamLost
from outfitter.resolution import Supply, arm, resolve
from outfitter.upstream import SpawnRules, inline_code_fault, prepare_launch, require, secret_argument
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
