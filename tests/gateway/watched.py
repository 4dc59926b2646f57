"""A gateway that records into a folder, and what it wrote there."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from outfitter.catalog import Agent, Catalog
from outfitter.gateway import (
    Address,
    Desk,
    Gate,
    Governing,
    HttpFront,
    Keeping,
    Recorder,
    Seat,
    Turnstile,
    Watch,
    open_desk,
    serving,
)
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.storage import Journal
from outfitter.upstream import Pool
from tests.upstream.stage import QUICK


@dataclass(frozen=True, slots=True)
class Watched:
    """A gateway that answers and writes down."""

    address: Address
    desk: Desk
    folder: Path

    def records(self) -> list[dict[str, Any]]:
        """What stands in the journal at this moment."""
        found = b"".join(path.read_bytes() for path in sorted(self.folder.glob("*.calls")))
        return [json.loads(line) for line in found.split(b"\n")[:-1]]


@asynccontextmanager
async def watched(
    folder: Path,
    *agents: Agent,
    turnstile: Turnstile | None = None,
    keeping: Keeping | None = None,
    is_fast: bool = False,
    governing: Governing | None = None,
) -> AsyncGenerator[Watched]:
    """A gateway whose journal nobody empties, so that a test can read it."""
    catalog = Catalog(agents={one.name: one for one in agents})

    def make(name: str) -> Seat:
        plan = resolve(name, catalog)
        return Seat(plan, arm_each(plan, Supply()))

    journal = Journal(folder)
    recorder = Recorder(journal)
    watch = Watch(recorder, turnstile or Turnstile(), keeping or Keeping())
    try:
        async with open_desk(
            make, None, lambda: Pool(patience=QUICK), watch=watch, governing=governing or Governing()
        ) as desk:
            gate = Gate(None, refuse_call=desk.refuse_call, on_turned=recorder.metrics.count_turned)
            async with serving(HttpFront(desk, gate), Address(port=0), is_fast=is_fast) as address:
                yield Watched(address, desk, folder)
    finally:
        journal.close()


async def until(claim: Callable[[], bool]) -> None:
    """Wait until something holds that nobody tells of; thirty seconds at most."""
    with anyio.fail_after(30):
        while not claim():  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.01)
