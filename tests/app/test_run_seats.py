"""A token of a run at the gateway: exactly what the run was given goes out, until the run ends, at every worker."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place, Up, until_answer
from tests.gateway.kit import Raw

pytestmark = pytest.mark.anyio
KEY, CANARY = "X-API-Key", "CNRY-RUN-1"
SCHEMA = {
    "X-Scope": {"type": "string"},
    KEY: {"type": "string", "sensitive": True},
    "X-Session": {"type": "string"},
    "X-Run": {"type": "string"},
    "X-Orchestrator": {"type": "string"},
}
DEFAULTS = {"X-Scope": "default", KEY: "${SERVICE_KEY}"}
IN_A_RUN = {
    "X-Session": "${AGENT_SESSION_ID}", "X-Run": "${runtime.run_id}", "X-Orchestrator": "${AGENT_ORCHESTRATOR_MCP_URL}",
}  # fmt: skip
HELLO: dict[str, object] = {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
}  # fmt: skip
MCP = "http://127.0.0.1:4711/mcp"


@dataclass(frozen=True, slots=True)
class Team:
    """A service with two agents, and a runner's token."""

    up: Up
    runner: str

    async def ask(self, method: str, path: str, body: object, token: str | None = None) -> tuple[int, Any]:
        """An answer of the API, over a connection of its own: with several workers any of them that is open answers."""
        headers = {"authorization": f"Bearer {token or self.runner}"}
        with anyio.fail_after(90):
            while True:
                async with (
                    aiohttp.ClientSession() as http,
                    http.request(method, f"{self.up.url}{path}", json=body, headers=headers) as answer,
                ):
                    text = await answer.text()
                    if answer.status != 503:
                        return answer.status, json.loads(text) if text else None
                await anyio.sleep(0.1)

    async def start(self, agent: str, **more: object) -> dict[str, Any]:
        status, run = await self.ask("POST", "/runs", {"agent_name": agent, **more}, self.up.token)
        assert status == 201, run
        return run

    async def begin(self, run: dict[str, Any]) -> str:
        """The token of a run that is executed from now on."""
        body = {"runner": "r1", "values": {"orchestrator_mcp_url": MCP}}
        status, order = await self.ask("POST", f"/runs/{run['id']}/begin", body)
        assert status == 200, order
        assert order["gateway"]["url"] == f"{self.up.url}/mcp/{run['agent_name']}"
        return order["gateway"]["token"]

    async def finish(self, run: dict[str, Any]) -> None:
        status, ended = await self.ask("POST", f"/runs/{run['id']}/finish", {"attempt": 1, "state": "done"})
        assert (status, ended["state"]) == (200, "done")

    async def sent(self, agent: str, token: str, era: str = "modern") -> dict[str, str] | int:
        """The headers that a server sees of ours; the status of a refusal."""
        with anyio.fail_after(90):
            while True:
                status, answer = await self._call(agent, token, era)
                if status != 503:
                    break
                await anyio.sleep(0.1)
        if status != 200:
            return status
        if "error" in answer:
            return {"error": answer["error"]["message"]}
        seen: dict[str, str] = json.loads(answer["result"]["content"][0]["text"])["headers"]
        spelled: dict[str, str] = {name.lower(): name for name in SCHEMA}
        return {spelled.get(name, name): value for name, value in seen.items() if name.startswith("x-")}

    async def _call(self, agent: str, token: str, era: str) -> tuple[int, Any]:
        asked: dict[str, object] = {"name": "headers", "arguments": {}}
        async with aiohttp.ClientSession() as http:
            client = Raw(f"{self.up.url}/mcp/{agent}/x", http, {"authorization": f"Bearer {token}"})
            if era == "modern":
                return await client.modern("tools/call", asked)
            status, answer = await client.legacy("initialize", HELLO)
            if status != 200:
                return status, answer
            await client.handshake()
            return await client.legacy("tools/call", asked)


@asynccontextmanager
async def team(tmp_path: Path, *args: str, agents: dict[str, Any] | None = None) -> AsyncGenerator[Team]:
    place = Place(tmp_path, {"SERVICE_KEY": "own-key"})
    async with serve_http(Script("x")) as served:
        schema = {"name": "x", "url": served.url, "header_schema": SCHEMA, "default_headers": DEFAULTS}
        place.write("mcp-servers/x.json", schema)
        for name in ("lead", "worker"):
            use = {"x": {"ref": "x", "headers": {"X-Scope": f"of-{name}"}}}
            place.write(f"agents/{name}.json", {"name": name, "mcpServers": use, **(agents or {})})
        place.write("agents/bound.json", {"name": "bound", "mcpServers": {"x": {"ref": "x", "headers": IN_A_RUN}}})
        async with place.up(*args) as up:
            await until_answer(lambda: up.api("GET", "/agents"), 200)
            status, made, _ = await up.api("POST", "/tokens", {"role": "runner"})
            assert status == 201
            yield Team(up, made["token"])


async def open_workers(team: Team, count: int) -> None:
    """Return when the registry is open at every worker: one connection is always answered by the same one."""
    token = await issue(team, "lead")
    with anyio.fail_after(120):
        for number in range(count):
            is_open = False
            while not is_open:
                async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
                    client = Raw(f"{team.up.url}/mcp/lead", http, {"authorization": f"Bearer {token}"})
                    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
                    _, _, headers = await client.post(body)
                    named = {name.lower(): value for name, value in headers.items()}
                    if named.get("mcp-session-id", "").startswith(f"{number}-"):
                        async with http.get(f"{team.up.url}/ready") as answer:
                            is_open = await answer.text() == "ready"
                await anyio.sleep(0.02)


