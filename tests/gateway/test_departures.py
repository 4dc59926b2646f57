"""Calls that come at once are counted and sent together: never one too many, and what cannot be counted is not lost."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.catalog import Agent, Budget, Budgets, MCPServer, Measure, Period
from outfitter.errors import StorageUnavailable
from outfitter.gateway import Governing, LedgerAccounts
from outfitter.policy import Ledger, MemoryLedger, Payer, states_of
from outfitter.storage import open_ledger
from tests.gateway.fast_kit import lane, parrot
from tests.gateway.kit import agent, raw

pytestmark = pytest.mark.anyio
THREE = (Budget(Measure.CALLS, 3, Period.DAY),)
CALL = {"name": "x_say", "arguments": {"text": "hi"}}


def spender(url: str, budgets: Budgets) -> Agent:
    return replace(agent("a", MCPServer.http("x", url)), budgets=budgets)


def counting(ledger: Ledger) -> Governing:
    return Governing(accounts=LedgerAccounts(ledger))


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


async def test_a_call_that_cannot_be_counted_is_not_made_and_says_so() -> None:
    ledger = LostLedger(lost=(1, 2))  # both lanes ask
    async with (
        parrot() as bird,
        lane(spender(bird.url, Budgets(limits=THREE)), is_fast=True, governing=counting(ledger)) as one,
        raw(one.address.url("a")) as client,
    ):
        await client.modern("tools/list")
        refused: Any = (await client.modern("tools/call", CALL))[1]
        assert refused["error"]["data"]["code"] == "not_counted"
        answer: Any = (await client.modern("tools/call", CALL))[1]
        assert not answer["result"].get("isError")
        assert bird.calls["say"] == 1


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
        lane(spender(bird.url, budgets), is_fast=True, governing=counting(ledger)) as one,
    ):
        outcomes: list[str] = []

        async def call() -> None:
            async with raw(one.address.url("a")) as client:
                await client.modern("tools/list")
                together.release()
                await go.wait()
                answer: Any = await client.modern("tools/call", CALL)
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
    budgets = Budgets(limits=(Budget(Measure.BYTES, 10**6, Period.DAY),))
    ledger = LostLedger(lost=(4,))  # each call takes it twice: before it is sent, and when it has ended
    async with (
        parrot() as bird,
        lane(spender(bird.url, budgets), is_fast=True, governing=counting(ledger)) as one,
        raw(one.address.url("a")) as client,
    ):
        await client.modern("tools/list")
        used = list[int]()
        for _ in range(3):
            await client.modern("tools/call", CALL)
            used.append(states_of(ledger, Payer("a"), budgets, time.time())[0].used or 0)
        assert used == [used[0], used[0], 3 * used[0]]
        assert ledger.taken == 6
