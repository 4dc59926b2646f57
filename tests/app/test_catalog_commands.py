"""apply, drift and export on the command line: a plan before the deed, exit codes, JSON, and tokens in both places."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.kit import Place

NOWHERE = "http://127.0.0.1:9/mcp"


@pytest.mark.promise("APPLY-EXPORT-DRIFT")
def test_a_folder_is_planned_applied_exported_and_compared(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    place.write("mcp-servers/k.json", {"name": "k", "url": NOWHERE, "default_headers": {"X-API-Key": "a-literal"}})
    assert place.command("drift", "-f", "outfitter").returncode == 4, "there is no registry yet"
    planned = place.command("apply", "-f", "outfitter", "--dry-run", "--json")
    assert [step["action"] for step in json.loads(planned.stdout)["steps"]] == ["create"] * 3
    assert "a-literal" not in planned.stdout
    assert not (place.state / "registry.sqlite").exists(), "a plan makes nothing"
    done = json.loads(place.command("apply", "-f", "outfitter", "--yes", "--json").stdout)
    assert (done["applied"], done["waiting_for_approval"]) == (True, [])
    assert place.command("drift", "-f", "outfitter").returncode == 0
    exported = place.command("export", "./out")
    assert "Wrote 3 files" in exported.stdout
    assert "1 secrets are masked: mcp-servers/k/default_headers/X-API-Key" in exported.stderr
    assert "a-literal" not in (tmp_path / "out/mcp-servers/k.json").read_text()
    assert place.command("drift", "-f", "out").returncode == 0
    place.write("agents/a.json", {"name": "a", "description": "new"})
    drift = place.command("drift", "-f", "outfitter")
    assert drift.returncode == 1
    assert "~ agents/a" in drift.stdout
    assert '/description: (none) -> "new"' in drift.stdout
    one = place.command("apply", "-f", "outfitter/agents/a.json", "--yes")
    assert "0 to create, 1 to update, 0 to delete, 0 unchanged" in one.stdout
    place.write("agents/.hidden.json", {"name": "hidden"})
    skipped = place.command("apply", "-f", "outfitter/agents/.hidden.json", "--yes")
    assert (skipped.returncode, "this is no file of a catalog" in skipped.stderr) == (3, True), skipped.stderr
    bundle = place.command("export", "-")
    (tmp_path / "bundle.json").write_text(bundle.stdout)
    assert place.command("drift", "-f", "bundle.json").returncode == 0


def test_nothing_is_applied_without_a_yes(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    asked = place.command("apply", "-f", "outfitter")
    assert "+ agents/a" in asked.stdout
    assert asked.returncode == 130
    assert not (place.state / "registry.sqlite").exists()
    assert place.command("apply", "-f", "outfitter", "--json").returncode == 2
    assert place.command("export", "misspelt").returncode == 2


def test_tokens_are_issued_where_the_gateway_looks_for_them(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write_catalog(NOWHERE)
    assert place.command("token", "issue", "a").stdout.startswith("oft_")
    assert (place.state / "tokens.json").exists()
    place.command("apply", "-f", "outfitter", "--yes")
    assert place.command("token", "issue", "nobody").returncode == 4
    issued = json.loads(place.command("token", "issue", "a", "--label", "t", "--json").stdout)
    listed = json.loads(place.command("token", "list", "--json").stdout)
    assert [(one["id"], one["label"], one["valid"]) for one in listed] == [(issued["id"], "t", True)]
    assert place.command("token", "revoke", issued["id"]).returncode == 0
    assert not json.loads(place.command("token", "list", "--json").stdout)[0]["valid"]
    assert place.command("token", "revoke", "nothing").returncode == 4
    assert len(json.loads(place.command("token", "--files", "list", "--json").stdout)) == 1
