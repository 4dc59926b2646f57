"""Every command and snippet of README and docs is executed, and says what the document says it does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.docs.snippets import MakeTarget, RunCommand, RunPython, Snippet, WriteFile, snippets_of

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")),
]


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
    }


def _execute(snippet: Snippet, folder: Path) -> None:
    if isinstance(snippet, WriteFile):
        path = folder / snippet.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(snippet.text, encoding="utf-8")
    elif isinstance(snippet, MakeTarget):
        subprocess.run(["make", "-n", snippet.target], cwd=ROOT, check=True, capture_output=True)
    else:
        _run(snippet, folder)


def _run(snippet: RunCommand | RunPython, folder: Path) -> None:
    if isinstance(snippet, RunCommand):
        command, expected = ["bash", "-c", snippet.command], snippet.expected
    else:
        command, expected = [sys.executable, "-c", snippet.code], ()
    done = subprocess.run(
        command, cwd=folder, env=_environment(folder), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, f"{snippet}\n{done.stdout}\n{done.stderr}"
    rest = done.stdout
    for line in expected:
        assert line in rest, f"{snippet} does not print {line!r}:\n{done.stdout}\n{done.stderr}"
        rest = rest[rest.index(line) + len(line) :]


def _joined(snippets: Iterable[Snippet]) -> list[Snippet]:
    """Python blocks that follow each other are one program: a later one may use what an earlier one made."""
    joined: list[Snippet] = []
    for snippet in snippets:
        if isinstance(snippet, RunPython) and joined and isinstance(joined[-1], RunPython):
            joined[-1] = RunPython(f"{joined[-1].code}\n{snippet.code}")
        else:
            joined.append(snippet)
    return joined


@pytest.mark.promise("DOCS-RUN")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_snippet_of_a_document_does_what_it_says(document: str, tmp_path: Path) -> None:
    for snippet in _joined(snippets_of((ROOT / document).read_text(encoding="utf-8"))):
        _execute(snippet, tmp_path)


def test_a_document_that_prints_something_else_is_found(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="does not print"):
        _execute(RunCommand("echo hello", ("goodbye",)), tmp_path)


def test_every_relative_link_of_a_document_leads_somewhere() -> None:
    import re

    for document in [*DOCUMENTS, "GLOSSARY.md", "CHANGELOG.md"]:
        path = ROOT / document
        for target in re.findall(
            r"\]\((?!https?:|#)([^)#]+)", re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        ):
            assert (path.parent / target).exists(), f"{document} links to {target}, which is not there"


def test_every_setting_is_documented() -> None:
    from dataclasses import fields

    from outfitter.app import Settings

    text = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    for setting in fields(Settings):
        assert f"| `{setting.name}` | `{setting.metadata['env']}` |" in text
