"""The snippets of a Markdown document: files to write, commands with their expected lines, Python to run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BLOCK = re.compile(r"(?:<!-- file: (?P<file>\S+) -->\n)?```(?P<language>\w*)\n(?P<body>.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class WriteFile:
    """A block that is the content of a file."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command with the lines its output must hold, in this order."""

    command: str
    expected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunPython:
    """A block of Python."""

    code: str


@dataclass(frozen=True, slots=True)
class MakeTarget:
    """A ``make`` command, which a test cannot run inside itself."""

    target: str


Snippet = WriteFile | RunCommand | RunPython | MakeTarget
_PROSE = {"", "text"}


def snippets_of(text: str) -> Iterator[Snippet]:
    """Every snippet in the order of the document; a block that is none of the known kinds is an error."""
    for block in _BLOCK.finditer(text):
        language, body = block["language"], block["body"]
        if block["file"]:
            yield WriteFile(block["file"], body)
        elif language == "console":
            yield from _commands(body)
        elif language == "python":
            yield RunPython(body)
        elif language == "sh":
            yield from (MakeTarget(line.split()[1]) for line in body.splitlines() if line.startswith("make "))
        elif language not in _PROSE:
            raise AssertionError(f"a {language} block that no test runs: {body[:60]!r}")


def _commands(body: str) -> Iterator[RunCommand]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, *expected = part.splitlines()
        yield RunCommand(command, tuple(line.strip() for line in expected if line.strip()))
