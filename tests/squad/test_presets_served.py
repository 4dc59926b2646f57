"""The security table where it is enforced: at the gateway before real servers, and in the hooks of the agent SDKs."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.adapters import GatewayRoute
from outfitter.catalog import Agent, Catalog, InlineServer, MCPServer
from outfitter.squad import PRESETS, apply_presets, fit_server, preset_for
from outfitter.testing import ModelSays, Script, ScriptedTool, model_calls, stdio_server
from outfitter.upstream import Connection
from tests.adapters.candidates import CLAUDE, COPILOT
from tests.adapters.kit import Candidate, play, prompt_of
from tests.gateway.kit import Running, client, gateway
from tests.squad.test_presets import FOLDER, OFFERED, TOOLS
from tests.upstream.real import npm_server, sqlite_server

pytestmark = pytest.mark.anyio
FILE_TOOLS = {tool for tool in TOOLS["filesystem"] if tool != "delete_file"}  # the real server cannot delete
SQL_TOOLS = {"read_query", "write_query", "create_table", "list_tables", "describe_table", "append_insight"}
SQL_READS = {"read_query", "list_tables", "describe_table"}


def scripted(name: str) -> MCPServer:
    """A server process with the tools of the table, all of which answer."""
    done = {"content": [{"type": "text", "text": "done"}]}
    tools = tuple(ScriptedTool(tool, kind="answer", result=done) for tool in TOOLS[name])
    return replace(stdio_server(Script(name, tools=tools)), name=name)


def workspace(folder: Path) -> Path:
    """A workspace with something in every place."""
    for name in ("src", "tests", "assets", "docs"):
        (folder / name).mkdir(parents=True)
        (folder / name / "kept.txt").write_text("kept", encoding="utf-8")
    with sqlite3.connect(folder / "data.db") as database:
        database.execute("CREATE TABLE orders (id INTEGER)")
    return folder


def crew(folder: Path) -> tuple[Agent, ...]:
    """One agent for each role, each with all four servers, narrowed by its preset and by nothing else."""
    servers = {
        "github": scripted("github"),
        "filesystem": npm_server("filesystem", str(folder)),
        "sqlite": sqlite_server(folder / "data.db"),
        "deploy": scripted("deploy"),
    }
    uses = {name: InlineServer(server) for name, server in servers.items()}
    agents = [Agent(preset.role, role=preset.role, servers=uses) for preset in PRESETS]
    return tuple(apply_presets(Catalog.of([], [], agents)).agents.values())


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[Running]:
    async with gateway(*crew(workspace(folder))) as running:
        yield running


async def tools_at(connection: Connection) -> set[str]:
    return {tool["name"] for tool in await connection.use(lambda link: link.list_tools())}


async def said(connection: Connection, tool: str, **arguments: Any) -> str:  # noqa: ANN401 - arguments of any tool
    """What the model is told about a call, whether it was made or not."""
    result = await connection.use(lambda link: link.call_tool(tool, arguments))
    return " ".join(piece.get("text", "") for piece in result["content"])


@pytest.mark.promise("SQUAD-TABLE")
@pytest.mark.promise("N01")
async def test_each_role_gets_its_row_at_the_list_and_at_the_call(tmp_path: Path) -> None:
    async with served(tmp_path / "w") as running:
        for role, cells in OFFERED.items():
            sql = SQL_TOOLS if role == "backend-dev" else SQL_READS if role in {"lead", "tester"} else set[str]()
            wanted = {
                *(f"github_{tool}" for tool in cells["github"]),
                *(f"deploy_{tool}" for tool in cells["deploy"]),
                *(f"filesystem_{tool}" for tool in FILE_TOOLS),
                *(f"sqlite_{tool}" for tool in sql),
            }
            async with client(running.url(role)) as connection:
                assert await tools_at(connection) == wanted, role
                await _try_scripted(connection, role)
                await _try_files(connection, role, tmp_path / "w")
                await _try_sql(connection, sql)


async def _try_scripted(connection: Connection, role: str) -> None:
    for server in ("github", "deploy"):
        for tool in TOOLS[server]:
            if tool in OFFERED[role][server]:
                assert await said(connection, f"{server}_{tool}") == "done"
            else:
                await _is_unknown(connection, f"{server}_{tool}")


async def _is_unknown(connection: Connection, tool: str) -> None:
    with pytest.raises(Exception, match=f"Unknown tool: {tool}"):
        await connection.use(lambda link: link.call_tool(tool, {}))


async def _try_files(connection: Connection, role: str, folder: Path) -> None:
    assert "kept" in await said(connection, "filesystem_read_text_file", path="src/kept.txt")
    assert "kept" in await said(connection, "filesystem_read_multiple_files", paths=["src/kept.txt", "docs/kept.txt"])
    mine, new = FOLDER.get(role, "src"), f"{role}.txt"
    assert "wrote" in await said(connection, "filesystem_write_file", path=f"{mine}/{new}", content="x")
    if role not in FOLDER:
        return
    absolute = str(folder / mine / new)
    assert "wrote" in await said(connection, "filesystem_write_file", path=absolute, content="x")
    before = files_of(folder)
    assert f"{mine}/{new}" in before
    reason = f"{role}: writes only"
    for path in (f"src/{new}", f"{mine}/../src/{new}", str(folder / "src" / new), f"{mine}\\{new}", f"~/{new}"):
        assert reason in await said(connection, "filesystem_write_file", path=path, content="changed")
    for ends in (("src/kept.txt", f"{mine}/stolen.txt"), (f"{mine}/{new}", "src/moved.txt")):
        assert reason in await said(connection, "filesystem_move_file", source=ends[0], destination=ends[1])
    assert files_of(folder) == before


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of the workspace."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def _try_sql(connection: Connection, sql: set[str]) -> None:
    for tool in SQL_TOOLS - sql:
        await _is_unknown(connection, f"sqlite_{tool}")
    if "read_query" not in sql:
        return
    assert await said(connection, "sqlite_read_query", query="SELECT count(*) > 9 AS n FROM orders") == "[{'n': 0}]"
    if "write_query" in sql:
        assert "affected_rows" in await said(connection, "sqlite_write_query", query="INSERT INTO orders VALUES (1)")
    else:
        assert "read-only" in await said(connection, "sqlite_read_query", query="DROP TABLE orders")


def wish(candidate: Candidate, tool: str) -> str:
    """The name under which this SDK shows a tool of a server that it connects itself."""
    return f"mcp__filesystem__{tool}" if candidate is CLAUDE else f"filesystem-{tool}"


@pytest.mark.promise("SQUAD-HOOKS")
@pytest.mark.parametrize("candidate", [CLAUDE, COPILOT], ids=lambda candidate: candidate.id)
async def test_the_hooks_of_an_sdk_deny_with_the_same_reason(candidate: Candidate, tmp_path: Path) -> None:
    folder = workspace(tmp_path / "w")
    tester = preset_for("tester")
    assert tester is not None
    server = fit_server(tester, npm_server("filesystem", str(folder)))
    turns = (
        model_calls(wish(candidate, "write_file"), {"path": "src/a.txt", "content": "x"}),
        model_calls(wish(candidate, "write_file"), {"path": "tests/a.txt", "content": "x"}),
        ModelSays("done"),
    )
    # Claude Code tells the server its own folder as the one to work in.
    here = {"cwd": folder} if candidate is CLAUDE else {}
    played = await play(candidate, prompt_of(mcps=[server]), *turns, route="native", **here)
    denied, done = played.requests[-1].answers
    assert "tester: writes only under tests/**" in denied
    assert "wrote" in done.lower()
    assert [event.result.code for event in played.events] == ["denied", ""]
    assert not (folder / "src/a.txt").exists()
    assert (folder / "tests/a.txt").read_text() == "x"


@pytest.mark.promise("SQUAD-HOOKS")
@pytest.mark.parametrize("candidate", [CLAUDE, COPILOT], ids=lambda candidate: candidate.id)
async def test_an_sdk_at_the_gateway_hears_the_same_reason(candidate: Candidate, tmp_path: Path) -> None:
    async with served(tmp_path / "w") as running:
        real = npm_server("filesystem", str(tmp_path / "w"))
        route = GatewayRoute(running.url("tester"))
        turns = (
            model_calls(wish(candidate, "write_file"), {"path": "src/a.txt", "content": "x"}),
            ModelSays("done"),
        )
        played = await play(candidate, prompt_of(mcps=[real]), *turns, route="gateway", gateway=route)
    assert "tester: writes only under tests/**" in played.requests[-1].answers[0]
    assert not (tmp_path / "w/src/a.txt").exists()
