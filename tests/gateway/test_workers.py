"""Several workers on one port: a client does not notice them, and each may die without the others."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest

from outfitter.testing import Script, Slow, When, serve_http, stdio_server
from tests.gateway.kit import META, MODERN, Raw
from tests.gateway.test_eras import asking, read
from tests.gateway.test_listening import CHANGED, hearing, touch
from tests.gateway.test_operation import ECHO, Process, begin, call, outfitter, started, write_catalog
from tests.gateway.watched import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="a port cannot be shared here"),
]
TWO = ("--files", "--workers", "2")


def add_agent(folder: Path, name: str) -> None:
    agent = {"name": name, "mcpServers": {"x": {"ref": "x"}}}
    (folder / "outfitter" / "agents" / f"{name}.json").write_text(json.dumps(agent))


@asynccontextmanager
async def at(url: str, worker: int, **headers: str) -> AsyncGenerator[Raw]:
    """Plain HTTP over one connection that came to this worker; the visit it has is that worker's."""
    with anyio.fail_after(20):
        while True:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as http:
                found = Raw(url, http, headers)
                if (await found.handshake()).startswith(f"{worker}-"):
                    yield found
                    return


def children(pid: int) -> set[int]:
    """The processes that a process has started and that are alive."""
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == pid and state != "Z":
            found.add(int(path.parent.name))
    return found


def is_alive(pid: int) -> bool:
    """Whether a thread of it is there: its first one may be gone while another still holds the listening socket."""
    return any(_runs(stat) for stat in Path(f"/proc/{pid}/task").glob("*/stat"))


