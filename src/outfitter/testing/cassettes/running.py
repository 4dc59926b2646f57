"""What can be done between a client and a live server? Record what they say, or spoil it.

The whole jobs that ``outfitter record`` and ``proxy`` do, over lines that the caller brings; ``playing`` has replay's.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.catalog import MCPServer
from outfitter.errors import Invalid
from outfitter.testing.cassettes.live import agent_server, command_server, url_server, words_of_headers
from outfitter.testing.cassettes.masking import Masker, words_of_environment, words_of_text
from outfitter.testing.cassettes.passage import Passage, Write
from outfitter.testing.cassettes.recording import Recorder
from outfitter.testing.cassettes.spoiling import Spoiler
from outfitter.testing.cassettes.writing import CassetteFile, Existing
from outfitter.testing.fault_rates import Dice

_NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class LiveServer:
    """A server to talk to, how it may be named in a file, and what must never stand there."""

    server: MCPServer
    shown: str
    words: frozenset[str] = field(repr=False)

    def masker(self) -> Masker:
        """What masks its secrets and those of this process."""
        return Masker(self.words)


def live_server(
    *, command: Sequence[str] = (), url: str | None = None, agent: str | None = None,
    headers: Mapping[str, str] = _NO_HEADERS, hidden: Sequence[str] = (),
) -> LiveServer:  # fmt: skip
    """The one server that is meant: a command, an address or an agent's endpoint; ``hidden`` names secret variables."""
    if sum((bool(command), url is not None, agent is not None)) != 1:
        raise Invalid("say which server is meant, and only one", hint="a command behind --, --url URL or --agent NAME")
    if headers and url is None:
        raise Invalid("headers are for a server at an address", hint="give --url too, or pass variables to the command")
    words = words_of_environment(os.environ, hidden)
    if url is not None:
        words |= words_of_headers(headers, os.environ) | words_of_text(url)
        return _shown(url_server(url, headers), url, words)
    if agent is not None:
        return _shown(agent_server(agent, sys.executable), f"agent {agent}", words)
    typed = shlex.join(command)
    return _shown(command_server(command), typed, words | words_of_text(typed))


def fallback_server(text: str, headers: Mapping[str, str] = _NO_HEADERS) -> LiveServer:
    """The same from one text: an address, or a command line."""
    if text.startswith(("http://", "https://")):
        return live_server(url=text, headers=headers)
    return live_server(command=shlex.split(text), headers=headers)


def _shown(server: MCPServer, text: str, words: set[str]) -> LiveServer:
    return LiveServer(server, Masker(words).text(text), frozenset(words))


async def record_lines(
    live: LiveServer, out: Path, lines: AsyncIterator[bytes], write: Write, *, existing: Existing = "keep"
) -> CassetteFile:
    """Pass everything on between a client and the server, and keep it; the file that was written."""
    file = CassetteFile(out, live.shown, existing=existing)
    try:
        await Passage(Recorder(file, live.masker()), write).serve(live.server, lines)
    finally:
        file.close()
    return file


async def proxy_lines(live: LiveServer, dice: Dice, lines: AsyncIterator[bytes], write: Write) -> None:
    """Pass everything on but for what the dice spoil; they know what was done, however it ends."""
    await Passage(Spoiler(dice), write).serve(live.server, lines)
