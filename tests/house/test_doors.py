"""Rooms talk through their door: ``from outfitter.policy import X``, and X is in the door's ``__all__``.

Inside a room deep imports are fine. Tests, benchmarks and examples use doors too: they are users.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.tree import (
    PACKAGE,
    ROOT,
    Import,
    exported_names,
    imports_of,
    python_files,
    room_of,
    rooms,
    write_tree,
)

USERS = ("tests", "benchmarks", "conformance", "examples")


def door_findings(root: Path) -> list[str]:
    """Imports that climb into another room by a window."""
    src = root / "src"
    doors = {room: exported_names(src / PACKAGE / room / "__init__.py") for room in rooms(src)}
    findings: list[str] = []
    for base, files in ((src, python_files(src)), (root, python_files(*(root / user for user in USERS)))):
        for file in files:
            own = room_of(file, src)
            findings += [
                f"{file.relative_to(root).as_posix()}:{item.line} {finding}"
                for item in imports_of(file, base)
                if (finding := _finding(item, own, doors))
            ]
    return findings


def _finding(item: Import, own: str | None, doors: dict[str, frozenset[str]]) -> str | None:
    parts = item.module.split(".")
    if parts[0] != PACKAGE or len(parts) == 1 or parts[1] not in doors or parts[1] == own:
        return None
    room = parts[1]
    if len(parts) > 2:
        return f"imports {item.module}: use the door, {PACKAGE}.{room}"
    if item.name and item.name not in doors[room]:
        return f"takes {item.name} from {PACKAGE}.{room}, whose __all__ does not offer it"
    return None


def test_rooms_and_their_users_come_through_the_door() -> None:
    assert door_findings(ROOT) == []


HOUSE = {
    "src/outfitter/__init__.py": "",
    "src/outfitter/policy/__init__.py": 'from outfitter.policy.rules import Rule\n__all__ = ["Rule"]\n',
    "src/outfitter/policy/rules.py": "class Rule: ...\nclass Hidden: ...\n",
}


@pytest.mark.parametrize(
    "line",
    [
        "from outfitter.policy.rules import Rule",
        "from ..policy.rules import Rule",
        "import outfitter.policy.rules",
        "from outfitter.policy import rules",
        "from outfitter.policy import Hidden",
        "def late():\n    from outfitter.policy.rules import Rule",
    ],
)
def test_a_window_import_of_another_room_is_found(tmp_path: Path, line: str) -> None:
    write_tree(tmp_path, HOUSE | {"src/outfitter/cli/__init__.py": "__all__ = []\n", "src/outfitter/cli/show.py": line})
    (finding,) = door_findings(tmp_path)
    assert finding.startswith("src/outfitter/cli/show.py:")


@pytest.mark.parametrize("user", ["tests/test_x.py", "benchmarks/load.py", "examples/first.py"])
def test_a_window_import_of_a_user_is_found(tmp_path: Path, user: str) -> None:
    write_tree(tmp_path, HOUSE | {user: "from outfitter.policy.rules import Rule\n"})
    assert door_findings(tmp_path) == [f"{user}:1 imports outfitter.policy.rules: use the door, outfitter.policy"]


def test_doors_and_deep_imports_inside_a_room_are_fine(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        HOUSE
        | {
            "src/outfitter/policy/judge.py": "from outfitter.policy.rules import Hidden\n",
            "src/outfitter/errors.py": "class Wrong(Exception): ...\n",
            "src/outfitter/__main__.py": "from outfitter.policy import Rule\n",
            "tests/test_x.py": "from outfitter.policy import Rule\nfrom outfitter.errors import Wrong\n",
        },
    )
    assert door_findings(tmp_path) == []
