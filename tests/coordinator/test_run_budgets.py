"""Who pays for a run: its agent, and every run that it stands below."""

from __future__ import annotations

import pytest

from outfitter.coordinator import Coordinator
from tests.coordinator.document4 import EDITOR, agent, begin, fill

pytestmark = pytest.mark.anyio


@pytest.mark.promise("BUD-10")
async def test_a_run_is_given_the_budgets_of_the_runs_above_it_the_nearest_first(local: Coordinator) -> None:
    await fill(
        local,
        ("agents", agent("lead", budgets={"calls_per_run": 100})),
        ("agents", agent("worker", budgets={"tokens_per_run": 50})),
    )
    lead = await local.runs.start({"agent_name": "lead"}, EDITOR)
    middle = await local.runs.start({"agent_name": "worker", "parent_session_id": lead.session_id}, EDITOR)
    last = await local.runs.start({"agent_name": "worker", "parent_session_id": middle.session_id}, EDITOR)
    await begin(local, last.id)
    found = await local.runs.outfit_of(last.id)
    assert [run for run, _ in found.above] == [middle.id, lead.id]
    assert [budgets.limits[0].name for _, budgets in found.above] == ["tokens_per_run", "calls_per_run"]
