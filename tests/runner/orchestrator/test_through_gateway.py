"""An agent starts an agent through the gateway, with the token of its run and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from outfitter.basics import Secret
from outfitter.runner import GivenToken, Orchestrator, OrchestratorOptions
from outfitter.testing import Script, serve_http
from tests.app.kit import Place, Up
from tests.gateway.kit import Raw
from tests.runner.orchestrator.kit import Present, Said, call, until
from tests.runner.orchestrator.programs import END, LEAD, ORCHESTRATOR, ended_runs, running

pytestmark = pytest.mark.anyio
STORE = {
    "id": "store",
    "header_schema": {
        "X-Scope": {"type": "string"},
        "X-Projects": {"type": "string", "narrow": "list"},
        "X-Api-Key": {"type": "string", "sensitive": True},
    },
}


def write_team(place: Place, url: str, **executors: dict[str, Any]) -> None:
    """A lead that starts workers, and a worker that would like more than its lead has."""
    place.write("mcp-servers/orchestrator.json", ORCHESTRATOR)
    place.write("mcp-servers/store.json", {**STORE, "url": url})
    has = {"X-Scope": "lead's own", "X-Projects": "ALPHA,BETA"}
    wants = {"X-Scope": "everything", "X-Projects": "BETA,GAMMA"}
    uses: dict[str, dict[str, Any]] = {
        "lead": {"orchestrator": {"ref": "orchestrator"}, "store": {"ref": "store", "headers": has}},
        "worker": {"store": {"ref": "store", "headers": wants}},
    }
    for name, servers in uses.items():
        executor = {"executor": executors[name]} if name in executors else {}
        place.write(f"agents/{name}.json", {"name": name, "mcpServers": servers, **executor})


async def begin(up: Up, run_id: str, **values: str) -> dict[str, Any]:
    """Take up a run, as a runner does; where its servers are, and its token."""
    status, order, _ = await up.api("POST", f"/runs/{run_id}/begin", {"runner": "here", "values": values})
    assert status == 200, order
    return order["gateway"]


async def ask(up: Up, gateway: dict[str, Any], server: str, tool: str, **arguments: object) -> Said:
    """Call a tool of one server with the token of a run."""
    headers = {"authorization": f"Bearer {gateway['token']}"}
    return await call(Raw(gateway["servers"][server], up.http, headers), tool, arguments)


@pytest.mark.promise("ORCHESTRATOR-GATEWAY")
async def test_a_child_that_was_started_through_the_gateway_has_the_headers_of_its_parent(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    async with serve_http(Script("store")) as store:
        write_team(place, store.url)
        async with place.up() as up:
            token = (await up.api("POST", "/tokens", {"role": "runner"}))[1]["token"]
            options = OrchestratorOptions(up.url, tmp_path / "state")
            async with Orchestrator(options, GivenToken(Secret(token)), Present()) as orchestrator:
                asked = {"agent_name": "lead", "prompt": "go", "credentials": {"store": {"api_key": "canary"}}}
                run = (await up.api("POST", "/runs", asked))[1]
                url = orchestrator.url_for(run["session_id"], run["id"])
                lead = await begin(up, run["id"], orchestrator_mcp_url=url)
                said = await ask(up, lead, "orchestrator", "start_agent", agent="worker", prompt="go", mode="poll")
                worker = await begin(up, said["run_id"])
                seen = (await ask(up, worker, "store", "headers"))["headers"]
                assert (seen["x-scope"], seen["x-projects"], seen["x-api-key"]) == ("lead's own", "BETA", "canary")
                own = (await ask(up, lead, "store", "headers"))["headers"]
                assert (own["x-scope"], own["x-projects"], own["x-api-key"]) == ("lead's own", "ALPHA,BETA", "canary")
                assert "authorization" not in seen
                await until(lambda: _is_recorded(up, "lead", "start_agent"))
            log = up.log()
            assert "canary" not in log
            assert url not in log


async def _is_recorded(up: Up, agent: str, tool: str) -> bool:
    calls = (await up.api("GET", "/calls"))[1]["items"]
    return (agent, tool) in {(one["agent"], one["tool"]) for one in calls}


SYNC = 'said = call("orchestrator", "start_agent", agent="worker", prompt="look")["structuredContent"]\n'
CALLBACK = """
if order["prompt"] == "go":
    said = call("orchestrator", "start_agent", agent="worker", prompt="look", mode="callback")["structuredContent"]
else:
    said = json.loads(order["prompt"].partition("\\n")[2])[0]
"""
WORKER = 'said = call("store", "headers")["structuredContent"]["headers"]\n'


@pytest.mark.parametrize("mode", ["sync", "callback"])
async def test_two_programs_of_a_real_runner_do_the_same(tmp_path: Path, mode: str) -> None:
    place, programs = Place(tmp_path / "place"), tmp_path / "programs"
    programs.mkdir()
    executors: dict[str, dict[str, Any]] = {}
    for name, text in (("lead", SYNC if mode == "sync" else CALLBACK), ("worker", WORKER)):
        program = programs / f"{name}.py"
        program.write_text(LEAD + text + END)
        executors[name] = {"type": "command", "command": sys.executable, "args": [str(program)]}
    async with serve_http(Script("store")) as store:
        write_team(place, store.url, **executors)
        async with place.up() as up:
            token = (await up.api("POST", "/tokens", {"role": "runner"}))[1]["token"]
            run = (await up.api("POST", "/runs", {"agent_name": "lead", "prompt": "go"}))[1]
            async with running(place, up.url, token):
                runs = await ended_runs(up, run["session_id"], 1 if mode == "sync" else 2)
    assert runs[-1]["state"] == "done", runs[-1]
    said = runs[-1]["result"]
    assert (said["agent"], said["state"]) == ("worker", "done")
    assert (said["result"]["x-scope"], said["result"]["x-projects"]) == ("lead's own", "BETA")
