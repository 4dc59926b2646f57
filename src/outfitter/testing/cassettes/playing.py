"""What can be done with a cassette? Play it on lines that the caller brings, or on loopback.

The whole jobs of ``outfitter replay``. Whatever reaches a live server is loaded only when there is one behind it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from outfitter.testing.cassettes.matching import Playback
from outfitter.testing.cassettes.replaying import OnEvent, Replayer
from outfitter.testing.cassettes.serving import host_of, serve_lines
from outfitter.testing.cassettes.writing import load_cassette

if TYPE_CHECKING:
    from outfitter.testing.cassettes.running import LiveServer


@asynccontextmanager
async def open_replayer(
    file: Path, on_event: OnEvent, fallback: LiveServer | None = None, *, adds: bool = False, given: Iterable[int] = ()
) -> AsyncGenerator[Replayer]:
    """A cassette that is ready to answer, with a live server behind it if one is given.

    ``given`` are the lines of the file that were answers before: it goes on behind them.
    """
    replayer = Replayer(Playback(load_cassette(file)), on_event=on_event)
    replayer.playback.resume(given)
    if fallback is None:
        yield replayer
        return
    from outfitter.testing.cassettes.falling_back import open_fallback

    async with open_fallback(fallback.server, add_to=file if adds else None, masker=fallback.masker()) as ask:
        replayer.fallback = ask
        yield replayer


async def replay_lines(
    replayer: Replayer, lines: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[None]]
) -> None:
    """Be the recorded server for the client on these lines."""
    await serve_lines(host_of(replayer), lines, write)


@asynccontextmanager
async def replay_http(replayer: Replayer, port: int = 0) -> AsyncGenerator[str]:
    """Be the recorded server on loopback while the block lasts; its address."""
    from outfitter.testing.http_server import serving_host

    async with serving_host(host_of(replayer), port) as serving:
        yield serving.url
