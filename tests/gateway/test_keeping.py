"""What of a call is kept, for how long, and what becomes of records while their database is away."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outfitter.basics import Secret
from outfitter.catalog import NOTHING_KEPT, Catalog, MCPServer, RecordRule
from outfitter.gateway import CallRecord, Keeping, Recorder, Seat, open_recorder
from outfitter.resolution import Supply, arm_each, resolve
from outfitter.storage import AuditStore, open_audit
from outfitter.testing import Script, serve_http
from tests.gateway.kit import agent, raw
from tests.gateway.watched import Watched, until, watched
from tests.postgres import Postgres

pytestmark = pytest.mark.anyio
ECHO: dict[str, object] = {"name": "echo", "arguments": {"text": "hello"}}


def kept(running: Watched) -> list[tuple[bool, bool]]:
    return [("arguments" in record, "result" in record) for record in running.records()]


def use(running: Watched, served_url: str, rule: RecordRule) -> None:
    """Another catalog from now on."""
    changed = replace(agent("a", MCPServer.http("x", served_url)), records=rule)
    plan = resolve("a", Catalog(agents={"a": changed}))
    running.desk.seats.swap(lambda _name: Seat(plan, arm_each(plan, Supply())))


@pytest.mark.promise("GW-RECORD-RULE")
@pytest.mark.parametrize("is_fast", [True, False])
async def test_what_the_agent_says_of_its_records_holds_in_both_lanes_and_a_changed_catalog_changes_it(
    tmp_path: Path, is_fast: bool
) -> None:
    async with serve_http(Script("x")) as served:
        one = agent("a", MCPServer.http("x", served.url))
        rules = (NOTHING_KEPT, RecordRule(arguments=True), RecordRule(results=True), NOTHING_KEPT)
        async with watched(tmp_path, one, is_fast=is_fast) as running, raw(running.address.url("a", "x")) as http:
            for rule in rules:
                use(running, served.url, rule)
                for _ in range(3):  # the first ones of a configuration take the full lane anyway
                    await http.modern("tools/call", ECHO)
            lanes = {record.get("lane") for record in running.records()}
            assert kept(running) == [(rule.arguments, rule.results) for rule in rules for _ in range(3)]
    assert ("fast" in lanes) == is_fast


async def test_what_is_said_for_this_machine_comes_on_top_of_what_the_agent_says(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served:
        one = replace(agent("a", MCPServer.http("x", served.url)), records=RecordRule(arguments=True))
        keeping = Keeping(results=frozenset("a"))
        async with watched(tmp_path, one, keeping=keeping) as running, raw(running.address.url("a", "x")) as http:
            await http.modern("tools/call", ECHO)
            assert kept(running) == [(True, True)]


def record(recorder: Recorder, ident: str, started_at: float | None = None) -> None:
    moment = time.time() if started_at is None else started_at
    recorder.prepare()
    recorder.record(
        CallRecord(call_id=ident, agent="a", token_id="t", started_at=moment, duration=0.1, outcome="done", server="s")
    )


def idents(audit: AuditStore) -> list[str]:
    return [call["call_id"] for call in audit.calls(limit=10_000)]


def has(audit: AuditStore, *wanted: str) -> bool:
    return idents(audit) == list(wanted)


@pytest.mark.promise("GW-AUDIT-DAYS")
async def test_records_older_than_the_days_they_are_kept_are_removed_while_new_ones_come(tmp_path: Path) -> None:
    now = time.time()
    async with open_recorder(tmp_path) as recorder:
        for number in range(2500):
            record(recorder, f"old{number}", now - 3 * 86400)
        record(recorder, "yesterday", now - 86400)
    audit = open_audit(tmp_path)
    assert len(idents(audit)) == 2501
    async with open_recorder(tmp_path, keep_days=2) as recorder:
        record(recorder, "now")
        await until(lambda: has(audit, "yesterday", "now"))
    audit.close()


@pytest.mark.promise("GW-AUDIT-AWAY")
async def test_while_the_database_is_away_calls_go_on_and_their_records_arrive_when_it_is_back(
    tmp_path: Path, own_postgres: Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    url = Secret(own_postgres.url())

    def is_good(recorder: Recorder) -> bool:
        return "outfitter_audit_good 1" in recorder.metrics.text().splitlines()

    async with open_recorder(tmp_path, database=url) as recorder:
        record(recorder, "before")
        audit = open_audit(tmp_path, url)
        await until(lambda: has(audit, "before"))
        audit.close()
        own_postgres.stop()
        record(recorder, "during")
        await until(lambda: not is_good(recorder))
        record(recorder, "still")
        own_postgres.start()
        await until(lambda: is_good(recorder))
        record(recorder, "after")
    assert has(audit, "before", "during", "still", "after")
    audit.close()
    assert list((tmp_path / "journal").iterdir()) == []
    assert len([one for one in caplog.records if "stay in the journal" in one.getMessage()]) >= 1


@pytest.mark.promise("GW-AUDIT-AWAY")
async def test_a_gateway_begins_and_ends_without_its_database_and_the_next_one_brings_the_records(
    tmp_path: Path, postgres_url: str
) -> None:
    async with open_recorder(tmp_path, database=Secret("postgresql://me:hunter2@127.0.0.1:1/x")) as recorder:
        record(recorder, "first")
    async with open_recorder(tmp_path, database=Secret(postgres_url)):
        pass
    audit = open_audit(tmp_path, Secret(postgres_url))
    assert idents(audit) == ["first"]
    audit.close()


@pytest.mark.promise("GW-AUDIT-SHARED")
async def test_gateways_with_journals_of_their_own_share_one_database(tmp_path: Path, postgres_url: str) -> None:
    url = Secret(postgres_url)
    async with (
        open_recorder(tmp_path / "one", database=url) as first,
        open_recorder(tmp_path / "two", database=url) as second,
    ):
        for number in range(500):
            record(first, f"a{number}")
            record(second, f"b{number}")
    audit = open_audit(tmp_path, url)
    found: list[dict[str, Any]] = audit.calls(limit=10_000)
    audit.close()
    assert sorted(call["call_id"] for call in found) == sorted(f"{name}{n}" for n in range(500) for name in "ab")
    assert json.dumps(found)
