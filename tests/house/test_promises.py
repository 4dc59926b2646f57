"""Every promise has a test, every marked test keeps a listed promise. The files are read, not run."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.tree import ROOT, parse, python_files, write_tree


def promise_findings(tests: Path) -> list[str]:
    """Promises nobody keeps, marks that name no promise, and entries that are not plain and whole."""
    listed = [item for file in python_files(tests / "promises") for item in _listed(file)]
    used = [item for file in python_files(tests) for item in _used(file)]
    known = {id_ for id_, _ in listed}
    kept = {id_ for id_, _ in used}
    twice = [id_ for id_, count in Counter(id_ for id_, _ in listed).items() if id_ and count > 1]
    return [
        *(f"{place} id, sentence and document must be plain strings" for id_, place in listed if not id_),
        *(f"{id_} is promised twice" for id_ in twice),
        *(f"{id_} is promised and no test keeps it" for id_ in sorted(known - kept - {""})),
        *(f"{place} is marked with a promise that is not a plain string" for id_, place in used if not id_),
        *(f"{place} keeps {id_}, which is not promised" for id_, place in used if id_ and id_ not in known),
    ]


def _listed(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Promise":
            fields = dict(zip(("id", "sentence", "document"), node.args, strict=False))
            fields |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            texts = [_text(fields.get(name)) for name in ("id", "sentence", "document")]
            yield (texts[0] if all(texts) else ""), f"promises/{file.name}:{node.lineno}"


def _used(file: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Call) and _is_promise_mark(node.func):
            for argument in node.args:
                yield _text(argument), f"{file.name}:{node.lineno}"


def _is_promise_mark(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "promise"
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "mark"
    )


def _text(node: ast.expr | None) -> str:
    return node.value.strip() if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_every_promise_is_kept_and_every_mark_is_a_promise() -> None:
    assert promise_findings(ROOT / "tests") == []


KEPT = 'Promise("R1", "Later levels win.", "4")'
MARK = "import pytest\n@pytest.mark.promise({})\ndef test_it(): ...\n"


def test_a_promise_with_its_test_is_fine(tmp_path: Path) -> None:
    keyword = 'Promise(id="R2", sentence="Locks hold.", document="design 3.6")'
    write_tree(
        tmp_path,
        {"promises/a.py": f"PROMISES = ({KEPT}, {keyword})", "test_a.py": MARK.format('"R1", "R2"')},
    )
    assert promise_findings(tmp_path) == []


def test_a_promise_without_a_test_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"promises/a.py": f"PROMISES = ({KEPT},)", "test_a.py": "def test_it(): ..."})
    assert promise_findings(tmp_path) == ["R1 is promised and no test keeps it"]


def test_a_mark_without_a_promise_is_found(tmp_path: Path) -> None:
    write_tree(tmp_path, {"promises/a.py": "PROMISES = ()", "deep/test_a.py": MARK.format('"R9"')})
    assert promise_findings(tmp_path) == ["test_a.py:2 keeps R9, which is not promised"]


def test_a_promise_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    promises = f'PROMISES = ({KEPT}, {KEPT}, Promise("R2", "", "4"), Promise(NAME, "x", "4"))'
    write_tree(tmp_path, {"promises/a.py": promises, "test_a.py": MARK.format('"R1"') + MARK.format("NAME")})
    assert promise_findings(tmp_path) == [
        "promises/a.py:1 id, sentence and document must be plain strings",
        "promises/a.py:1 id, sentence and document must be plain strings",
        "R1 is promised twice",
        "test_a.py:5 is marked with a promise that is not a plain string",
    ]
