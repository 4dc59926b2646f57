"""The keys of the registry from the command line: a new one seals, and everything still opens."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.registry_kit import local_shell

SECRET = "CANARY-77a1"


@pytest.mark.promise("REGISTRY-ROTATION")
def test_a_new_key_seals_everything_again_and_no_version_changes(tmp_path: Path) -> None:
    shell = local_shell(tmp_path).with_token(None)
    shell.done("servers", "add", "store", "--url", "http://localhost:9501/mcp", "--secret-header", "X-API-Key=env:KEY",
               KEY=SECRET)  # fmt: skip
    before = json.loads(shell.done("servers", "show", "store", "--record", "--json"))
    told = json.loads(shell.done("keys", "rotate", "--json"))
    keys = json.loads((shell.state / "registry.keys").read_text())["keys"]
    assert [key["id"] for key in keys][-1] == told["key"]
    assert len(keys) == 2
    assert json.loads(shell.done("servers", "show", "store", "--record", "--json")) == before


def test_without_a_registry_there_is_nothing_to_rotate(tmp_path: Path) -> None:
    told = local_shell(tmp_path).with_token(None).run("keys", "rotate", OUTFITTER_STATE=str(tmp_path / "none"))
    assert (told.code, "there is no registry here" in told.err) == (4, True)
