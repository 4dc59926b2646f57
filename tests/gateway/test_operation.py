"""The gateway as a process: it starts whole or not at all, follows its catalog, and ends without losing a call."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.to_thread
import pytest

from outfitter.storage import SqliteAudit
from outfitter.testing import Script, Slow, When, serve_http
from tests.gateway.kit import raw
from tests.gateway.watched import until

pytestmark = pytest.mark.anyio
ECHO: dict[str, object] = {"name": "echo", "arguments": {"text": "hi"}}


@dataclass(frozen=True, slots=True)
class Process:
    """A gateway that somebody started on the command line."""

    folder: Path
    process: subprocess.Popen[str]
    url: str

    def calls(self) -> list[dict[str, Any]]:
        """What is in the audit database."""
        audit = SqliteAudit(self.folder / "state" / "audit.sqlite")
        try:
            return audit.calls(limit=10_000)
        finally:
            audit.close()

    def news(self) -> dict[str, Any]:
        """What ``outfitter status`` says."""
        return json.loads(outfitter(self.folder, "status", "--json").stdout)


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "OUTFITTER_STATE": str(folder / "state"), "OUTFITTER_CATALOG": str(folder / "outfitter")}


def outfitter(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "outfitter", *args],
        cwd=folder, env=environment(folder), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def write_catalog(folder: Path, url: str, description: str = "") -> None:
    server = {"name": "x", "url": url, "description": description}
    agent = {"name": "a", "mcpServers": {"x": {"ref": "x"}}}
    for place, value in (("mcp-servers/x.json", server), ("agents/a.json", agent)):
        path = folder / "outfitter" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def begin(folder: Path, *args: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "outfitter", *args]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    )


@asynccontextmanager
async def started(folder: Path, *args: str) -> AsyncGenerator[Process]:
    """A running gateway; it is killed if the block leaves it running."""
    process = begin(folder, "up", "--open", "--port", "0", *args)
    file = folder / "state" / "gateway.json"
    try:
        await until(lambda: file.exists() or process.poll() is not None)
        told = json.loads(file.read_text())
        yield Process(folder, process, f"http://127.0.0.1:{told['port']}")
    finally:
        process.kill()
        process.communicate(timeout=30)


async def call(url: str, count: int, results: list[int]) -> None:
    """So many calls at once; the status of each answer that was a good one, 0 otherwise."""

    async def one(session: aiohttp.ClientSession) -> None:
        from tests.gateway.kit import Raw

        status, said = await Raw(url, session).modern("tools/call", ECHO)
        results.append(status if "hi" in str(said) else 0)

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        anyio.create_task_group() as group,
    ):
        for _ in range(count):
            group.start_soon(one, session)


@pytest.mark.promise("GATEWAY-DRAINS", "F27")
async def test_sigterm_under_fifty_calls_loses_none_and_exits_0(tmp_path: Path) -> None:
    script = Script("x", faults=(Slow(When(name="echo"), 80, 0.5),))
    async with serve_http(script) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path) as gateway:
            async with raw(f"{gateway.url}/mcp/a/x") as http:
                await http.modern("tools/list")
            results: list[int] = []
            began = time.monotonic()
            async with anyio.create_task_group() as group:
                group.start_soon(call, f"{gateway.url}/mcp/a/x", 50, results)
                await until(lambda: served.ledger.requests["tools/call"] == 50)
                gateway.process.send_signal(signal.SIGTERM)
            await until(lambda: gateway.process.poll() is not None)
            assert time.monotonic() - began < 15
            assert gateway.process.returncode == 0
            assert results == [200] * 50
            assert [one["outcome"] for one in gateway.calls()] == ["done"] * 50
            assert not (tmp_path / "state" / "gateway.json").exists()


@pytest.mark.promise("GATEWAY-FOLLOWS")
async def test_a_changed_catalog_drops_no_call_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    script = Script("x", faults=(Slow(When(name="echo"), 80, 0.5),))
    async with serve_http(script) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path) as gateway, raw(f"{gateway.url}/mcp/a/x") as http:
            await http.modern("tools/list")
            agent = tmp_path / "outfitter" / "agents" / "b.json"
            results: list[int] = []
            async with anyio.create_task_group() as group:
                group.start_soon(call, f"{gateway.url}/mcp/a/x", 100, results)
                await until(lambda: served.ledger.requests["tools/call"] == 100)
                agent.write_text(json.dumps({"name": "b", "mcpServers": {"x": {"ref": "x"}}}))
            assert results == [200] * 100
            async with raw(f"{gateway.url}/mcp/b/x") as other, aiohttp.ClientSession() as plain:
                with anyio.fail_after(10):
                    while (await other.modern("tools/list"))[0] != 200:  # noqa: ASYNC110 - nobody tells of it
                        await anyio.sleep(0.1)
                agent.write_text("{ this is no agent")
                await _until_page(plain, f"{gateway.url}/ready", "not used")
                assert (await other.modern("tools/list"))[0] == 200, "the last good one stays"
            assert "b.json" in gateway.news()["problem"]
            agent.unlink()
            await until(lambda: json.loads((tmp_path / "state" / "gateway.json").read_text())["problem"] == "")


async def _status(plain: aiohttp.ClientSession, method: str, url: str, headers: dict[str, str] | None = None) -> int:
    async with plain.request(method, url, headers=headers) as answer:
        await answer.read()
        return answer.status


async def _until_page(plain: aiohttp.ClientSession, url: str, text: str) -> None:
    with anyio.fail_after(10):
        while text not in await (await plain.get(url)).text():  # noqa: ASYNC110 - nobody tells of it
            await anyio.sleep(0.1)


@pytest.mark.promise("F31")
async def test_a_port_in_use_is_told_and_nothing_is_left_half_started(tmp_path: Path) -> None:
    write_catalog(tmp_path, "http://127.0.0.1:9/mcp")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        printed = outfitter(tmp_path, "up", "--open", "--port", port)
    assert printed.returncode == 7
    assert f"port {port}" in printed.stderr
    assert "--port" in printed.stderr
    assert "Listening" not in printed.stdout
    assert not (tmp_path / "state" / "gateway.json").exists()


@pytest.mark.promise("G03")
async def test_without_tokens_it_does_not_listen_beyond_this_machine(tmp_path: Path) -> None:
    write_catalog(tmp_path, "http://127.0.0.1:9/mcp")
    printed = outfitter(tmp_path, "up", "--open", "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - refused
    assert printed.returncode == 6
    assert "loopback only" in printed.stderr


@pytest.mark.promise("RECORD-ONCE")
async def test_after_kill_9_every_answered_call_is_recorded_once(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        results: list[int] = []
        async with started(tmp_path) as gateway:
            await call(f"{gateway.url}/mcp/a/x", 40, results)
            os.kill(gateway.process.pid, signal.SIGKILL)
            gateway.process.wait(timeout=30)
        (tmp_path / "state" / "gateway.json").unlink()
        async with started(tmp_path) as again:
            await call(f"{again.url}/mcp/a/x", 2, results)
            await until(lambda: len(again.calls()) == 42)
            again.process.send_signal(signal.SIGTERM)
            await until(lambda: again.process.poll() is not None)
            idents = [one["call_id"] for one in again.calls()]
    assert results == [200] * 42
    assert len(set(idents)) == len(idents) == 42


@pytest.mark.promise("GW-PAGES")
async def test_pages_tell_that_it_lives_whether_it_is_ready_and_how_much_it_did(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path) as gateway, aiohttp.ClientSession() as plain:
            await call(f"{gateway.url}/mcp/a/x", 3, [])
            evil = {"Origin": "https://evil.example"}
            assert await _status(plain, "GET", f"{gateway.url}/mcp/a", evil) == 403
            pages = {page: await (await plain.get(f"{gateway.url}/{page}")).text() for page in ("health", "ready")}
            assert pages == {"health": "alive", "ready": "ready"}
            told = await (await plain.get(f"{gateway.url}/metrics")).text()
            assert 'outfitter_calls_total{agent="a",server="x",outcome="done"} 3' in told
            assert 'outfitter_turned_total{status="403"} 1' in told
            assert 'outfitter_upstreams{server="x",state="ready"} 1' in told, told
            await until(lambda: len(gateway.calls()) == 3)
            status = gateway.news()
            assert (status["ready"], status["servers"][0]["server"]) == ("ready", "x")
            assert status["servers"][0]["calls"] == 3
            assert status["servers"][0]["p95"] > 0
            lines = outfitter(tmp_path, "tail", "--no-follow", "--json", "--agent", "a").stdout.splitlines()
            assert [json.loads(line)["tool"] for line in lines] == ["echo"] * 3
            assert outfitter(tmp_path, "tail", "--no-follow", "--denied").stdout == ""


@pytest.mark.promise("GW-PAGES")
async def test_numbers_need_an_admin_token_when_others_can_come(tmp_path: Path) -> None:
    write_catalog(tmp_path, "http://127.0.0.1:9/mcp")
    admin = outfitter(tmp_path, "token", "issue", "--admin").stdout.strip()
    with begin(tmp_path, "up", "--port", "0", "--allow-host", "tools.example") as process:
        file = tmp_path / "state" / "gateway.json"
        await until(file.exists)
        url = f"http://127.0.0.1:{json.loads(file.read_text())['port']}"
        async with aiohttp.ClientSession() as plain:
            assert await _status(plain, "GET", f"{url}/metrics") == 401
            held = {"Authorization": f"Bearer {admin}"}
            assert await _status(plain, "GET", f"{url}/metrics", held) == 200
            assert await _status(plain, "GET", f"{url}/health") == 200
            assert await _status(plain, "POST", f"{url}/mcp/a", held) == 403, "it is no agent's"
        process.terminate()
        process.wait(timeout=30)
    assert process.returncode == 0


@pytest.mark.promise("GW-PAGES")
async def test_tail_shows_new_calls_and_ends_cleanly(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with started(tmp_path) as gateway:
            with begin(tmp_path, "tail", "--tool", "echo") as tail:
                assert tail.stdout is not None
                async with anyio.create_task_group() as group:

                    async def go_on() -> None:  # it shows what is new once it looks, and nobody knows when that is
                        while True:
                            await call(f"{gateway.url}/mcp/a/x", 1, [])
                            await anyio.sleep(0.05)

                    group.start_soon(go_on)
                    line = await anyio.to_thread.run_sync(tail.stdout.readline)
                    assert "a  x/echo  done" in line
                    group.cancel_scope.cancel()
                tail.send_signal(signal.SIGINT)
                tail.wait(timeout=30)
    assert tail.returncode in {0, 130}
