"""A gateway that may open only a few files: those who are too many are sent away, and it lives on."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import pytest

from outfitter.testing import Script, serve_http
from tests.gateway.kit import Raw, raw
from tests.gateway.test_operation import ECHO, environment, write_catalog
from tests.gateway.watched import until

pytestmark = pytest.mark.anyio
FILES, MANY = 64, 200


def begin(folder: Path) -> subprocess.Popen[bytes]:
    command = f"ulimit -n {FILES}; exec {sys.executable} -m outfitter up --open --port 0"
    return subprocess.Popen(["sh", "-c", command], cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL)


@asynccontextmanager
async def confined(folder: Path) -> AsyncGenerator[tuple[subprocess.Popen[bytes], int]]:
    """A gateway with 64 files, and its port."""
    process = begin(folder)
    file = folder / "state" / "gateway.json"
    try:
        await until(lambda: file.exists() or process.poll() is not None)
        yield process, json.loads(file.read_text())["port"]
    finally:
        process.kill()
        process.wait(30)


async def works_again(port: int) -> None:
    async with raw(f"http://127.0.0.1:{port}/mcp/a/x") as http:
        with anyio.fail_after(20):
            while "hi" not in str((await http.modern("tools/call", ECHO))[1]):  # noqa: ASYNC110 - nobody tells of it
                await anyio.sleep(0.05)


@pytest.mark.promise("F29")
async def test_connections_beyond_the_files_are_sent_away_and_it_recovers(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with confined(tmp_path) as (process, port):
            await works_again(port)
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MANY)]
            sent_away = 0
            for reader, _ in held:
                with anyio.move_on_after(0.02):
                    sent_away += (await reader.read()).startswith(b"HTTP/1.1 503")
            assert sent_away > MANY - FILES
            with anyio.move_on_after(1.5):  # it looks at its catalog meanwhile, which takes files
                await until(lambda: process.poll() is not None)
            assert process.poll() is None
            for _, writer in held:
                writer.close()
            await works_again(port)


@pytest.mark.promise("F29")
async def test_calls_beyond_the_files_are_answered_or_refused_and_none_hangs(tmp_path: Path) -> None:
    found = Counter[str]()

    async def one(session: aiohttp.ClientSession, url: str) -> None:
        try:
            status, said = await Raw(url, session).modern("tools/call", ECHO)
        except aiohttp.ClientError:
            found["sent away"] += 1
            return
        found["good" if "hi" in str(said) else "refused" if status == 503 or "isError" in str(said) else str(said)] += 1

    async with serve_http(Script("x")) as served:
        write_catalog(tmp_path, served.url)
        async with confined(tmp_path) as (process, port):
            await works_again(port)
            connector = aiohttp.TCPConnector(limit=0)
            with anyio.fail_after(60):
                async with aiohttp.ClientSession(connector=connector) as session, anyio.create_task_group() as group:
                    for _ in range(MANY):
                        group.start_soon(one, session, f"http://127.0.0.1:{port}/mcp/a/x")
            assert set(found) <= {"good", "refused", "sent away"}, found
            assert found.total() == MANY
            assert found["good"] > 0
            await works_again(port)
            assert process.poll() is None
