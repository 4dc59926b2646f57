"""What one worker of several grants an agent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.app import Share
from outfitter.catalog import NO_BUDGETS, Agent, Budget, Budgets, Catalog, Measure, Period
from outfitter.resolution import RunPlan, resolve


def plan(budgets: Budgets = NO_BUDGETS) -> RunPlan:
    return resolve("a", Catalog(agents={"a": Agent("a", budgets=budgets)}))


@given(most=st.integers(1, 10_000), count=st.integers(1, 64))
def test_all_shares_together_are_the_limit_and_nobody_has_none(most: int, count: int) -> None:
    shares = [Share(number, count).of_calls(most) for number in range(count)]
    assert min(shares) >= 1
    assert max(shares) - min(shares) <= 1
    assert sum(shares) == max(most, count)


@pytest.mark.parametrize(("number", "most"), [(0, 2), (1, 1)])
def test_an_agents_own_limits_are_shared_out_and_its_other_budgets_are_not(number: int, most: int) -> None:
    limits = (Budget(Measure.TOKENS, 7, Period.DAY),)
    shared = Share(number, 2).of_plan(plan(Budgets(3, 5.0, 4, limits)))
    assert shared.agent.budgets == Budgets(most, 2.5, 4, limits)


def test_an_only_worker_has_everything() -> None:
    given = plan(Budgets(3, 5.0))
    assert Share().of_plan(given) is given
    assert Share().of_plan(plan()).agent.budgets == NO_BUDGETS
