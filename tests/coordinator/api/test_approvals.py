"""Calls that wait for a person, over HTTP."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from outfitter.policy import Verdict, Wish
from outfitter.storage import ApprovalStore
from tests.coordinator.api.kit import service

pytestmark = pytest.mark.anyio
WISH = Wish("a", "x", "echo", "d", reason="it talks", arguments={"text": "hi"}, asked_by="tok")


@pytest.mark.promise("APPROVAL-API")
async def test_an_admin_answers_and_others_look(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals")
    with closing(store):
        async with service(tmp_path, approvals=store) as served:
            assert (await served.get("/approvals")).json == {"items": []}
            found = store.ask(WISH, 60.0)
            assert found is not None
            (shown,) = (await served.get("/approvals?state=waiting&agent=a")).json["items"]
            assert (shown["id"], shown["arguments"], shown["reason"]) == (found.id, {"text": "hi"}, "it talks")
            assert 0 < shown["seconds_left"] <= 60
            assert (await served.get("/approvals?agent=b")).json == {"items": []}
            viewer, bound = await served.as_role("viewer"), await served.as_role("viewer", "b")
            one = f"/approvals/{found.id}"
            assert (await viewer.get(one)).status == 200
            assert (await bound.get(one)).status == 403
            assert (await viewer.post(f"{one}/approve")).status == 403
            assert (await served.post(f"{one}/approve")).json["state"] == "approved"
            assert store.take(found.id).verdict == Verdict(is_yes=True, by="first admin#first", where="API")
            assert (await served.post(f"{one}/deny")).status == 409
            assert (await served.post("/approvals/nothing/deny")).status == 404
            second = store.ask(WISH, 60.0)
            assert second is not None
            assert (await served.post(f"/approvals/{second.id}/deny")).json["state"] == "denied"
