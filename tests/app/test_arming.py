"""Arming a plan with what this machine has, and which seats outlive a change of the catalog."""

from __future__ import annotations

from pathlib import Path

from outfitter.app import SeatMaker, Settings, arm_plan
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError
from outfitter.resolution import ArmedServer, resolve
from tests.shelf import a_catalog

A = {"a": '{"mcpServers": {"x": {"ref": "x"}}}'}


def catalog_of(value: str, *others: str) -> Catalog:
    """An agent ``a`` whose server has this header, and others."""
    agents = dict.fromkeys(others, '{"mcpServers": {}}')
    return a_catalog({"x": f'{{"url": "http://x/mcp", "default_headers": {{"X-Key": {value}}}}}'}, {**A, **agents})


def settings_of(tmp_path: Path) -> Settings:
    """Settings whose secrets are in a folder of their own."""
    return Settings.read({"OUTFITTER_SECRETS": str(tmp_path), "OUTFITTER_STATE": str(tmp_path / "state")})


def test_one_bad_provider_or_placeholder_stops_its_own_server_alone(tmp_path: Path) -> None:
    values = {"own": '"${OUTFITTER_DATABASE}"', "bad": '{"$secret": "nowhere:key"}', "good": '"${KEY}"'}
    entries = {
        name: f'{{"url": "http://{name}/mcp", "default_headers": {{"X-Key": {value}}}}}'
        for name, value in values.items()
    }
    entries["torn"] = '{"url": "http://torn/${mcp"}'
    uses = ", ".join(f'"{name}": {{"ref": "{name}"}}' for name in entries)
    plan = resolve("a", a_catalog(entries, {"a": f'{{"mcpServers": {{{uses}}}}}'}))
    environment = {"OUTFITTER_DATABASE": "CNRY", "KEY": "k"}
    found = arm_plan(plan, environment, settings_of(tmp_path)).servers
    assert list(found) == list(plan.servers)
    assert isinstance(found["good"], ArmedServer)
    faults = {alias: one for alias, one in found.items() if isinstance(one, OutfitterError)}
    assert {alias: one.code for alias, one in faults.items()} == {
        "own": "unresolved", "bad": "secret_unavailable", "torn": "unresolved",
    }  # fmt: skip
    assert "the service's own" in str(faults["own"])


def test_a_seat_stays_when_a_new_catalog_has_the_same_plan(tmp_path: Path) -> None:
    maker = SeatMaker({"KEY": "k"}, settings_of(tmp_path))
    seat = maker.of(catalog_of('"${KEY}"'))("a")
    assert maker.of(catalog_of('"${KEY}"', "b"))("a") is seat
    other = maker.of(catalog_of('"${KEY}2"', "b"))("a")
    assert other is not seat
    assert maker.of(catalog_of('"${KEY}"', "b"))("a") is not seat, "only the newest is kept"


def test_a_seat_that_lacks_something_is_made_again_and_an_old_one_too(tmp_path: Path) -> None:
    secret = '{"$secret": "file:key"}'
    maker = SeatMaker({}, settings_of(tmp_path), retry_seconds=0.0)
    patient = SeatMaker({}, settings_of(tmp_path), retry_seconds=3600.0)
    lacking = patient.of(catalog_of(secret))("a")
    assert isinstance(maker.of(catalog_of(secret))("a").servers["x"], OutfitterError)
    assert patient.of(catalog_of(secret, "b"))("a") is lacking, "a provider is not asked at every change"
    (tmp_path / "key").write_text("one")
    seat = maker.of(catalog_of(secret, "b"))("a")
    assert isinstance(seat.servers["x"], ArmedServer)
    hasty = SeatMaker({}, settings_of(tmp_path), keep_seconds=0.0)
    make = hasty.of(catalog_of(secret))
    assert make("a") is not make("a")
