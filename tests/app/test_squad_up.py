"""``outfitter up --squad``: one endpoint for each agent of a squad file, before real servers, with no database."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from outfitter.catalog import MCPServer, ServerEntry
from outfitter.formats import write_squad_server
from outfitter.testing import Script, ScriptedTool, serve_http, stdio_server
from tests.app.kit import Place, Up, until
from tests.gateway.kit import raw
from tests.squad.folders import git, new_folder
from tests.upstream.real import npm_server, sqlite_server

pytestmark = pytest.mark.anyio
_PATIENCE = 90.0
DATABASE = {"read_query", "write_query", "create_table", "list_tables", "describe_table", "append_insight"}


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a squad, and whoever asks its endpoints."""

    place: Place

    @property
    def file(self) -> Path:
        """The squad file."""
        return self.place.folder / ".squad" / "mcp-config.json"

    def write(self, servers: dict[str, MCPServer], agents: dict[str, list[str]], **more: object) -> None:
        """Write the squad file, whole."""
        written = {name: write_squad_server(ServerEntry(server)) for name, server in servers.items()}
        self.put(json.dumps({"servers": written, "agentServers": agents, **more}))

    def put(self, text: str) -> None:
        """Put a file in the place of the squad file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        staged = self.file.with_name("staged")
        staged.write_text(text, encoding="utf-8")
        staged.replace(self.file)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One without anything in it."""
    return Repository(Place(tmp_path))


async def command(repository: Repository, *args: str) -> str:
    """What a command says; servers of the test answer meanwhile."""
    said = await anyio.to_thread.run_sync(lambda: repository.place.command(*args))
    assert said.returncode == 0, said.stderr
    return said.stdout


async def ask(up: Up, agent: str, method: str, **params: object) -> Any:  # noqa: ANN401 - JSON
    """What an agent's endpoint answers."""
    async with raw(f"{up.url}/mcp/{agent}") as client:
        return (await client.modern(method, params))[1]


async def shown(up: Up, agent: str) -> set[str]:
    """The tools that an agent sees, without those of the team's own server."""
    answer = await ask(up, agent, "tools/list")
    return {tool["name"] for tool in answer["result"]["tools"] if not tool["name"].startswith("squad_")}


async def until_shown(up: Up, agent: str, is_right: Callable[[set[str]], bool]) -> None:
    """Return when an agent's tools are right."""
    with anyio.fail_after(_PATIENCE):
        while not is_right(await shown(up, agent)):  # noqa: ASYNC110 - another process makes it so
            await anyio.sleep(0.05)


@pytest.mark.promise("DOC5-ISOLATION")
@pytest.mark.promise("N01")
async def test_the_backend_developer_has_database_tools_and_the_designer_has_not_at_list_and_at_call(
    repository: Repository, tmp_path: Path
) -> None:
    database = tmp_path / "orders.db"
    with sqlite3.connect(database) as orders:
        orders.execute("CREATE TABLE orders (id INTEGER)")
        orders.execute("INSERT INTO orders VALUES (41)")
    (tmp_path / "readme.txt").write_text("hello", encoding="utf-8")
    servers = {"sqlite": sqlite_server(database), "filesystem": npm_server("filesystem", str(tmp_path))}
    repository.write(servers, {"backend-dev": ["sqlite", "filesystem"], "designer": ["filesystem"]})
    async with repository.place.up("--squad", ".", "--open") as up:
        assert {f"sqlite_{tool}" for tool in DATABASE} <= await shown(up, "backend-dev")
        tools = await shown(up, "designer")
        assert "filesystem_read_text_file" in tools
        assert not [tool for tool in tools if "sqlite" in tool or "query" in tool]

        query: dict[str, Any] = {"name": "sqlite_read_query", "arguments": {"query": "SELECT id FROM orders"}}
        assert "41" in str((await ask(up, "backend-dev", "tools/call", **query))["result"])
        denied = await ask(up, "designer", "tools/call", **query)
        nothing = await ask(up, "designer", "tools/call", name="no_such_tool", arguments={})
        assert denied["error"]["code"] == nothing["error"]["code"]
        assert denied["error"]["message"] == nothing["error"]["message"].replace("no_such_tool", query["name"])
        async with raw(f"{up.url}/mcp/designer/sqlite") as client:
            assert (await client.modern("tools/list"))[0] == 404
    assert not list(repository.place.state.glob("registry*")), "no registry is made"


