"""The table of states in the documents is the table that the code runs on."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.upstream import TABLE, Happening, State

DOCUMENT = Path(__file__).parents[2] / "docs" / "connections.md"


@pytest.mark.promise("LINK-STATES")
def test_the_documented_states_are_the_ones_in_the_code() -> None:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| state |"))
    header, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start : start + 8]]
    assert header[1:] == [happening.value for happening in Happening]
    written = {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows[1:]}
    assert written == {
        state.value: {happening.value: _target(state, happening) for happening in Happening} for state in State
    }


def _target(state: State, happening: Happening) -> str:
    target = TABLE[state].get(happening)
    return "" if target is None else target.value
