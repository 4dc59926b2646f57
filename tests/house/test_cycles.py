"""No import cycles, neither inside a room nor between rooms. Imports in functions and under TYPE_CHECKING count."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.house.tree import SRC, Import, imports_of, module_name, python_files, write_tree


def import_graph(src: Path) -> dict[str, set[str]]:
    """Which module of the tree imports which."""
    files = {module_name(file, src): file for file in python_files(src)}
    return {
        module: {target for item in imports_of(file, src) if (target := _target(item, files))} - {""}
        for module, file in files.items()
    }


def _target(item: Import, files: dict[str, Path]) -> str | None:
    return next((name for name in (item.target, item.module) if name in files), None)


def find_cycle(src: Path) -> list[str]:
    """The modules of one import cycle, or nothing."""
    graph = import_graph(src)
    for module, targets in graph.items():
        if module in targets:
            return [module, module]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_there_is_no_import_cycle() -> None:
    assert find_cycle(SRC) == []


@pytest.mark.parametrize(
    "line",
    [
        "from outfitter.room.a import A",
        "from .a import A",
        "from . import a",
        "import outfitter.room.a",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from outfitter.room.a import A",
        "def late():\n    from outfitter.room.a import A",
    ],
)
def test_a_cycle_is_found(tmp_path: Path, line: str) -> None:
    files = {"a.py": "from outfitter.room.b import B\n", "b.py": line, "c.py": "import outfitter.room.a\n"}
    write_tree(tmp_path / "outfitter" / "room", files)
    assert set(find_cycle(tmp_path)) == {"outfitter.room.a", "outfitter.room.b"}


def test_a_module_that_imports_its_own_door_is_found(tmp_path: Path) -> None:
    files = {"__init__.py": "from outfitter.room.a import A\n", "a.py": "from outfitter.room import A\n"}
    write_tree(tmp_path / "outfitter" / "room", files)
    assert set(find_cycle(tmp_path)) == {"outfitter.room", "outfitter.room.a"}


def test_a_tree_without_cycles_is_fine(tmp_path: Path) -> None:
    files = {"__init__.py": "from outfitter.room.a import A\n", "a.py": "from outfitter.room.b import B\n", "b.py": ""}
    write_tree(tmp_path / "outfitter" / "room", files)
    assert find_cycle(tmp_path) == []