@pytest.mark.promise("SQUAD-UP")
async def test_an_agents_token_opens_its_own_endpoint_only(repository: Repository) -> None:
    async with serve_http(Script("x")) as served:
        repository.write({"x": MCPServer.http("x", served.url)}, {"lead": ["x"], "tester": []})
        token = (await command(repository, "--catalog", ".squad", "token", "issue", "tester")).strip()
        async with repository.place.up("--squad", ".") as up:
            assert (await up.tools("lead"))[0] == 401
            assert (await up.tools("lead", token))[0] == 403
            status, answer = await up.tools("tester", token)
            names = {tool["name"] for tool in answer["result"]["tools"]}
            assert (status, [name for name in names if not name.startswith("squad_")]) == (200, [])
            assert token not in up.log()


@pytest.mark.promise("SQUAD-UP-TEAM")
async def test_every_agent_gets_the_teams_own_server_and_is_known_there_by_its_name(
    repository: Repository, tmp_path: Path
) -> None:
    new_folder(tmp_path)
    repository.write({}, {"flight": [], "eecom": [], "stranger": []})
    async with repository.place.up("--squad", ".", "--open") as up:
        names = {tool["name"] for tool in (await ask(up, "eecom", "tools/list"))["result"]["tools"]}
        assert {"squad_squad_status", "squad_squad_decision_search"} == names
        read = {
            agent: {
                whose: "result" in await ask(up, agent, "resources/read", uri=f"squad://agents/{whose}/history")
                for whose in ("eecom", "flight")
            }
            for agent in ("flight", "eecom", "stranger")
        }
        assert read == {
            "flight": {"eecom": True, "flight": True},
            "eecom": {"eecom": True, "flight": False},
            "stranger": {"eecom": False, "flight": False},
        }
        roster = await ask(up, "stranger", "resources/read", uri="squad://roster")
        assert "EECOM" in str(roster["result"])


@pytest.mark.promise("SQUAD-UP-TEAM")
async def test_the_backlog_is_asked_of_the_tracker_that_the_file_names(repository: Repository, tmp_path: Path) -> None:
    new_folder(tmp_path)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "remote", "add", "origin", "https://github.com/acme/shop.git")
    issue = {"number": 7, "title": "Mend the reactor", "state": "open", "labels": [{"name": "squad:eecom"}]}
    found = {"content": [{"type": "text", "text": json.dumps({"total_count": 1, "items": [issue]})}]}
    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    tools = (ScriptedTool("search_issues", schema=schema, kind="answer", result=found),)
    repository.write({"github": stdio_server(Script("github", tools=tools))}, {"eecom": []})
    async with repository.place.up("--squad", ".", "--open") as up:
        backlog = await ask(up, "eecom", "resources/read", uri="squad://backlog")
        told = json.loads(backlog["result"]["contents"][0]["text"])
        assert (told["source"], told["items"][0]["title"]) == ("github", "Mend the reactor"), told
        assert await shown(up, "eecom") == set(), "asking for the team gives the agent nothing"


@pytest.mark.promise("SQUAD-UP")
async def test_a_changed_file_is_used_and_a_bad_one_keeps_the_last_good(repository: Repository) -> None:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url)
        repository.write({"x": server}, {"lead": ["x"]})
        async with repository.place.up("--squad", ".", "--open") as up:
            assert "x_echo" in await shown(up, "lead")
            repository.put('{"servers": {}, "agentServers": {"lead": ["x"]}}')
            news = repository.place.state / "gateway.json"
            await until(lambda: json.loads(news.read_text())["problem"] != "")
            assert "x_echo" in await shown(up, "lead")
            assert "no server 'x'" in await command(repository, "status")
            repository.write(
                {"x": server}, {"lead": ["x"]}, toolRestrictions={"lead": {"x": {"include": ["add", "x_log"]}}}
            )
            await until_shown(up, "lead", lambda tools: tools == {"x_add", "x_log"})
            await until(lambda: json.loads(news.read_text())["problem"] == "")
            assert "not used" not in await command(repository, "status")


