"""``outfitter up`` with its registry: one port, a seed, changes from both sides, starts without the database."""

from __future__ import annotations

import json
import socket
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import aiohttp
import anyio
import pytest

from outfitter.testing import Script, serve_http, stdio_server
from tests.app.kit import Place, Up, ended, until, until_answer

pytestmark = pytest.mark.anyio
NOWHERE = "http://127.0.0.1:9/mcp"


@pytest.mark.promise("SERVICE-SEED")
async def test_a_first_start_seeds_the_registry_and_prints_an_admin_token_once(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    token = place.command("token", "issue", "a").stdout.strip()
    assert not (place.state / "registry.sqlite").exists()
    async with place.up() as up:
        assert up.token is not None
        status, shown, _ = await up.api("GET", "/agents/a")
        assert (status, shown["name"]) == (200, "a")
        status, listed, _ = await up.api("GET", "/api/v1/mcp-servers")
        assert [(one["id"], one["updated_by"]) for one in listed["items"]] == [("x", "folder")]
        assert (await up.tools("a", token))[0] == 200, "a token from before the registry"
        assert (await up.tools("a"))[0] == 401
        assert (await up.tools("a", up.token))[0] == 403, "the admin's is for no endpoint"
        assert (await up.api("GET", "/nothing"))[0] == 404
        assert await up.page("/health") == (200, "alive")
        assert await up.stop() == 0
        assert "Traceback" not in up.log()
        admin = up.token
    for file in ("registry.sqlite", "registry.keys", "catalog.snapshot", "applied.json"):
        assert (place.state / file).stat().st_mode & 0o077 == 0, file
    async with place.up(token=admin) as again:
        assert "oft_" not in again.log()
        await until_answer(lambda: again.api("GET", "/agents"), 200)
        assert (await again.tools("a", token))[0] == 200


@pytest.mark.promise("SERVICE-FILES")
async def test_with_files_there_is_no_registry_and_no_api(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    async with place.up("--files", "--open") as up:
        assert (await up.tools("a"))[0] == 200
        assert (await up.api("GET", "/agents"))[0] == 404
        assert await up.stop() == 0
    assert not (place.state / "registry.sqlite").exists()


async def test_without_a_folder_it_starts_with_an_empty_registry_and_a_bad_folder_begins_none(tmp_path: Path) -> None:
    place = Place(tmp_path / "empty")
    async with place.up("--open") as up:
        assert (await up.api("GET", "/agents"))[1]["items"] == []
        assert (await up.api("POST", "/agents", {"name": "b"}))[0] == 201
        assert (await up.tools("b"))[0] == 200
        place.write_catalog(NOWHERE)
        await until(lambda: "2 entries of a folder that the registry does not know" in up.log())
        assert (await up.api("GET", "/agents/a"))[0] == 404
        assert await up.page("/ready") == (200, "ready")
    bad = Place(tmp_path / "bad")
    bad.write("agents/a.json", "{ this is no agent")
    assert await ended(bad.begin()) == 3
    assert "Listening" not in bad.log.read_text()


async def test_tokens_of_the_file_are_taken_over_and_none_of_them_writes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    admin = place.command("token", "--files", "issue", "--admin").stdout.strip()
    agent = place.command("token", "--files", "issue", "a").stdout.strip()
    async with place.up(token=admin) as up:
        assert (await up.tools("a", agent))[0] == 200
        assert [(await up.api("GET", path))[0] for path in ("/agents/a", "/metrics")] == [200, 200]
        assert (await up.api("POST", "/agents", {"name": "b"}))[0] == 403
        assert (await up.api("GET", "/tokens"))[0] == 403


@pytest.mark.promise("SERVICE-LIVE")
async def test_a_change_of_the_api_is_enforced_at_once_and_a_change_of_the_folder_soon(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        async with place.up("--open") as up:
            assert (await up.call("a"))[0] == 200
            agent = {"name": "b", "mcpServers": {"x": {"ref": "x"}}}
            assert (await up.api("POST", "/agents", agent))[0] == 201
            await until_answer(lambda: up.call("b"), 200)
            place.write("agents/c.json", {"name": "c", "mcpServers": {"x": {"ref": "x"}}})
            await until_answer(lambda: up.call("c"), 200)
            assert (await up.api("GET", "/agents/c"))[0] == 200
            (tmp_path / "outfitter/agents/c.json").unlink()
            await until_answer(lambda: up.tools("c"), 404)
            assert (await up.api("GET", "/agents/c"))[0] == 404
            assert (await up.call("b"))[0] == 200, "what the API made is not the folder's"


@pytest.mark.promise("SERVICE-DRIFT")
async def test_the_folder_does_not_overwrite_what_the_api_has_changed(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE, "a", "b")
    async with place.up("--open") as up:
        changed = {"name": "a", "description": "by the API", "mcpServers": {"x": {"ref": "x"}}}
        assert (await up.api("PUT", "/agents/a", changed, version=1))[0] == 200
        place.write("agents/a.json", {"name": "a", "description": "by the file"})
        place.write("agents/b.json", {"name": "b", "description": "by the file"})
        await until(lambda: "agents/a was changed in the registry and in the folder" in up.log())
        with anyio.fail_after(30):
            while (await _descriptions(up))["b"] != "by the file":  # noqa: ASYNC110 - nobody tells of it
                await anyio.sleep(0.1)
        assert (await _descriptions(up))["a"] == "by the API"
        place.write("agents/b.json", "{ this is no agent")
        place.write("agents/d.json", {"name": "d"})
        await until(lambda: "b.json" in json.loads((place.state / "gateway.json").read_text())["problem"])
        assert (await up.api("GET", "/agents/d"))[0] == 404, "a bad folder changes nothing"
        assert "not used" in (await up.page("/ready"))[1]
    drift = place.command("drift", "-f", "outfitter")
    assert drift.returncode == 3, "the folder is still bad"


async def _descriptions(up: Up) -> dict[str, str]:
    _, listed, _ = await up.api("GET", "/agents")
    return {one["id"]: one["document"].get("description", "") for one in listed["items"]}


@pytest.mark.promise("SERVICE-SNAPSHOT")
async def test_a_second_start_serves_before_the_database_is_open(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        async with place.up("--open") as up:
            await up.stop()
        with closing(sqlite3.connect(place.state / "registry.sqlite", isolation_level=None)) as holder:
            async with place.up("--open") as up:
                assert (await up.call("a"))[0] == 200
                status, told, headers = await up.api("GET", "/agents")
                assert status in {200, 503}
                if status == 503:
                    assert headers["retry-after"] == "1"
                    assert told["code"] == "unavailable"
                await until_answer(lambda: up.api("GET", "/agents"), 200)
                assert (await up.page("/ready")) == (200, "ready")
            del holder
        secret = {"name": "s", "url": NOWHERE, "default_headers": {"X-API-Key": "a-literal-secret"}}
        place.write("mcp-servers/s.json", secret)
        async with place.up("--open") as up:
            assert (await up.api("GET", "/mcp-servers/s"))[0] == 200, "what was changed meanwhile is waited for"
    assert b"a-literal-secret" not in (place.state / "catalog.snapshot").read_bytes()


@pytest.mark.promise("F22")
@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
async def test_a_damaged_registry_refuses_to_start_and_names_its_copy(tmp_path: Path, damage: str) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    async with place.up() as up:
        await up.stop()
    file = place.state / "registry.sqlite"
    copy = file.with_name("registry.sqlite.before-0001")
    copy.write_bytes(file.read_bytes())
    content = file.read_bytes()
    bad = {"cut": content[: len(content) // 2], "noise": content[:100] + b"\xff" * 8192, "empty": b""}[damage]
    file.write_bytes(bad)
    for side in ("-wal", "-shm"):
        file.with_name(file.name + side).unlink(missing_ok=True)
    process = place.begin()
    assert await ended(process) == 7
    said = place.log.read_text()
    assert copy.name in said
    assert "Listening" not in said
    assert file.read_bytes() == bad


@pytest.mark.promise("F31")
async def test_a_port_in_use_begins_no_registry(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        process = place.begin("--port", str(taken.getsockname()[1]))
        assert await ended(process) == 7
    assert not (place.state / "registry.sqlite").exists(), "its first token would have been lost"


async def test_beyond_this_machine_it_wants_tokens(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    process = place.begin("--open", "--host", "0.0.0.0")  # noqa: S104 - refused
    assert await ended(process) == 6
    assert not (place.state / "registry.sqlite").exists()


@pytest.mark.promise("SERVICE-APPROVAL")
async def test_a_command_of_the_api_is_not_started_before_it_is_approved(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    program = stdio_server(Script("p"))
    command = {"id": "p", "name": "p", "command": program.command, "args": list(program.args)}
    async with place.up() as up:
        assert (await up.api("POST", "/mcp-servers", command))[0] == 201
        assert (await up.api("POST", "/agents", {"name": "q", "mcpServers": {"p": {"ref": "p"}}}))[0] == 201
        token = place.command("token", "issue", "q").stdout.strip()
        await until_answer(lambda: up.tools("q", token), 200)
        assert "echo" not in str((await up.tools("q", token))[1])
        status, _, _ = await up.api("POST", "/mcp-servers/p/approve", version=1)
        assert status == 200
        with anyio.fail_after(60):
            while "echo" not in str((await up.tools("q", token))[1]):  # noqa: ASYNC110 - nobody tells of it
                await anyio.sleep(0.1)
        assert await up.stop() == 0


@pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="a port cannot be shared here")
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
async def test_workers_all_have_the_api_and_follow_each_other(
    tmp_path: Path, request: pytest.FixtureRequest, database: str
) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    named = ("--database", request.getfixturevalue("postgres_url")) if database == "postgres" else ()
    async with place.up("--open", "--workers", "2", *named) as up:
        assert up.token is not None, "the first worker prints it"
        assert "/mcp/a" in up.log()
        for _ in range(6):
            async with aiohttp.ClientSession() as http:
                await until_answer(partial(replace(up, http=http).api, "GET", "/agents"), 200)
        assert (await up.api("POST", "/agents", {"name": "b"}))[0] == 201
        place.write("agents/c.json", {"name": "c"})
        for name in "bc":
            for _ in range(6):
                async with aiohttp.ClientSession() as http:
                    other = replace(up, http=http)
                    await until_answer(partial(other.api, "GET", f"/agents/{name}"), 200)
                    await until_answer(partial(other.tools, name), 200)
        assert (place.state / "registry.sqlite").exists() is (database == "sqlite")
        assert await up.stop() == 0
        assert "Traceback" not in up.log()


async def test_a_registry_that_begins_again_takes_the_folder_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    async with place.up() as up:
        assert await up.stop() == 0
    for file in place.state.glob("registry.sqlite*"):
        file.unlink()
    assert (place.state / "applied.json").exists()
    async with place.up() as again:
        assert (await again.api("GET", "/agents/a"))[0] == 200
        assert await again.stop() == 0


async def test_a_change_of_the_folder_is_not_lost_while_the_database_is_busy(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    async with place.up("--open") as up:
        with closing(sqlite3.connect(place.state / "registry.sqlite", isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            place.write("agents/late.json", {"name": "late"})
            await until(lambda: "the changed catalog is not used" in up.log())
            holder.execute("ROLLBACK")
        await until_answer(lambda: up.api("GET", "/agents/late"), 200)
        assert await up.stop() == 0
