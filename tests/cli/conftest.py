"""A terminal in an empty folder, and one in a folder with the demo catalog."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, open_terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    """An empty folder."""
    return open_terminal(tmp_path)


@pytest.fixture
def demo(terminal: Terminal) -> Terminal:
    """A folder with the demo catalog."""
    assert terminal.run("init", "--demo").code == 0
    return terminal
