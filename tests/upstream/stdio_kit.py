"""What the stdio tests share: armed servers, an inbox that remembers, and how to see that a process is gone."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio

from outfitter.catalog import JsonValue
from outfitter.resolution import ArmedServer, arm, resolve
from outfitter.upstream import (
    Message,
    ProcessJournal,
    SpawnRules,
    StdioLimits,
    StopTimes,
    Wire,
    open_stdio_wire,
)
from tests.shelf import a_catalog, supply_of

CHILD = Path(__file__).with_name("child_server.py")
QUICK = StopTimes(stdin_closed=0.2, terminated=0.2)
_IDS = count(1)


def armed(
    command: str,
    args: Sequence[str] = (),
    *,
    env: Mapping[str, JsonValue] | None = None,
    cwd: str | None = None,
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> ArmedServer:
    """A stdio server of this definition, under the alias ``child``."""
    entry: dict[str, JsonValue] = {"type": "stdio", "command": command, "args": list(args), "env": dict(env or {})}
    if cwd is not None:
        entry["cwd"] = cwd
    catalog = a_catalog({"child": entry}, {"a": {"name": "a", "mcpServers": {"child": {"ref": "child"}}}})
    return arm(resolve("a", catalog), supply_of(variables, secrets)).servers["child"]


def a_child(
    *flags: str,
    env: Mapping[str, JsonValue] | None = None,
    cwd: str | None = None,
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> ArmedServer:
    """The child server of these tests."""
    arguments = ("-I", "-S", str(CHILD), *flags)
    return armed(sys.executable, arguments, env=env, cwd=cwd, variables=variables, secrets=secrets)


class Ear:
    """An inbox that remembers, and answers when it is allowed to."""

    def __init__(self) -> None:
        self.notices: list[Message] = []
        self.requests: list[Message] = []
        self.may_answer = anyio.Event()
        self.may_answer.set()
        self._heard = anyio.Event()

    def notice(self, message: Message, during: object = None) -> None:  # noqa: ARG002 - the wire says it
        self.notices.append(message)
        self._heard.set()

    async def answer(self, message: Message, during: object = None) -> Message:  # noqa: ARG002 - the wire says it
        self.requests.append(message)
        await self.may_answer.wait()
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"to": message["method"]}}

    async def wait_notices(self, number: int) -> None:
        """Wait until so many notices have come."""
        with anyio.fail_after(20):
            while len(self.notices) < number:
                self._heard = anyio.Event()
                await self._heard.wait()


def request(method: str, **params: object) -> Message:
    """A request with an id of its own."""
    return {"jsonrpc": "2.0", "id": next(_IDS), "method": method, "params": params}


async def ask(wire: Wire, method: str, **params: object) -> dict[str, Any]:
    """The result of a request, within a bound."""
    with anyio.fail_after(30):
        return (await wire.ask(request(method, **params)))["result"]


@asynccontextmanager
async def a_wire(
    *flags: str,
    ear: Ear | None = None,
    server: ArmedServer | None = None,
    journal: ProcessJournal | None = None,
    rules: SpawnRules | None = None,
    limits: StdioLimits | None = None,
) -> AsyncGenerator[Wire]:
    """A wire to the child server that does not take long to close."""
    limits = limits or StdioLimits(stop=QUICK)
    opened = server or a_child(*flags)
    async with open_stdio_wire(opened, ear or Ear(), journal=journal, rules=rules, limits=limits) as wire:
        yield wire


async def check_next_call_works() -> None:
    """A case passes only if the process is alive and a new wire works."""
    async with a_wire() as wire:
        assert await ask(wire, "echo", after="fault") == {"after": "fault"}


def has_ended(pid: int, within: float = 5.0) -> bool:
    """Whether a process ends within a bound, watched by its pidfd; a zombie has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], within)[0])
    finally:
        os.close(descriptor)


def zombies() -> list[int]:
    """The children of this process that ended and were not reaped."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state == "Z" and int(parent) == os.getpid():
                found.append(int(folder.name))
    return found


def open_files() -> int:
    """How many file descriptors this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
