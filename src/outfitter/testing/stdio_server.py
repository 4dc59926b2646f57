"""How does a scripted server speak on stdin and stdout?

Start it as ``python -m outfitter.testing.stdio_server --script FILE|JSON``. Standard library only, so that it starts
fast. What it says is ``conversation``; here are the lines, the signals and the ways to misbehave as a process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from typing import Any, cast

from outfitter.testing.conversation import Conversation, Host
from outfitter.testing.exchange import PARSE_ERROR, Message, Peer, Refusal
from outfitter.testing.faults import Banner, Crash, DeadOnArrival, IgnoreTermination, StderrFlood
from outfitter.testing.mischief import Raw, Utterance, encode, strike
from outfitter.testing.script import Script
from outfitter.testing.start import die, read_script

_LINE_LIMIT = 1 << 28
_CHUNK = b"stderr " * 1024


class _Lines:
    """Stdout: one utterance a line, never two at once."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._turn = asyncio.Lock()

    async def say(self, utterance: Utterance) -> None:
        """Write one line, or raw bytes in their pieces."""
        raw = utterance if isinstance(utterance, Raw) else Raw(encode(utterance))
        async with self._turn:
            for piece in raw.pieces():
                self._writer.write(piece)
                await self._writer.drain()
                await asyncio.sleep(raw.interval)
            if raw.framed:
                self._writer.write(b"\n")
                await self._writer.drain()


def _misbehave_at_start(script: Script) -> None:
    for fault in script.faults:
        match fault:
            case Banner(text):
                sys.stdout.write(f"{text}\n")
                sys.stdout.flush()
            case StderrFlood(size):
                _flood(size)
            case DeadOnArrival(code, text):
                die(Crash(code=code, stderr=text))
            case IgnoreTermination():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case _:
                pass


def _flood(size: int) -> None:
    for start in range(0, size, len(_CHUNK)):
        sys.stderr.buffer.write(_CHUNK[: size - start])
    sys.stderr.buffer.flush()


async def _open_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE_LIMIT)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout.buffer
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def _hear(line: bytes, conversation: Conversation, lines: _Lines) -> None:
    try:
        message: Any = json.loads(line)
    except ValueError:
        message = None
    if isinstance(message, dict):
        heard = cast("Message", message)
        await conversation.hear(heard, lines, strike(conversation.host.script, conversation.host.ledger, heard))
    else:
        await lines.say(Refusal(PARSE_ERROR, "a line must be one JSON-RPC message").reply(None))


async def _serve(script: Script) -> None:
    reader, writer = await _open_pipes()
    host, lines = Host(script, die), _Lines(writer)
    host.ledger.connections = 1
    conversation = Conversation(host, Peer({"environment": sorted(os.environ)}))
    async for line in reader:
        await _hear(line, conversation, lines)
    await conversation.close()
    if any(isinstance(fault, IgnoreTermination) for fault in script.faults):
        await asyncio.Event().wait()


def main() -> None:
    """Serve one client until stdin ends."""
    parser = argparse.ArgumentParser(description="A scripted MCP server on stdin and stdout.")
    parser.add_argument("--script", default="{}", help="a script as JSON, or a file that holds one")
    script = read_script(parser.parse_args().script)
    _misbehave_at_start(script)
    asyncio.run(_serve(script))


if __name__ == "__main__":
    main()
