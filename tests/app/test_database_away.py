"""The registry in a database that others use too, that is busy, or that is not there."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place, Up, until_answer
from tests.postgres import Postgres

pytestmark = pytest.mark.anyio
NOWHERE = "http://127.0.0.1:9/mcp"
AGENT = {"name": "b", "mcpServers": {"x": {"ref": "x"}}}


@pytest.mark.promise("TWO-GATEWAYS")
async def test_a_change_at_one_of_two_gateways_is_enforced_at_both(tmp_path: Path, postgres_url: str) -> None:
    first = Place(tmp_path / "first", {"OUTFITTER_DATABASE": postgres_url})
    second = Place(tmp_path / "second")
    async with serve_http(Script("x")) as served:
        first.write_catalog(served.url)
        async with first.up("--open") as one:
            second.state.mkdir(parents=True)
            shutil.copy(first.state / "registry.keys", second.state)
            async with second.up("--open", "--database", postgres_url, token=one.token) as other:
                assert (await other.call("a"))[0] == 200, "it has what the other one has"
                for number in range(4):
                    await _change(one, other, f"b{number}")
                    await _change(other, one, f"c{number}")
                await _revoke(one, other)
                assert await other.stop() == 0
            assert await one.stop() == 0


async def _change(at: Up, other: Up, name: str) -> None:
    """A new agent is there at the other gateway too, and gone again; how soon is measured in the benchmarks."""
    assert (await at.api("POST", "/agents", {**AGENT, "name": name}))[0] == 201
    assert (await at.call(name))[0] == 200, "where it was made it is there at once"
    await until_answer(partial(other.call, name), 200)
    assert (await at.api("DELETE", f"/agents/{name}", version=1))[0] == 204
    assert (await at.call(name))[0] == 404
    await until_answer(partial(other.call, name), 404)


async def _revoke(at: Up, other: Up) -> None:
    """A token that is issued at one is known to both, and revoked at both."""
    status, issued, _ = await at.api("POST", "/tokens", {"role": "viewer"})
    assert status == 201
    held = Up(other.place, other.process, other.url, other.http, issued["token"])
    await until_answer(partial(held.api, "GET", "/agents"), 200)
    assert (await at.api("DELETE", f"/tokens/{issued['id']}"))[0] in {200, 204}
    await until_answer(partial(held.api, "GET", "/agents"), 401)


@pytest.mark.promise("LAST-GOOD")
async def test_the_gateway_goes_on_without_its_database_and_starts_without_it(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    place = Place(tmp_path, {"OUTFITTER_DATABASE": own_postgres.url()})
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        async with place.up() as up:
            admin, token = up.token, place.command("token", "issue", "a").stdout.strip()
            await until_answer(partial(up.tools, "a", token), 200)
            own_postgres.stop()
            assert (await up.tools("a", token))[0] == 200
            status, problem, headers = await up.api("POST", "/agents", AGENT)
            assert (status, problem["code"]) == (503, "storage_unavailable"), problem
            assert headers["retry-after"]
            assert (await up.api("GET", "/agents/a"))[0] == 200, "reads are answered from memory"
            own_postgres.start()
            await until_answer(partial(up.api, "POST", "/agents", AGENT), 201)
            await up.stop()
        own_postgres.stop()
        async with place.up(token=admin) as up:
            assert (await up.tools("a", token))[0] == 200
            assert (await up.tools("b", token))[0] == 403
            status, _, headers = await up.api("GET", "/agents")
            assert (status, headers["retry-after"]) == (503, "1")
            assert "the registry is not open" in (await up.page("/ready"))[1]
            own_postgres.start()
            await until_answer(partial(up.api, "GET", "/agents"), 200)
            assert (await up.page("/ready")) == (200, "ready")
            assert (await up.api("GET", "/agents/b"))[0] == 200
            await up.stop()


async def test_what_changed_just_before_the_end_is_known_to_a_start_without_the_database(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    place = Place(tmp_path, {"OUTFITTER_DATABASE": own_postgres.url()})
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        async with place.up() as up:
            admin = up.token
            assert (await up.api("POST", "/agents", AGENT))[0] == 201
            status, issued, _ = await up.api("POST", "/tokens", {"role": "agent", "agent": "b"})
            assert status == 201, issued
            await up.stop()
        own_postgres.stop()
        async with place.up(token=admin) as up:
            assert (await up.tools("b", issued["token"]))[0] == 200
            await up.stop()


async def test_a_snapshot_of_another_day_is_used_only_when_the_database_does_not_answer(
    tmp_path: Path, own_postgres: Postgres
) -> None:
    place = Place(tmp_path, {"OUTFITTER_DATABASE": own_postgres.url()})
    async with serve_http(Script("x")) as served:
        place.write_catalog(served.url)
        async with place.up() as up:
            await up.stop()
        token = place.command("token", "issue", "a").stdout.strip()
        os.utime(place.state / "catalog.snapshot", (0, 0))
        async with place.up() as up:
            assert (await up.tools("a", token))[0] == 200, "it has waited: the snapshot does not know this token"
            await up.stop()
        os.utime(place.state / "catalog.snapshot", (0, 0))
        own_postgres.stop()
        async with place.up() as up:
            assert (await up.tools("a", token))[0] == 200
            assert "the registry is not open" in (await up.page("/ready"))[1]


@pytest.mark.promise("F21")
async def test_a_busy_database_refuses_writes_after_a_while_and_reads_go_on(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    async with place.up("--open") as up:
        with closing(sqlite3.connect(place.state / "registry.sqlite", isolation_level=None)) as holder:
            holder.execute("BEGIN IMMEDIATE")
            status, problem, headers = await up.api("POST", "/agents", AGENT | {"mcpServers": {}})
            assert (status, problem["code"]) == (503, "storage_unavailable"), problem
            assert headers["retry-after"]
            assert (await up.api("GET", "/agents/a"))[0] == 200
            assert (await up.tools("a"))[0] == 200
            holder.execute("ROLLBACK")
        assert (await up.api("POST", "/agents", AGENT | {"mcpServers": {}}))[0] == 201


async def test_an_unreachable_database_and_no_snapshot_is_no_start(tmp_path: Path) -> None:
    place = Place(tmp_path, {"OUTFITTER_DATABASE": "postgresql://nobody:hidden-word@127.0.0.1:9/none"})
    place.write_catalog(NOWHERE)
    said = place.command("up", "--port", "0")
    assert said.returncode == 7
    assert "hidden-word" not in said.stderr + said.stdout
    assert "Listening" not in said.stdout