@pytest.mark.promise("DOC5-ONE-COMMAND")
async def test_a_new_server_takes_one_command_while_the_gateway_runs(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "readme.txt").write_text("hello", encoding="utf-8")
    repository.write({}, {"lead": [], "designer": []})
    server = npm_server("filesystem", str(tmp_path))
    theirs = {"files": {"command": server.command, "args": list(server.args)}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": theirs}), encoding="utf-8")
    async with repository.place.up("--squad", ".", "--open") as up:
        assert await shown(up, "lead") == set()
        await command(repository, "squad", "import", ".mcp.json", "--to", "lead")
        await until_shown(up, "lead", lambda tools: "files_read_text_file" in tools)
        path = str(tmp_path / "readme.txt")
        answer = await ask(up, "lead", "tools/call", name="files_read_text_file", arguments={"path": path})
        assert "hello" in str(answer["result"])
        assert await shown(up, "designer") == set()


@pytest.mark.promise("SQUAD-UP-TEAM")
async def test_a_server_of_the_file_that_is_called_squad_stays_what_it_is(repository: Repository) -> None:
    async with serve_http(Script("x")) as served:
        repository.write({"squad": MCPServer.http("squad", served.url)}, {"lead": ["squad"], "tester": []})
        async with repository.place.up("--squad", ".", "--open") as up:
            answer = await ask(up, "lead", "tools/list")
            assert "squad_echo" in {tool["name"] for tool in answer["result"]["tools"]}
            assert (await ask(up, "tester", "tools/list"))["result"]["tools"] == []
            assert "has a server 'squad' of its own" in up.log()


@pytest.mark.promise("N02")
@pytest.mark.parametrize(
    ("change", "code", "cause"),
    [
        ({"agentServers": {"lead": ["githbu"]}}, 4, "no server 'githbu' in 'servers' (did you mean 'github'?)"),
        ({"toolRestrictions": {"led": {}}}, 4, "no agent 'led' in 'agentServers' (did you mean 'lead'?)"),
        ({"roles": {"lead": "leed"}}, 3, "no preset for role 'leed'"),
        ({"servers": 7}, 3, "expected an object"),
    ],
)
def test_a_file_that_names_what_is_not_there_is_refused_with_the_cause(
    repository: Repository, change: dict[str, Any], code: int, cause: str
) -> None:
    file: dict[str, Any] = {"servers": {"github": {"command": "x"}}, "agentServers": {"lead": ["github"]}}
    repository.put(json.dumps({**file, **change}))
    for command in (("up", "--squad", ".", "--port", "0"), ("squad", "check")):
        ended = repository.place.command(*command)
        assert (ended.returncode, cause in ended.stderr) == (code, True), ended.stderr


@pytest.mark.promise("N02")
async def test_an_empty_list_and_an_unknown_agent_give_no_tools_and_the_reason(repository: Repository) -> None:
    async with serve_http(Script("x")) as served:
        server = MCPServer.http("x", served.url)
        nothing = {"closed": {"x": {"include": list[str]()}}}
        repository.write({"x": server}, {"none": [], "closed": ["x"]}, toolRestrictions=nothing)
        async with repository.place.up("--squad", ".", "--open") as up:
            assert (await shown(up, "none"), await shown(up, "closed")) == (set(), set())
            assert (await up.tools("nobody"))[0] == 404
    why = repository.place.command("--catalog", ".squad", "why-not", "closed", "x/echo").stdout
    assert "its include list is empty" in why
    assert "it has no server" in repository.place.command("squad", "check").stdout


@pytest.mark.promise("SQUAD-UP")
async def test_a_client_that_starts_commands_gets_an_agent_of_the_squad_on_stdin_and_stdout(
    repository: Repository,
) -> None:
    repository.write({"x": stdio_server(Script("x"))}, {"lead": ["x"], "tester": []})
    arguments = ["-m", "outfitter", "--catalog", ".squad", "gateway", "--stdio", "--agent", "lead"]
    started = StdioServerParameters(
        command=sys.executable, args=arguments, env=repository.place.environment, cwd=repository.place.folder
    )
    async with Client(stdio_client(started)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"x_echo", "squad_squad_status"} <= names


@pytest.mark.promise("SQUAD-UP")
async def test_several_workers_serve_one_squad(repository: Repository) -> None:
    repository.write({"x": stdio_server(Script("x"))}, {"lead": ["x"], "tester": []})
    async with repository.place.up("--squad", ".", "--open", "--workers", "2") as up:
        for _ in range(4):
            assert "x_echo" in await shown(up, "lead")
            assert await shown(up, "tester") == set()
