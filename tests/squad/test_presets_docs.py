"""The tables of docs/presets.md are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.squad import EVERYBODY, PRESETS, Kind, Pattern, patterns

PAGE = Path(__file__).parents[2] / "docs" / "presets.md"


def table(first: str) -> list[list[str]]:
    """The rows of the table whose first column has this name."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows: list[list[str]] = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


@pytest.mark.promise("SQUAD-TABLE")
def test_the_documented_presets_are_those_in_the_code() -> None:
    written = [[f"`{preset.role}`", *(preset.access(kind).words for kind in Kind)] for preset in PRESETS]
    assert table("role") == written


def test_every_cell_is_explained() -> None:
    assert {row[0] for row in table("cell")} == {preset.access(kind).words for preset in PRESETS for kind in Kind}


def who(pattern: Pattern) -> str:
    """Who gets a pattern, as the page says it."""
    full = [
        role for share in pattern.shares if share.server == pattern.name and share.tools.is_open for role in share.roles
    ]
    readers = [role for share in pattern.shares for role in share.roles if role not in full]
    if pattern.name in {"github", "filesystem"}:
        full, readers = ["by the table above"], [EVERYBODY]
    shown = "everybody" if readers == [EVERYBODY] else ", ".join(readers)
    verb = "read" if len(readers) > 1 else "reads"
    return ", ".join(full) + (f"; {shown} {verb}" if readers else "")


@pytest.mark.promise("SQUAD-PATTERNS")
def test_the_documented_patterns_are_those_in_the_code() -> None:
    written: list[list[str]] = []
    for pattern in patterns().values():
        server = pattern.servers[0].server
        target = server.url or " ".join((server.command or "", *server.args))
        variables = ", ".join(f"`{name}`" for name in pattern.variables)
        written.append([f"`{pattern.name}`", pattern.group, f"`{target}`", variables, who(pattern)])
    assert table("name") == written