async def lanes(team: Team, run_id: str, count: int) -> set[str]:
    """In which lanes the calls of a run were answered, once so many are recorded."""
    with anyio.fail_after(90):
        while True:
            _, listed, _ = await team.up.api("GET", "/calls?limit=500")
            mine = [call for call in listed["items"] if call["run_id"] == run_id]
            if len(mine) == count:
                return {call["lane"] for call in mine}
            await anyio.sleep(0.1)


async def issue(team: Team, agent: str) -> str:
    _, made, _ = await team.up.api("POST", "/tokens", {"role": "agent", "agent": agent})
    return made["token"]


@pytest.mark.promise("RUN-SEATS")
async def test_a_run_has_its_own_headers_until_it_ends_and_its_agent_has_its_own(tmp_path: Path) -> None:
    async with team(tmp_path) as team_:
        own = await issue(team_, "lead")
        run = await team_.start(
            "lead", mcp_headers={"x": {"X-Scope": "of-run"}}, credentials={"x": {"api_key": CANARY}}
        )
        token = await team_.begin(run)
        for era in ("modern", "legacy", "modern", "modern"):
            assert await team_.sent("lead", token, era) == {"X-Scope": "of-run", KEY: CANARY}
            assert await team_.sent("lead", own, era) == {"X-Scope": "of-lead", KEY: "own-key"}
        child = await team_.start("worker", parent_session_id=run["session_id"])
        inner = await team_.begin(child)
        assert await team_.sent("worker", inner) == {"X-Scope": "of-run", KEY: CANARY}, "inherited"
        assert await team_.sent("worker", token) == 403
        await team_.finish(run)
        assert await team_.sent("lead", token) == 401
        assert await team_.sent("worker", inner) == {"X-Scope": "of-run", KEY: CANARY}, "its run goes on"
        assert await team_.sent("lead", own) == {"X-Scope": "of-lead", KEY: "own-key"}
        status, refused = await team_.ask(
            "POST", "/runs", {"agent_name": "worker", "parent_session_id": run["session_id"]}, team_.up.token
        )
        assert (status, refused["problems"][0]["code"]) == (422, "unresolved"), "the credential is gone"
        await team_.finish(child)
        assert await team_.sent("worker", inner) == 401
        assert CANARY not in team_.up.log()
        assert "fast" in await lanes(team_, run["id"], 4), "the run's seat is used in both lanes"
    files = [
        path for path in (tmp_path / "state").rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()
    ]
    assert files == []


@pytest.mark.promise("RUN-SEATS")
async def test_what_only_a_run_knows_is_filled_in(tmp_path: Path) -> None:
    async with team(tmp_path) as team_:
        run = await team_.start("bound", run_id="run-7", session_id="session-7")
        token = await team_.begin(run)
        seen = await team_.sent("bound", token)
        assert seen == {
            "X-Scope": "default", KEY: "own-key", "X-Session": "session-7", "X-Run": "run-7", "X-Orchestrator": MCP,
        }  # fmt: skip
        again = await team_.begin(run)
        assert await team_.sent("bound", token) == 401, "a new attempt ends the token of the one before"
        assert await team_.sent("bound", again) == seen
        status, stopped = await team_.ask("POST", "/runs/run-7/stop", None, team_.up.token)
        assert (status, stopped["state"]) == (200, "stopping")
        assert await team_.sent("bound", again) == seen, "it goes on until its runner ends it"


async def test_the_limits_of_an_agent_hold_in_its_runs(tmp_path: Path) -> None:
    async with team(tmp_path, agents={"budgets": {"calls_per_second": 0.001}}) as team_:
        token = await team_.begin(await team_.start("lead"))
        statuses = [await team_.sent("lead", token) for _ in range(4)]
        assert statuses[-1] == 429


async def test_a_token_of_no_run_that_goes_on_opens_nothing(tmp_path: Path) -> None:
    async with team(tmp_path) as team_:
        pending = await team_.start("lead")
        for run_id in (pending["id"], "nothing"):
            asked = {"role": "agent", "agent": "lead", "run_id": run_id}
            _, made, _ = await team_.up.api("POST", "/tokens", asked)
            assert await team_.sent("lead", made["token"]) == 404


@pytest.mark.promise("RUN-WORKERS")
async def test_any_of_several_workers_serves_a_run_whoever_holds_its_credentials(tmp_path: Path) -> None:
    async with team(tmp_path, "--workers", "2") as team_:
        await open_workers(team_, 2)
        for _ in range(4):
            run = await team_.start("lead", credentials={"x": {"api_key": CANARY}})
            token = await team_.begin(run)
            for era in ("modern", "legacy") * 4:
                assert await team_.sent("lead", token, era) == {"X-Scope": "of-lead", KEY: CANARY}
            for _ in range(4):
                child = await team_.start("worker", parent_session_id=run["session_id"])
                inner = await team_.begin(child)
                assert await team_.sent("worker", inner) == {"X-Scope": "of-lead", KEY: CANARY}
            await team_.finish(run)
            with anyio.fail_after(60):
                while [await team_.sent("lead", token) for _ in range(6)] != [401] * 6:  # noqa: ASYNC110 - other processes
                    await anyio.sleep(0.1)
