"""How does a replayer become a server? On the lines of a client; ``http_server`` has the other way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

from outfitter.testing.cassettes.replaying import Replayer
from outfitter.testing.conversation import Conversation, Host
from outfitter.testing.exchange import PARSE_ERROR, Message, Refusal
from outfitter.testing.mischief import Raw, Utterance, encode
from outfitter.testing.start import die

_DRAIN_SECONDS = 60.0


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
