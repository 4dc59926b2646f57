"""Several workers on one port: whose a request is, and how it gets there.

What a worker keeps for a client (a visit, a parked call) has an id with the worker's mark. A request that comes to
another worker is passed on as it came, over the private socket of its owner, who judges it like any other. The mark
proves nothing: with a wrong one the client asks somebody who does not know the id. When the owner is gone nobody does.
Who starts the workers is ``app``'s matter.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from outfitter.errors import Unavailable
from outfitter.gateway.gate import Arrival
from outfitter.gateway.gathering import merge
from outfitter.gateway.streams import Receive, Send, wait_gone

if TYPE_CHECKING:
    import aiohttp

_DASH = "-"
_BACKLOG = 1024
_LONGEST_PATH = 100
_CONNECT_SECONDS = 5.0
_PAGE_SECONDS = 2.0
_OK = 200
_NOT_PASSED_ON = frozenset(
    {"connection", "expect", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)
_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True, slots=True)
class Passed:
    """A request as it is passed on; header names in lower case."""

    method: str
    path: str
    headers: Sequence[tuple[str, str]] = field(repr=False)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Relay:
    """One worker among several. Each has a socket in the folder, which only its owner may enter."""

    folder: Path
    number: int
    count: int

    @property
    def mark(self) -> str:
        """What the ids that are made here begin with."""
        return f"{self.number}{_DASH}"

    @property
    def others(self) -> tuple[int, ...]:
        """The other workers."""
        return tuple(number for number in range(self.count) if number != self.number)

    def owner_of(self, ident: str | None) -> int | None:
        """The other worker that an id is from; None when it is from here, or from nobody."""
        number, dash, _ = (ident or "").partition(_DASH)
        return next((other for other in self.others if dash and str(other) == number), None)

    @contextmanager
    def listening(self) -> Generator[socket.socket]:
        """The private socket of this worker, as long as the block lasts."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        with _place(self.folder) as place, socket.socket(socket.AF_UNIX) as bound:
            path = place / f"{self.number}.sock"
            path.unlink(missing_ok=True)
            bound.bind(str(path))
            path.chmod(0o600)
            bound.listen(_BACKLOG)
            try:
                yield bound
            finally:
                path.unlink(missing_ok=True)
                with suppress(OSError):  # others are still there
                    self.folder.rmdir()

    async def pass_on(self, ident: str | None, arrival: Arrival, body: bytes, receive: Receive, send: Send) -> bool:
        """Have the owner of the id answer; False when there is none, or none any more, and nothing was sent."""
        path = f"/mcp/{arrival.agent}" + (f"/{arrival.server}" if arrival.server else "")
        return await self.forward(ident, Passed(arrival.method, path, arrival.headers, body), receive, send)

    async def forward(self, ident: str | None, passed: Passed, receive: Receive, send: Send) -> bool:
        """``pass_on`` for any request."""
        owner = self.owner_of(ident)
        if owner is None:
            return False
        is_answered = True
        async with anyio.create_task_group() as group:

            async def leave_with_client() -> None:
                await wait_gone(receive)
                group.cancel_scope.cancel()

            group.start_soon(leave_with_client)
            is_answered = await self._stream(owner, passed, send)
            group.cancel_scope.cancel()
        return is_answered

    async def gather(self, page: str, headers: Iterable[tuple[str, str]], own: str) -> str:
        """A page of numbers with those of all workers in it; a worker that does not answer is left out."""
        import aiohttp

        texts = {self.number: own}
        for other in self.others:
            with suppress(aiohttp.ClientError, OSError), anyio.move_on_after(_PAGE_SECONDS):
                async with self._asking(other, "GET", page, headers) as answer:
                    if answer.status == _OK:
                        texts[other] = await answer.text()
        return merge(texts)

    async def _stream(self, owner: int, passed: Passed, send: Send) -> bool:
        """Send what the owner says, as it says it. An answer that breaks off is left unfinished."""
        import aiohttp

        is_begun = False
        try:
            async with self._asking(owner, passed.method, passed.path, passed.headers, passed.body) as answer:
                named = [(name.lower(), value) for name, value in answer.raw_headers]
                kept = [(name, value) for name, value in named if name.decode("latin-1") not in _NOT_PASSED_ON]
                is_begun = True
                await send({"type": "http.response.start", "status": answer.status, "headers": kept})
                async for piece in answer.content.iter_any():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except (aiohttp.ClientError, OSError):
            return is_begun
        return True

    @asynccontextmanager
    async def _asking(
        self, number: int, method: str, path: str, headers: Iterable[tuple[str, str]], body: bytes = b""
    ) -> AsyncGenerator[aiohttp.ClientResponse]:
        """What another worker answers. Each request has a connection of its own, so none is sent twice."""
        import aiohttp

        kept = [(name, value) for name, value in headers if name not in _NOT_PASSED_ON]
        with _place(self.folder) as place:
            connector = aiohttp.UnixConnector(str(place / f"{number}.sock"), force_close=True)
            async with (
                aiohttp.ClientSession(
                    connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False,
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                    skip_auto_headers=_NOT_ADDED,
                ) as http,
                http.request(
                    method, f"http://worker{path}", headers=kept, data=body or None, allow_redirects=False
                ) as answer,
            ):  # fmt: skip
                yield answer


@contextmanager
def _place(folder: Path) -> Generator[Path]:
    """The folder under a name that is short enough for the address of a socket."""
    if len(os.fsencode(folder)) < _LONGEST_PATH - len("/9999.sock"):
        yield folder
        return
    opened = os.open(folder, os.O_RDONLY)
    try:
        place = Path(f"/proc/self/fd/{opened}")
        if not place.exists():
            told = "the path of the state folder is too long for a socket"
            raise Unavailable(told, where=str(folder), hint="set OUTFITTER_STATE to a shorter one")
        yield place
    finally:
        os.close(opened)
