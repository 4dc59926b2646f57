"""What one worker of several grants an agent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.app import Share
from outfitter.catalog import Agent, Catalog
from outfitter.resolution import RunPlan, resolve


def plan(**budgets: float) -> RunPlan:
    return resolve("a", Catalog(agents={"a": Agent("a", budgets=budgets)}))


@given(most=st.integers(1, 10_000), count=st.integers(1, 64))
def test_all_shares_together_are_the_limit_and_nobody_has_none(most: int, count: int) -> None:
    shares = [Share(number, count).of_calls(most) for number in range(count)]
    assert min(shares) >= 1
    assert max(shares) - min(shares) <= 1
    assert sum(shares) == max(most, count)


@pytest.mark.parametrize(("number", "most"), [(0, 2), (1, 1)])
def test_an_agents_own_limits_are_shared_out_and_its_other_budgets_are_not(number: int, most: int) -> None:
    shared = Share(number, 2).of_plan(plan(concurrent_calls=3, calls_per_second=5, tokens=7))
    assert shared.agent.budgets == {"concurrent_calls": most, "calls_per_second": 2.5, "tokens": 7}


def test_an_only_worker_has_everything() -> None:
    given = plan(concurrent_calls=3, calls_per_second=5)
    assert Share().of_plan(given) is given
    assert Share().of_plan(plan()).agent.budgets == {}
