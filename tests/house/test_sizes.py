"""One idea per file, one step per function: sizes have a limit."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.house.tree import ROOT, parse, python_files, write_tree

LINES_PER_FILE = {"src": 400, "benchmarks": 400, "conformance": 400, "tests": 600}
LINES_PER_FUNCTION = 50


def size_findings(root: Path) -> list[str]:
    """Files and functions that have grown too long."""
    findings: list[str] = []
    for folder, limit in LINES_PER_FILE.items():
        for file in python_files(root / folder):
            name = file.relative_to(root).as_posix()
            lines = len(file.read_text(encoding="utf-8").splitlines())
            if lines > limit:
                findings.append(f"{name} has {lines} lines, at most {limit} are allowed")
            findings += [f"{name}:{finding}" for finding in _long_functions(file)]
    return findings


def _long_functions(file: Path) -> list[str]:
    functions = (node for node in ast.walk(parse(file)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    sizes = ((function, _lines_without_docstring(function)) for function in functions)
    return [
        f"{function.lineno} {function.name} has {lines} lines, at most {LINES_PER_FUNCTION} are allowed"
        for function, lines in sizes
        if lines > LINES_PER_FUNCTION
    ]


def _lines_without_docstring(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = _span(function)
    return lines if ast.get_docstring(function) is None else lines - _span(function.body[0])


def _span(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_every_file_and_function_keeps_its_size() -> None:
    assert size_findings(ROOT) == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"src/outfitter/a.py": "x = 1\n" * 401, "tests/test_a.py": "x = 1\n" * 600})
    assert size_findings(tmp_path) == ["src/outfitter/a.py has 401 lines, at most 400 are allowed"]


def test_a_long_function_is_found_and_its_docstring_is_not_counted(tmp_path: Path) -> None:
    docstring = '    """First.\n\n' + "    More.\n" * 30 + '    """\n'
    fits = "def fits():\n" + docstring + "    x = 1\n" * 49
    grown = "async def grown():\n" + docstring + "    x = 1\n" * 50
    write_tree(tmp_path, {"src/outfitter/a.py": fits, "src/outfitter/b.py": grown})
    assert size_findings(tmp_path) == ["src/outfitter/b.py:1 grown has 51 lines, at most 50 are allowed"]
