"""The documents say what the build files say: rooms, dependencies, words.

ARCHITECTURE.md has the heading ``## Rooms`` and below it a table, one room a row, in the order of the import contract:
``| `cli` | what it answers |`` for a room that is built, ``| (`gateway`) | … |`` for one that is planned.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house.tree import PACKAGE, ROOT, write_tree

DEPENDENCIES = "docs/decisions/dependencies.md"


def room_findings(root: Path) -> list[str]:
    """Where ARCHITECTURE.md, the import contract and the tree tell different stories about rooms."""
    contract = _contract_rooms(root)
    document = [cells[0].replace("`", "").replace("/", "").replace(".py", "") for cells in _rooms_table(root)]
    if document != contract:
        return [f"ARCHITECTURE.md lists the rooms {document}, the import contract {contract}"]
    built = {path.stem for path in (root / "src" / PACKAGE).glob("*")}
    return [
        f"{room} is built: take it out of its parentheses in pyproject.toml and ARCHITECTURE.md"
        for room in contract
        if room.startswith("(") and room.strip("()") in built
    ]


def _contract_rooms(root: Path) -> list[str]:
    contracts = _pyproject(root)["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [room.strip() for layer in layers for room in re.split(r"[|:]", layer)]


def _rooms_table(root: Path) -> list[list[str]]:
    text = _text(root, "ARCHITECTURE.md")
    _, _, section = f"\n{text}".partition("\n## Rooms\n")
    return [cells for cells in _rows(section.partition("\n## ")[0]) if "`" in cells[0]]


def dependency_findings(root: Path) -> list[str]:
    """Dependencies without their reason, and reasons without their dependency."""
    declared = set(_declared(_pyproject(root)))
    rows = {cells[0].strip("`"): cells[1:] for cells in list(_rows(_text(root, DEPENDENCIES)))[1:]}
    return [
        *(f"{name} has no line in {DEPENDENCIES}" for name in sorted(declared - set(rows))),
        *(f"{name} has a line in {DEPENDENCIES} and is no dependency" for name in sorted(set(rows) - declared)),
        *(f"{name} lacks what for, why or cost" for name, cells in rows.items() if len(cells) != 3 or not all(cells)),
    ]


def _declared(pyproject: dict[str, Any]) -> Iterator[str]:
    project = pyproject["project"]
    groups = [
        pyproject["build-system"]["requires"],
        project.get("dependencies", []),
        *project.get("optional-dependencies", {}).values(),
        *pyproject.get("dependency-groups", {}).values(),
    ]
    for group in groups:
        yield from (re.split(r"[^A-Za-z0-9._-]", requirement)[0].lower() for requirement in group)


def glossary_findings(root: Path) -> list[str]:
    """Words of GLOSSARY.md without a meaning."""
    rows = list(_rows(_text(root, "GLOSSARY.md")))[1:]
    if not rows:
        return ["GLOSSARY.md defines no word"]
    return [f"GLOSSARY.md: {cells[0] or 'an empty word'} is not defined" for cells in rows if not all(cells[:2])]


def _rows(text: str) -> Iterator[list[str]]:
    """The rows of the Markdown tables in a text, header included, ruler left out."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            yield cells


def _text(root: Path, name: str) -> str:
    file = root / name
    return file.read_text(encoding="utf-8") if file.exists() else ""


def _pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads(_text(root, "pyproject.toml"))


def test_architecture_lists_the_rooms_of_the_import_contract() -> None:
    assert room_findings(ROOT) == []


def test_every_dependency_has_its_reason() -> None:
    assert dependency_findings(ROOT) == []


def test_every_word_has_its_meaning() -> None:
    assert glossary_findings(ROOT) == []


PYPROJECT = """
[build-system]
requires = ["hatchling>=1"]
[project]
dependencies = ["click>=8,<9"]
[dependency-groups]
dev = ["pyright[nodejs]>=1"]
[[tool.importlinter.contracts]]
type = "layers"
layers = ["(testing) | cli", "(gateway)", "errors"]
"""
ARCHITECTURE = """# Architecture

## Rooms

| room | question |
|---|---|
| (`testing`) | how to try it |
| `cli/` | what to type |
| (`gateway`) | who may call |
| `errors.py` | what went wrong |

## More

| `other` | table |
"""
REASONS = "| name | for | why | cost |\n|---|---|---|---|\n| `hatchling` | a | b | c |\n| click | a | b | c |\n"


def test_rooms_that_agree_are_fine(tmp_path: Path) -> None:
    write_tree(tmp_path, {"pyproject.toml": PYPROJECT, "ARCHITECTURE.md": ARCHITECTURE})
    assert room_findings(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("(`gateway`)", "`gateway`"), ("| `cli/` | what to type |\n", ""), ("## Rooms", "## Halls")],
)
def test_rooms_that_differ_are_found(tmp_path: Path, old: str, new: str) -> None:
    write_tree(tmp_path, {"pyproject.toml": PYPROJECT, "ARCHITECTURE.md": ARCHITECTURE.replace(old, new)})
    (finding,) = room_findings(tmp_path)
    assert finding.startswith("ARCHITECTURE.md lists the rooms")


def test_a_planned_room_that_is_built_is_found(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT, "ARCHITECTURE.md": ARCHITECTURE, "src/outfitter/gateway/__init__.py": ""}
    write_tree(tmp_path, files)
    (finding,) = room_findings(tmp_path)
    assert finding.startswith("(gateway) is built")


def test_a_dependency_without_a_reason_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"pyproject.toml": PYPROJECT, DEPENDENCIES: REASONS + "| gone | a | | c |\n"})
    assert dependency_findings(tmp_path) == [
        f"pyright has no line in {DEPENDENCIES}",
        f"gone has a line in {DEPENDENCIES} and is no dependency",
        "gone lacks what for, why or cost",
    ]


@pytest.mark.parametrize("table", ["", "| word | meaning |\n|---|---|\n| **Run** | |\n"])
def test_a_word_without_a_meaning_is_found(tmp_path: Path, table: str) -> None:
    write_tree(tmp_path, {"GLOSSARY.md": table})
    assert len(glossary_findings(tmp_path)) == 1
