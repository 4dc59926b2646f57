"""Counting against budgets: which windows there are, what is refused and in which words, and how loops are broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from outfitter.catalog import Budget, Budgets, Measure, Period
from outfitter.policy import Ledger, MemoryLedger, Meter, Payer, Refusal, reset_counts, states_of, tokens_in

NOON = 1_800_014_400.0
"""2027-01-15 12:00:00 UTC."""


@dataclass(slots=True)
class Clock:
    now: float = NOON

    def __call__(self) -> float:
        return self.now


def budget(name: str, amount: int, scope: str = "") -> Budget:
    measure, _, period = name.partition("_per_")
    server, _, tool = scope.partition("/")
    return Budget(Measure(measure), amount, Period(period), server, tool)


def meter(ledger: Ledger, clock: Clock, limits: Sequence[Budget], repeats: int | None = None, run: str = "") -> Meter:
    payer = Payer("a", run)
    row = None if repeats is None else (payer.row_key, "s/t", repeats)
    return Meter(ledger, payer.counters(limits), row, clock)


def spent(one: Meter, times: int, arguments: bytes = b"{}") -> Refusal:
    """The refusal after so many calls that were let through."""
    assert [one.spend(arguments) for _ in range(times)] == [None] * times
    refused = one.spend(arguments)
    assert refused is not None
    return refused


@pytest.mark.promise("BUD-01")
@pytest.mark.parametrize(
    ("name", "seconds", "told"),
    [
        ("calls_per_minute", 60, "2027-01-15T12:01:00Z"),
        ("calls_per_hour", 3600, "2027-01-15T13:00:00Z"),
        ("calls_per_day", 12 * 3600, "2027-01-16T00:00:00Z"),
    ],
)
def test_a_used_up_budget_says_which_how_much_and_when_it_begins_anew(name: str, seconds: int, told: str) -> None:
    clock = Clock()
    one = meter(MemoryLedger(), clock, [budget(name, 3)])
    refused = spent(one, 3)
    assert refused.code == "budget_exceeded"
    assert refused.text == (
        f"the budget {name} of agent 'a' is used up: 3 of 3 calls; it begins anew at {told}, in {seconds} seconds"
    )
    assert refused.data == {"budget": name, "used": 3, "limit": 3, "resetsAt": told, "retryAfter": seconds}
    clock.now += seconds
    assert spent(one, 3).used == 3


def test_what_is_refused_is_not_counted() -> None:
    ledger, clock = MemoryLedger(), Clock()
    day, minute = budget("calls_per_day", 5), budget("calls_per_minute", 2)
    one = meter(ledger, clock, [day, minute])
    spent(one, 2)
    clock.now += 60
    spent(one, 2)
    (state, _) = states_of(ledger, Payer("a"), Budgets(limits=(day, minute)), clock.now)
    assert state.used == 4


def test_bytes_and_tokens_are_looked_at_before_and_charged_after() -> None:
    ledger, clock = MemoryLedger(), Clock()
    limits = (budget("bytes_per_day", 100), budget("tokens_per_day", 1000, "s/t"))
    one = meter(ledger, clock, limits)
    assert one.spend() is None
    one.charge(140)
    refused = one.spend()
    assert refused is not None
    assert (refused.budget, refused.used, refused.limit) == ("bytes_per_day", 140, 100)
    assert [state.used for state in states_of(ledger, Payer("a"), Budgets(limits=limits), clock.now)] == [140, 40]
    assert tokens_in(141) == 41


def test_a_meter_that_only_charges_finds_its_places_too() -> None:
    ledger, clock = MemoryLedger(), Clock()
    limits = (budget("bytes_per_day", 100),)
    meter(ledger, clock, limits).charge(7)
    assert states_of(ledger, Payer("a"), Budgets(limits=limits), clock.now)[0].used == 7


@pytest.mark.promise("BUD-02")
def test_the_budget_of_a_run_never_begins_anew_and_is_each_runs_own() -> None:
    ledger, clock, limits = MemoryLedger(), Clock(), [budget("calls_per_run", 2)]
    first = meter(ledger, clock, limits, run="r1")
    refused = spent(first, 2)
    assert refused.text == (
        "the budget calls_per_run of run 'r1' is used up: 2 of 2 calls; the budget of a run does not begin anew"
    )
    assert "resetsAt" not in refused.data
    clock.now += 20 * 86400
    assert first.spend() is not None
    assert spent(meter(ledger, clock, limits, run="r2"), 2).used == 2
    assert meter(ledger, clock, limits).spend() is None, "who works in no run has no budget of a run"


@pytest.mark.promise("BUD-03")
def test_the_same_call_too_often_in_a_row_is_a_loop() -> None:
    clock = Clock()
    one = meter(MemoryLedger(), clock, [], repeats=3)
    refused = spent(one, 3, b"ab")
    assert (refused.code, refused.used, refused.limit, refused.seconds) == ("loop", 3, 3, 600)
    assert "the same call with the same arguments was made 3 times in a row" in refused.text
    assert one.spend(b"cd") is None, "another call ends the row"
    assert spent(one, 3, b"ab").code == "loop"
    clock.now += 600
    assert spent(one, 3, b"ab").code == "loop", "after ten minutes it may be tried again"


def test_a_call_that_was_not_made_is_taken_back() -> None:
    clock = Clock()
    one = meter(MemoryLedger(), clock, [budget("calls_per_day", 2)], repeats=2)
    assert one.spend(b"ab") is None
    one.take_back()
    assert spent(one, 2, b"ab").used == 2


def test_a_clock_that_is_set_back_a_little_does_not_give_the_budget_again() -> None:
    clock = Clock(NOON + 0.5)
    one = meter(MemoryLedger(), clock, [budget("calls_per_hour", 2)])
    spent(one, 2)
    clock.now = NOON - 2
    assert one.spend() is not None
    clock.now = NOON - 86400
    assert one.spend() is None, "one that was wrong by a day is believed"


def test_a_budget_can_be_begun_anew_by_hand() -> None:
    ledger, clock = MemoryLedger(), Clock()
    budgets = Budgets(repeats=2, limits=(budget("calls_per_day", 2), budget("calls_per_run", 1)))
    one = meter(ledger, clock, budgets.limits, repeats=2)
    spent(one, 2)
    states = states_of(ledger, Payer("a"), budgets, clock.now)
    assert [(state.budget, state.used) for state in states] == [
        ("calls_per_day", 2),
        ("calls_per_run", None),
        ("repeats", 2),
    ]
    reset_counts(ledger, [state.key for state in states if state.used is not None])
    assert spent(one, 2).budget == "calls_per_day"


def test_a_budget_of_nothing_lets_nothing_through() -> None:
    assert spent(meter(MemoryLedger(), Clock(), [budget("calls_per_day", 0)]), 0).limit == 0


def test_several_calls_are_counted_until_one_is_not_allowed() -> None:
    ledger, clock = MemoryLedger(), Clock()
    limits = (budget("calls_per_day", 5), budget("calls_per_minute", 4), budget("bytes_per_day", 100))
    one = meter(ledger, clock, limits)
    assert [one.spend_some([b""] * 3), one.spend_some([b""] * 3), one.spend_some([b""])] == [3, 1, 0]
    clock.now += 60
    one.charge(99)
    assert one.spend_some([b""] * 2) == 1
    clock.now += 86400
    one.charge(100)
    assert one.spend_some([b""]) == 0, "the bytes are used up"
    assert [state.used for state in states_of(ledger, Payer("a"), Budgets(limits=limits), clock.now)] == [0, 0, 100]


def test_of_several_equal_calls_at_once_those_over_the_limit_are_a_loop() -> None:
    one = meter(MemoryLedger(), Clock(), [], repeats=2)
    assert one.spend_some([b"a", b"b", b"b", b"b", b"c"]) == 3
    assert one.spend_some([b"b"]) == 0
    assert one.spend_some([b"c", b"b"]) == 2
