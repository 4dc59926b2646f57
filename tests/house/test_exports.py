"""The front door is small and light, and every door offers what it says.

That each ``__all__`` is sorted is ruff's rule RUF022 (`make fmt` sorts it).
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from tests.house.tree import PACKAGE, SRC, rooms, write_tree

NAMES_AT_THE_FRONT_DOOR = 20
HEAVY = frozenset({"asyncio", "click", "concurrent", "http", "msgspec", "multiprocessing", "rich", "sqlite3", "ssl"})


def export_findings(door: ModuleType) -> list[str]:
    """What is wrong with the ``__all__`` of a module."""
    names: object = getattr(door, "__all__", None)
    if not isinstance(names, list | tuple):
        return [f"{door.__name__} has no __all__"]
    offered = [str(name) for name in cast("list[object] | tuple[object, ...]", names)]
    twice = sorted({name for name in offered if offered.count(name) > 1})
    missing = sorted({name for name in offered if not hasattr(door, name)})
    return [
        *(f"{door.__name__}.__all__ has {name} twice" for name in twice),
        *(f"{door.__name__}.__all__ offers {name}, which does not exist" for name in missing),
    ]


def loaded_modules(package: str, path: Path) -> frozenset[str]:
    """The top-level modules that a fresh interpreter loads for ``import package``."""
    program = (
        f"import sys; sys.path.insert(0, {str(path)!r}); before = set(sys.modules); import {package}; "
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def heavy_modules(package: str, path: Path) -> list[str]:
    """What ``import package`` loads and should not: third-party packages and the heavy half of the standard library."""
    loaded = loaded_modules(package, path)
    foreign = loaded - sys.stdlib_module_names - {package}
    return sorted(foreign | (loaded & HEAVY))


def test_the_front_door_offers_few_names_and_all_exist() -> None:
    door = importlib.import_module(PACKAGE)
    assert export_findings(door) == []
    assert len(door.__all__) <= NAMES_AT_THE_FRONT_DOOR


@pytest.mark.parametrize("room", rooms(SRC))
def test_every_door_offers_what_it_says(room: str) -> None:
    assert export_findings(importlib.import_module(f"{PACKAGE}.{room}")) == []


def test_importing_outfitter_is_light() -> None:
    assert heavy_modules(PACKAGE, SRC) == []


def test_a_door_that_promises_too_much_is_found() -> None:
    door = ModuleType("bad")
    assert export_findings(door) == ["bad has no __all__"]
    door.__dict__.update(__all__=["here", "here", "gone"], here=1)
    assert export_findings(door) == [
        "bad.__all__ has here twice",
        "bad.__all__ offers gone, which does not exist",
    ]


def test_a_heavy_import_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"heavy_door/__init__.py": "import asyncio\nimport click\n"})
    assert {"asyncio", "click"} <= set(heavy_modules("heavy_door", tmp_path))
