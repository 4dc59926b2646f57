"""How far budgets are used, over HTTP, and who may begin one anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.catalog import Budget, Measure, Period
from outfitter.policy import Meter, Payer
from outfitter.storage import BudgetBook, open_ledger
from tests.coordinator.api.kit import service

pytestmark = pytest.mark.anyio
NOON = 1_800_014_400.0


@pytest.mark.promise("BUD-07")
async def test_everybody_may_look_and_an_admin_begins_a_budget_anew(tmp_path: Path) -> None:
    book = BudgetBook(open_ledger(tmp_path / "a.ledger"), tmp_path / "a.resets", lambda: NOON)
    async with service(tmp_path, budgets=book) as served:
        assert (await served.get("/budgets")).json == {"items": [], "resets": []}
        budgets = {"calls_per_day": 5, "tokens_per_run": 100, "per_server": {"x": {"calls_per_hour": 2}}}
        await served.must("/agents", {"name": "a", "budgets": budgets})
        await served.must("/agents", {"name": "b"})
        limits = [Budget(Measure.CALLS, 5, Period.DAY), Budget(Measure.CALLS, 2, Period.HOUR, "x")]
        Meter(book.ledger, Payer("a").counters(limits), clock=book.clock).spend()
        viewer, bound = await served.as_role("viewer"), await served.as_role("viewer", "b")
        (shown,) = (await viewer.get("/budgets")).json["items"]
        assert shown["agent"] == "a"
        assert {"budget": "calls_per_day", "scope": "", "run": "", "used": 1, "limit": 5,
                "resets_at": "2027-01-16T00:00:00Z"} in shown["budgets"]  # fmt: skip
        assert {one["budget"]: one["used"] for one in shown["budgets"]} == {
            "calls_per_day": 1, "calls_per_hour": 1, "tokens_per_run": None,
        }  # fmt: skip
        assert (await bound.get("/budgets")).json == {"items": [], "resets": []}
        assert (await bound.get("/budgets?agent=a")).status == 403
        reset = "/agents/a/budgets/reset"
        assert (await viewer.post(reset, {})).status == 403
        assert (await served.post("/agents/nobody/budgets/reset", {})).status == 404
        assert (await served.post(reset, {"budget": "calls_per_minute"})).status == 404
        done = (await served.post(reset, {"budget": "calls_per_day"})).json
        assert {one["budget"]: one["used"] for one in done["budgets"]} == {
            "calls_per_day": 0, "calls_per_hour": 1, "tokens_per_run": None,
        }  # fmt: skip
        (told,) = (await viewer.get("/budgets?agent=a&run=r")).json["resets"]
        assert (told["by"], told["budget"], told["used"]) == ("first admin#first", "calls_per_day", 1)
    book.close()
