"""How the house tests read a source tree: files, modules, imports. Nothing is imported or run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src"
PACKAGE = "outfitter"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported thing: ``import module`` or ``from module import name``."""

    module: str
    name: str | None
    line: int

    @property
    def target(self) -> str:
        """The dotted path of what is imported, whether it is a module or a name in one."""
        return f"{self.module}.{self.name}" if self.name else self.module


def python_files(*folders: Path) -> list[Path]:
    """Every Python file below the folders that exist."""
    return sorted(file for folder in folders for file in folder.rglob("*.py"))


def parse(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text(encoding="utf-8"), filename=str(file))


def module_name(file: Path, base: Path) -> str:
    """The dotted name of a file, seen from the folder that is on the import path."""
    parts = file.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(file: Path, src: Path) -> str | None:
    """The room a source file belongs to, or None for the front door and for files outside the package."""
    package = src / PACKAGE
    if not file.is_relative_to(package):
        return None
    room, *inside = file.relative_to(package).parts
    if inside:
        return room
    return None if room.startswith("__") else file.stem


def rooms(src: Path) -> list[str]:
    """The rooms that are packages, so that they have a door."""
    return sorted(door.parent.name for door in (src / PACKAGE).glob("*/__init__.py"))


def imports_of(file: Path, base: Path) -> Iterator[Import]:
    """Every import of a file, wherever it stands: in a function and under TYPE_CHECKING too."""
    module = module_name(file, base)
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, None, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node, package)
            yield from (Import(source, alias.name, node.lineno) for alias in node.names)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    start = parts[: len(parts) - node.level + 1]
    return ".".join([*start, node.module] if node.module else start)


def exported_names(door: Path) -> frozenset[str]:
    """The names in a module's literal ``__all__``."""
    for node in parse(door).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.List | ast.Tuple):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                texts = (item.value for item in node.value.elts if isinstance(item, ast.Constant))
                return frozenset(text for text in texts if isinstance(text, str))
    return frozenset()


def write_tree(base: Path, files: Mapping[str, str]) -> Path:
    """Write a small tree for a test that wants to see a finding."""
    for name, text in files.items():
        file = base / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return base
