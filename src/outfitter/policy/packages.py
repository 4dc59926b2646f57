"""Does a command line fetch a package of whatever version there is? Pure; who warns and who refuses is further up."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

_RUNNERS: dict[str, tuple[str, ...]] = {
    "npx": (), "bunx": (), "uvx": (), "pipx": ("run",), "npm": ("exec",), "pnpm": ("dlx",), "yarn": ("dlx",),
    "uv": ("tool", "run"),
}  # fmt: skip
"""Programs that fetch what they start, each with the words that make it do so."""
_OF_PYTHON = frozenset({"uvx", "uv", "pipx"})
_NPM_PINNED = re.compile(r".+@\d+\.\d+\.\d+[\w.+-]*", re.ASCII)
_PYTHON_PINNED = re.compile(r".+(@|==)\d[\w.+!-]*", re.ASCII)
_EXTENSION = re.compile(r"\.(exe|cmd|bat)$", re.IGNORECASE)


def unpinned_package(command: str, args: Sequence[str]) -> str | None:
    """The package whose code can be another at any start; None where the version is fixed, or nothing is fetched."""
    name = _EXTENSION.sub("", PurePath(command).name.lower())
    words = _RUNNERS.get(name)
    plain = [arg for arg in args if not arg.startswith("-")]
    if words is None or tuple(plain[: len(words)]) != words or len(plain) == len(words):
        return None
    package = plain[len(words)]
    pinned = _PYTHON_PINNED if name in _OF_PYTHON else _NPM_PINNED
    is_local = package.startswith((".", "/", "~"))
    return None if is_local or "${" in package or pinned.fullmatch(package) else package
