"""How does a replayer become a server? On the lines of a client, with a live server behind it when one is wanted.

Over HTTP it is served like any scripted server (``http_server``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from outfitter.catalog import MCPServer
from outfitter.errors import UpstreamError
from outfitter.formats import Exchange
from outfitter.resolution import ArmedStdio
from outfitter.testing.cassettes.live import armed
from outfitter.testing.cassettes.masking import Masker
from outfitter.testing.cassettes.replaying import Fallback, Replayer
from outfitter.testing.cassettes.writing import append_entry
from outfitter.testing.conversation import Conversation, Host
from outfitter.testing.exchange import PARSE_ERROR, Message, Refusal
from outfitter.testing.mischief import Raw, Utterance, encode
from outfitter.testing.start import die
from outfitter.upstream import Pool, SpawnRules

_DRAIN_SECONDS = 5.0


def host_of(replayer: Replayer) -> Host:
    """The replayer as a server that has no wire yet."""
    return Host(replayer.script(), die, replayer.answer)


class _Lines:
    """What is said, one message a line, never two at once."""

    def __init__(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        self._write = write
        self._turn = asyncio.Lock()

    async def say(self, utterance: Utterance) -> None:
        """Write one line."""
        async with self._turn:
            await self._write((utterance.head if isinstance(utterance, Raw) else encode(utterance)) + b"\n")


async def serve_lines(host: Host, lines: AsyncIterator[bytes], write: Callable[[bytes], Awaitable[None]]) -> None:
    """Answer one client until it says nothing more; what is being answered then may end."""
    stream, conversation = _Lines(write), Conversation(host)
    async for line in lines:
        if not line.strip():
            continue
        try:
            message: Any = json.loads(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            await conversation.hear(cast("Message", message), stream, None)
        else:
            await stream.say(Refusal(PARSE_ERROR, "a line must be one JSON-RPC message").reply(None))
    await conversation.drain(_DRAIN_SECONDS)
    await conversation.close()


@asynccontextmanager
async def open_fallback(
    server: MCPServer, *, add_to: Path | None = None, masker: Masker | None = None
) -> AsyncGenerator[Fallback]:
    """Who asks a live server; it is started by the first question. Its answers are added to a file if so wished."""
    ready = armed(server)
    allowed = frozenset(ready.transport.env) if isinstance(ready.transport, ArmedStdio) else frozenset[str]()
    async with Pool(rules=SpawnRules(allowed_env=allowed, inline_code=True, secret_args=True)) as pool:
        connection = pool.connect(ready)

        async def ask(method: str, params: Message) -> Exchange:
            plain = {key: value for key, value in params.items() if key != "_meta"}
            try:
                result = await connection.use(lambda link: link.request(method, plain))
                heard = Exchange(method, plain, result)
            except UpstreamError as error:
                told: Message = {"code": error.rpc_code, "message": error.message}
                heard = Exchange(method, plain, error=told if error.data is None else {**told, "data": error.data})
            if add_to is not None and masker is not None:
                append_entry(add_to, masker.exchange(heard))
            return heard

        yield ask
