"""What the service does not do: start without the key of its secrets, or run a command that somebody sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.app import Settings, lone_probe
from tests.app.kit import Place, ended
from tests.coordinator.api.kit import Served, service

pytestmark = pytest.mark.anyio


@pytest.mark.promise("R09")
async def test_a_command_is_tried_only_as_it_is_stored_and_approved(tmp_path: Path) -> None:
    marker, found = tmp_path / "marker", list[Served]()
    probe = lone_probe(Settings(state=tmp_path / "state"), {}, lambda: found[0].office.coordinator.live.catalog)
    touch = {"command": "touch", "args": [str(marker)]}
    async with service(tmp_path, probe=probe) as served:
        found.append(served)
        await served.must("/mcp-servers", {"id": "x", **touch})
        viewer = await served.as_role("viewer")
        assert (await viewer.post("/mcp-servers/x/probe", touch)).status == 403
        assert (await served.post("/mcp-servers/x/probe", touch)).status == 400, "it takes no command"
        tried = await served.post("/mcp-servers/x/probe")
        assert (tried.status, "not approved" in tried.json["error"]) == (200, True)
    assert not marker.exists()


@pytest.mark.promise("R11")
async def test_a_registry_whose_key_is_missing_does_not_start(tmp_path: Path) -> None:
    place = Place(tmp_path)
    document = '{"id": "x", "url": "https://tools.example/mcp", "default_headers": {"X-Api-Key": "hunter2"}}'
    (tmp_path / "x.json").write_text(document)
    added = place.command("servers", "add", "-f", "x.json")
    assert added.returncode == 0, added.stderr
    (place.state / "registry.keys").unlink()
    process = place.begin()
    try:
        assert await ended(process) != 0
        assert "the key file is missing" in place.log.read_text()
    finally:
        process.kill()
