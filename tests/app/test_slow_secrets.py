"""A provider of secrets that does not answer holds up the agents that need it, and nobody else."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.abc
import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import Place, until

pytestmark = pytest.mark.anyio
_FOUND = json.dumps({"data": {"data": {"key": "value"}, "metadata": {"version": 1}}}).encode()


@dataclass(slots=True)
class SlowVault:
    """The part of Vault that reads a secret; it answers when it is let."""

    url: str = ""
    asked: int = 0
    released: anyio.Event = field(default_factory=anyio.Event)

    async def answer(self, stream: anyio.abc.SocketStream) -> None:
        """One connection, one request."""
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            self.asked += 1
            await self.released.wait()
            told = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            )
            await stream.send(told % len(_FOUND) + _FOUND)


@asynccontextmanager
async def slow_vault() -> AsyncGenerator[SlowVault]:
    """A Vault on a free port."""
    vault = SlowVault()
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        vault.url = f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}"  # noqa: S610 - anyio's, not Django's
        group.start_soon(listener.serve, vault.answer)
        yield vault
        group.cancel_scope.cancel()


@pytest.mark.promise("ARMING-ASIDE")
@pytest.mark.parametrize("mode", ["files", "registry"])
async def test_others_are_served_while_a_seat_waits_for_its_secrets(tmp_path: Path, mode: str) -> None:
    async with slow_vault() as vault, serve_http(Script("x")) as served:
        place = Place(tmp_path, {"VAULT_ADDR": vault.url, "VAULT_TOKEN": "t"})
        place.write_catalog(served.url)
        secret = {"X-Key": {"$secret": "vault:secret/team/key"}}
        place.write("mcp-servers/v.json", {"name": "v", "url": served.url, "default_headers": secret})
        place.write("agents/slow.json", {"name": "slow", "mcpServers": {"v": {"ref": "v"}}})
        async with place.up("--open", *(["--files"] if mode == "files" else [])) as up:
            answers: list[int] = []

            async def ask() -> None:
                answers.append((await up.tools("slow"))[0])

            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(ask)
                await until(lambda: vault.asked > 0)
                assert (await up.call("a"))[0] == 200
                assert await up.page("/health") == (200, "alive")
                vault.released.set()
            assert answers == [200] * 3
            assert vault.asked == 1, "one asks for all who wait"
            assert await up.stop() == 0
