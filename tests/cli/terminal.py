"""Running the real command line in a folder of its own, as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:  # noqa: ANN401 - JSON is what it is
        """The output read as JSON."""
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A folder to work in and an environment of its own."""

    folder: Path
    environment: dict[str, str]

    def run(self, *args: str, stdin: str = "", **variables: str) -> Printed:
        """Run ``outfitter`` with these arguments."""
        env = {**self.environment, **variables}
        done = subprocess.run(
            [sys.executable, "-m", "outfitter", *args],
            cwd=self.folder,
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return Printed(done.returncode, done.stdout, done.stderr)

    def write(self, path: str, value: object) -> Path:
        """Write a file: text as it is, anything else as JSON."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return target

    def snapshot(self) -> dict[str, bytes]:
        """Every file's content, to compare before and after."""
        return {str(p.relative_to(self.folder)): p.read_bytes() for p in self.folder.rglob("*") if p.is_file()}


def open_terminal(folder: Path) -> Terminal:
    """A terminal in this folder with nothing set but what Python needs."""
    return Terminal(folder, {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"})
