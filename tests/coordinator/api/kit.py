"""A real API on a real port: a SQLite registry, its tokens, uvicorn, and a client that sends what it is told."""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import aiohttp
import anyio
import uvicorn
from yarl import URL

from outfitter.coordinator import Office, Scope, make_api, open_access, open_coordinator
from outfitter.storage import AuditStore, KeyRing, SqliteAudit, open_database


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)

    @property
    def json(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """The content, read."""
        return json.loads(self.content)

    @property
    def code(self) -> str:
        """The code of a problem; checks that it is one."""
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.json["status"] == self.status
        return self.json["code"]

    @property
    def codes(self) -> set[str]:
        """The codes of a problem and of those in it."""
        return {self.code, *(problem["code"] for problem in self.json.get("problems", []))}

    @property
    def etag(self) -> str:
        """The version."""
        return self.headers["etag"]


@dataclass(frozen=True, slots=True)
class Served:
    """A running service, and somebody who asks it."""

    url: str
    office: Office = field(repr=False)
    session: aiohttp.ClientSession
    token: str | None = field(repr=False)

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """Send a request; a value goes as JSON, bytes as they are. ``if_match`` becomes If-Match."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            sent.setdefault("authorization", f"Bearer {self.token}")
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("content-type", "application/json")
        url = URL(f"{self.url}{path}", encoded=True)
        sent_data = None if data is None else io.BytesIO(data)
        async with self.session.request(method, url, data=sent_data, headers=sent, allow_redirects=False) as response:
            return Reply(response.status, response.headers, await response.read())

    async def get(self, path: str, **headers: str) -> Reply:
        """Read."""
        return await self.ask("GET", path, **headers)

    async def post(self, path: str, body: object = None, **headers: str) -> Reply:
        """Send something new."""
        return await self.ask("POST", path, body, **headers)

    async def must(self, path: str, body: object) -> Reply:
        """Send something new that is taken."""
        reply = await self.post(path, body)
        assert reply.status == 201, reply.content
        return reply

    async def put(self, path: str, body: object, if_match: str) -> Reply:
        """Replace."""
        return await self.ask("PUT", path, body, if_match=if_match)

    async def as_role(self, role: str, agent: str | None = None) -> Served:
        """The same service, asked by somebody else."""
        token, _ = await self.office.access.tokens.issue(role, by="test", scope=Scope(agent))
        return replace(self, token=token)

    def nobody(self) -> Served:
        """The same service, asked without a token."""
        return replace(self, token=None)

    async def raw(self, *lines: str) -> bytes:
        """The first line of the answer to a request that no client library would send."""
        parts = URL(self.url)
        reader, writer = await asyncio.open_connection(parts.host, parts.port)
        try:
            writer.write("\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1"))
            async with asyncio.timeout(10):
                return (await reader.read()).partition(b"\r\n")[0]
        finally:
            writer.close()


def files_with(folder: Path, canary: bytes) -> list[str]:
    """The files of a folder that hold a text."""
    return [path.name for path in folder.iterdir() if canary in path.read_bytes()]


def names_in(folder: Path) -> set[str]:
    """What there is in a folder."""
    return {path.name for path in folder.iterdir()}


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take none."""
        yield


@asynccontextmanager
async def service(
    folder: Path,
    *,
    is_open: bool = False,
    audit: AuditStore | None = None,
    wait: float = 5.0,
    **office: Any,  # noqa: ANN401 - fields of Office
) -> AsyncGenerator[Served]:
    """The service of a folder, as long as the block lasts."""
    url = f"sqlite+aiosqlite:///{folder / 'registry.sqlite'}"
    async with (
        open_database(url, KeyRing(folder / "registry.keys"), wait=wait) as database,
        open_coordinator(database, audit=audit or SqliteAudit(folder / "audit.sqlite")) as coordinator,
        open_access(database.tokens, is_open=is_open) as access,
    ):
        if "free" in office:
            office["free"] = frozenset(office["free"])
        desk = Office(coordinator, access, **office)
        async with _listening(make_api(desk, hosts=("api.example",), origins=("https://pages.example",))) as port:
            token = await access.tokens.first_admin()
            async with aiohttp.ClientSession(auto_decompress=False) as session:
                yield Served(f"http://127.0.0.1:{port}", desk, session, token)
                desk.closing.set()


@asynccontextmanager
async def _listening(app: object) -> AsyncGenerator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = _Server(
            uvicorn.Config(
                cast("Any", app), http="httptools", lifespan="off", access_log=False, log_level="warning", ws="none",
                timeout_graceful_shutdown=5,
            )
        )  # fmt: skip
        async with anyio.create_task_group() as group:
            group.start_soon(server.serve, [bound])
            while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await anyio.sleep(0.005)
            yield bound.getsockname()[1]
            server.should_exit = True
