"""Every file in examples/ runs, as a person would run it, and says nothing on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


@pytest.mark.promise("EXAMPLES-RUN")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_example_runs(file: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": str(tmp_path), "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(file)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.promise("EXAMPLES-RUN")
def test_every_example_is_listed_with_its_story() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [file.name for file in FILES if f"[{file.name}]({file.name})" not in index] == []
