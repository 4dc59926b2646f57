"""Calls that come at once are counted and sent together: never one too many, and what ends before is not sent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from outfitter.catalog import Budget, Budgets, MCPServer, Measure, Period
from outfitter.errors import StorageUnavailable
from outfitter.gateway import Governing, LedgerAccounts
from outfitter.gateway.fast.departures import Departures
from outfitter.policy import MemoryLedger, Meter, Payer
from outfitter.policy.metering import COUNT
from outfitter.storage import open_ledger
from tests.gateway.fast_kit import lane, parrot
from tests.gateway.kit import agent, raw

pytestmark = pytest.mark.anyio
THREE = (Budget(Measure.CALLS, 3, Period.DAY),)


@dataclass(slots=True, eq=False)
class Traveller:
    """A call that says what became of it."""

    name: str
    said: list[str]
    meter: Meter | None = None
    is_over: bool = False

    def canonical(self) -> bytes:
        return self.name.encode()

    def depart(self, now: float) -> None:
        assert now > 0
        self.said.append(self.name)

    def hand_over(self) -> None:
        self.said.append(f"{self.name} was handed over")


@dataclass(slots=True)
class LostLedger(MemoryLedger):
    """A ledger that is not to be had at these times, counted from one."""

    lost: tuple[int, ...] = (1,)
    taken: int = 0

    def take(self) -> None:
        self.taken += 1
        if self.taken in self.lost:
            raise StorageUnavailable("gone")
        MemoryLedger.take(self)


async def test_a_call_that_is_alone_goes_at_once_and_others_go_together() -> None:
    departures, said = Departures(), list[str]()
    departures.add(Traveller("alone", said), is_alone=True)
    assert said == ["alone"]
    for name in ("one", "two"):
        departures.add(Traveller(name, said), is_alone=False)
    assert said == ["alone"]
    await anyio.lowlevel.checkpoint()
    assert said == ["alone", "one", "two"]


async def test_what_has_ended_before_it_was_sent_is_neither_counted_nor_sent() -> None:
    departures, said = Departures(), list[str]()
    meter = Meter(MemoryLedger(), Payer("a").counters(THREE))
    calls = [Traveller(str(number), said, meter) for number in range(5)]
    for call in calls:
        departures.add(call, is_alone=False)
    calls[1].is_over = True
    await anyio.lowlevel.checkpoint()
    assert said == ["0", "2", "3", "4 was handed over"]


async def test_calls_that_cannot_be_counted_are_the_full_lane_s() -> None:
    departures, said = Departures(), list[str]()
    departures.add(Traveller("free", said), is_alone=False)
    departures.add(Traveller("counted", said, Meter(LostLedger(), Payer("a").counters(THREE))), is_alone=False)
    await anyio.lowlevel.checkpoint()
    assert said == ["free", "counted was handed over"]


@pytest.mark.promise("BUD-08")
@pytest.mark.parametrize("kind", ["memory", "file", "file that is kept"])
@pytest.mark.parametrize(
    ("budgets", "code"),
    [(Budgets(limits=THREE), "budget_exceeded"), (Budgets(repeats=3), "loop")],
    ids=["budget", "loop"],
)
async def test_of_many_calls_at_once_not_one_too_many_is_made(
    tmp_path: Path, kind: str, budgets: Budgets, code: str
) -> None:
    ledger = MemoryLedger() if kind == "memory" else open_ledger(tmp_path / "a.ledger", keeps=kind != "file")
    async with (
        parrot() as bird,
        lane(
            replace(agent("a", MCPServer.http("x", bird.url)), budgets=budgets),
            is_fast=True,
            governing=Governing(accounts=LedgerAccounts(ledger)),
        ) as one,
    ):
        outcomes: list[str] = []

        async def call() -> None:
            async with raw(one.address.url("a")) as client:
                await client.modern("tools/list")
                together.release()
                await go.wait()
                answer: Any = await client.modern("tools/call", {"name": "x_say", "arguments": {"text": "same"}})
                outcomes.append(answer[1]["result"].get("_meta", {}).get("outfitter/outcome", {}).get("code", "done"))

        together, go = anyio.Semaphore(0), anyio.Event()
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(call)
            for _ in range(20):
                await together.acquire()
            go.set()
        assert sorted(outcomes) == sorted(["done"] * 3 + [code] * 17)
        assert bird.calls["say"] == 3


async def test_bytes_that_cannot_be_counted_now_are_counted_later() -> None:
    limits = (Budget(Measure.BYTES, 10**6, Period.DAY),)
    ledger = LostLedger(lost=(4,))  # each call takes it twice: before it is sent, and when it has ended
    async with (
        parrot() as bird,
        lane(
            replace(agent("a", MCPServer.http("x", bird.url)), budgets=Budgets(limits=limits)),
            is_fast=True,
            governing=Governing(accounts=LedgerAccounts(ledger)),
        ) as one,
        raw(one.address.url("a")) as client,
    ):
        await client.modern("tools/list")
        used: list[int] = []
        for _ in range(3):
            await client.modern("tools/call", {"name": "x_say", "arguments": {"text": "hi"}})
            place = ledger.find(Payer("a").counters(limits)[0].key)
            assert place is not None
            used.append(ledger.words[place + COUNT])
        assert used == [used[0], used[0], 3 * used[0]]
        assert ledger.taken == 6
