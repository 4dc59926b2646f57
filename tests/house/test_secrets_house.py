"""A secret is revealed only where a connection is opened."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.tree import SRC, parse, python_files, write_tree

# Files below src/outfitter/ that may say `.reveal`. Each new one is a decision: say in the file why it must know.
MAY_REVEAL = frozenset(
    {
        "adapters/claude/definitions.py",
        "adapters/copilot/servers.py",
        "app/registry_place.py",
        "basics/secret.py",
        "coordinator/plans.py",
        "dashboard/inside.py",
        "runner/rest.py",
        "storage/postgres_audit.py",
        "upstream/http_client.py",
        "upstream/launch.py",
        "upstream/oauth.py",
    }
)


def reveal_findings(src: Path) -> list[str]:
    """Every mention of ``reveal`` off the list: a call, a reference, or its name as text (``getattr``)."""
    package = src / "outfitter"
    return [
        f"{name}:{line} reveals a secret"
        for file in python_files(package)
        if (name := file.relative_to(package).as_posix()) not in MAY_REVEAL
        for line in _lines_that_reveal(file)
    ]


def _lines_that_reveal(file: Path) -> list[int]:
    return [
        node.lineno
        for node in ast.walk(parse(file))
        if (isinstance(node, ast.Attribute) and node.attr == "reveal")
        or (isinstance(node, ast.Constant) and node.value == "reveal")
    ]


def test_secrets_are_revealed_in_the_named_files_only() -> None:
    assert reveal_findings(SRC) == []


@pytest.mark.parametrize("line", ["secret.reveal()", "show = secret.reveal", 'getattr(secret, "reveal")()'])
def test_a_reveal_elsewhere_is_found(tmp_path: Path, line: str) -> None:
    write_tree(tmp_path / "outfitter", {"cli/show.py": f"def f(secret):\n    {line}\n", "basics/secret.py": line})
    assert reveal_findings(tmp_path) == ["cli/show.py:2 reveals a secret"]