def _runs(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def answers(gateway: Process, headers: dict[str, str], count: int = 16) -> list[int]:
    """The statuses of a call within a visit, each over a connection of its own."""
    statuses: list[int] = []
    for _ in range(count):
        async with aiohttp.ClientSession() as http:
            status, said = await Raw(f"{gateway.url}/mcp/a/x", http, headers).legacy("tools/call", ECHO)
            statuses.append(status if status != 200 or "hi" in str(said) else 0)
    return statuses


@pytest.mark.promise("WORKERS-RECORD")
async def test_all_workers_answer_and_every_call_is_recorded_once(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        add_agent(tmp_path, "b")
        async with started(tmp_path, *TWO) as gateway:
            results: list[int] = []
            async with at(f"{gateway.url}/mcp/a/x", 0), at(f"{gateway.url}/mcp/a/x", 1):
                async with anyio.create_task_group() as group:
                    for name in ("a", "b"):
                        group.start_soon(call, f"{gateway.url}/mcp/{name}/x", 40, results)
                assert results == [200] * 80
                async with aiohttp.ClientSession() as plain:
                    told = await (await plain.get(f"{gateway.url}/metrics")).text()
            workers = children(gateway.process.pid)
            assert len(workers) == 2
            await until(lambda: len(gateway.calls()) == 80)
            assert gateway.news()["servers"][0]["calls"] == 80
            gateway.process.send_signal(signal.SIGTERM)
            await until(lambda: gateway.process.poll() is not None)
            assert gateway.process.returncode == 0
            assert not any(map(is_alive, workers))
            assert len({one["call_id"] for one in gateway.calls()}) == len(gateway.calls()) == 80
    counted = re.findall(r'outfitter_calls_total\{.*outcome="done",worker="(\d)"\} (\d+)', told)
    assert {worker for worker, _ in counted} == {"0", "1"}
    assert sum(int(count) for _, count in counted) == 80
    assert told.count("# TYPE outfitter_calls_total") == 1
    left = {path.name for path in (tmp_path / "state").iterdir()}
    assert "gateway.json" not in left
    assert not any(name.startswith("workers") for name in left)


@pytest.mark.promise("WORKERS-VISIT")
async def test_a_visit_is_known_over_every_connection(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, *TWO) as gateway,
            at(f"{gateway.url}/mcp/a/x", 0) as mine,
            at(f"{gateway.url}/mcp/a/x", 1) as other,
        ):
            visit = mine.headers["mcp-session-id"]
            assert await answers(gateway, mine.headers) == [200] * 16
            other.headers["mcp-session-id"] = visit
            async with hearing(other, "legacy") as heard, aiohttp.ClientSession() as http:
                await touch(Raw(f"{gateway.url}/mcp/a/x", http), kind="tools")
                assert (await heard.next(CHANGED))["method"] == CHANGED
            async with other.http.delete(other.url, headers=other.headers) as ended:
                assert ended.status == 200
            assert (await mine.legacy("tools/list"))[0] == 404
            unknown = await other.legacy("tools/list")
            for forged in (f"1{visit[1:]}", f"9{visit[1:]}", visit[2:], "0-", "1-", "-"):
                other.headers["mcp-session-id"] = forged
                assert await other.legacy("tools/list") == unknown


@pytest.mark.promise("WORKERS-VISIT")
async def test_a_visit_of_another_worker_is_no_way_around_the_gate(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        add_agent(tmp_path, "b")
        tokens = [outfitter(tmp_path, "token", "issue", name).stdout.strip() for name in ("a", "b")]
        mine, theirs = ({"authorization": f"Bearer {token}", "host": "tools.example"} for token in tokens)
        with begin(tmp_path, "up", "--port", "0", "--allow-host", "tools.example", *TWO) as process:
            file = tmp_path / "state" / "gateway.json"
            await until(file.exists)
            url = f"http://127.0.0.1:{json.loads(file.read_text())['port']}/mcp"
            async with at(f"{url}/a/x", 0, **mine) as first, at(f"{url}/a/x", 1, **mine) as second:
                second.headers = dict(first.headers)
                assert (await second.legacy("tools/call", ECHO))[0] == 200
                second.headers |= theirs
                assert (await second.legacy("tools/call", ECHO))[0] == 403
                second.url = f"{url}/b/x"
                assert (await second.legacy("tools/call", ECHO))[0] == 404
                del second.headers["authorization"]
                assert (await second.legacy("tools/call", ECHO))[0] == 401
            process.terminate()
            process.wait(timeout=30)
    assert process.returncode == 0


async def test_a_stream_goes_on_and_a_client_leaves_through_another_worker(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, *TWO) as gateway,
            at(f"{gateway.url}/mcp/a/x", 0) as mine,
            at(f"{gateway.url}/mcp/a/x", 1) as other,
        ):
            other.headers = mine.headers
            params: dict[str, Any] = {"name": "progress", "arguments": {"n": 3, "seconds": 0.2}}
            async with asking(mine, "tools/call", {**params, "_meta": {"progressToken": "p"}}) as response:
                _, parser = await read(response, 2)
            headers = {**mine.headers, "accept": "text/event-stream", "last-event-id": parser.last_id}
            async with other.http.get(other.url, headers=headers) as response:
                events, _ = await read(response)
            assert "result" in msgspec.json.decode(events[-1].data)
            with anyio.move_on_after(0.5) as leaving:
                await other.legacy("tools/call", {"name": "sleep", "arguments": {"seconds": 60}})
            assert leaving.cancelled_caught
            await until(lambda: served.ledger.cancelled == 1)


@pytest.mark.promise("WORKERS-PARKED")
async def test_a_parked_call_is_answered_through_another_worker(tmp_path: Path) -> None:
    meta: dict[str, Any] = {
        f"{META}protocolVersion": MODERN,
        f"{META}clientCapabilities": {"elicitation": {"form": {}}},
    }
    params: dict[str, Any] = {"_meta": meta, "name": "ask", "arguments": {"what": "elicitation"}}
    async with serve_http(Script("x", eras=("legacy",))) as served:
        write_catalog(tmp_path, served.url)
        async with (
            started(tmp_path, *TWO) as gateway,
            at(f"{gateway.url}/mcp/a/x", 0) as mine,
            at(f"{gateway.url}/mcp/a/x", 1) as other,
        ):
            mine.headers = other.headers = {}
            _, asked = await mine.modern("tools/call", params)
            assert asked["result"]["resultType"] == "input_required"
            state = asked["result"]["requestState"]
            answer = {"question": {"action": "accept", "content": {"name": "Ada"}}}
            forged = state.replace(".0-", ".1-")
            assert forged != state
            refused = [
                (status, said["error"])
                for http in (mine, other)
                for one in (forged, "outfitter1.x.y", "outfitter1.0-x.y", "outfitter1.1-x.y")
                for status, said in [await http.modern("tools/call", {**params, "requestState": one})]
            ]
            assert [refused[0]] * len(refused) == refused
            again = {**params, "requestState": state, "inputResponses": answer}
            _, done = await other.modern("tools/call", again)
            assert "Ada" in str(done["result"])
            assert (await other.modern("tools/call", again))[0] == refused[0][0], "it is answered once"


@pytest.mark.promise("WORKERS-DIE")
async def test_a_worker_that_is_killed_comes_back_and_the_others_go_on(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path, *TWO) as gateway:
            url = f"{gateway.url}/mcp/a/x"
            async with at(url, 0) as first, at(url, 1) as second:
                visits = [first.headers, second.headers]
            workers = children(gateway.process.pid)
            os.kill(min(workers), signal.SIGKILL)
            await until(lambda: not is_alive(min(workers)))
            results: list[int] = []
            await call(url, 20, results)
            assert results == [200] * 20
            assert sorted([set(await answers(gateway, headers)) for headers in visits], key=max) == [{200}, {404}]
            await until(lambda: len(children(gateway.process.pid) - workers) == 1)
            async with at(url, 0), at(url, 1):
                await call(url, 20, results)
            assert results == [200] * 40
            await until(lambda: [one["outcome"] for one in gateway.calls()].count("done") == 40 + 16)


async def test_sigterm_under_calls_at_both_workers_loses_none(tmp_path: Path) -> None:
    async with serve_http(Script("x", faults=(Slow(When(name="echo"), 80, 0.5),))) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path, *TWO) as gateway:
            url = f"{gateway.url}/mcp/a/x"
            async with at(url, 0), at(url, 1):
                pass
            results: list[int] = []
            async with anyio.create_task_group() as group:
                group.start_soon(call, url, 50, results)
                await until(lambda: served.ledger.requests["tools/call"] == 50)
                gateway.process.send_signal(signal.SIGTERM)
            await until(lambda: gateway.process.poll() is not None)
            assert gateway.process.returncode == 0
            assert results == [200] * 50
            assert [one["outcome"] for one in gateway.calls()] == ["done"] * 50


@pytest.mark.promise("WORKERS-ORPHANS")
async def test_without_their_parent_the_workers_and_their_programs_end(tmp_path: Path) -> None:
    program = stdio_server(Script("x"))
    write_catalog(tmp_path, "http://127.0.0.1:9/mcp")
    server = {"name": "x", "command": program.command, "args": list(program.args)}
    (tmp_path / "outfitter" / "mcp-servers" / "x.json").write_text(json.dumps(server))
    async with started(tmp_path, *TWO) as gateway:
        async with at(f"{gateway.url}/mcp/a/x", 0) as first, at(f"{gateway.url}/mcp/a/x", 1) as second:
            for http in (first, second):
                assert "hi" in str(await http.legacy("tools/call", ECHO))
        workers = children(gateway.process.pid)
        programs = {child for worker in workers for child in children(worker)}
        assert (len(workers), len(programs)) == (2, 2), "each worker has children of its own"
        gateway.process.kill()
        await until(lambda: not any(map(is_alive, workers | programs)))
    assert not list((tmp_path / "state").glob("workers-*"))


@pytest.mark.promise("WORKERS-LIMIT")
async def test_a_limit_is_shared_out_among_the_workers(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path, *TWO, "--concurrent-calls", "3") as gateway, anyio.create_task_group() as group:
            url = f"{gateway.url}/mcp/a/x"
            for worker, share in enumerate((2, 1)):
                async with at(url, worker) as http:
                    for _ in range(share):
                        before = served.ledger.requests["tools/call"]
                        group.start_soon(_sleep, url, http.headers)
                        await until(lambda before=before: served.ledger.requests["tools/call"] > before)
                    _, refused = await http.legacy("tools/call", ECHO)
                    assert refused["error"]["data"]["code"] == "too_many_calls"
            group.cancel_scope.cancel()


async def _sleep(url: str, headers: dict[str, str]) -> None:
    async with aiohttp.ClientSession() as http:
        await Raw(url, http, headers).legacy("tools/call", {"name": "sleep", "arguments": {"seconds": 60}})


async def test_a_port_in_use_is_told_before_any_worker_starts(tmp_path: Path) -> None:
    write_catalog(tmp_path, "http://127.0.0.1:9/mcp")
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        printed = outfitter(tmp_path, "up", "--open", "--port", port, *TWO)
    assert printed.returncode == 7
    assert f"port {port}" in printed.stderr
    assert "worker" not in printed.stderr
