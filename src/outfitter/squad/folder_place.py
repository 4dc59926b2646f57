"""Where is the team's folder? From a start folder up to the git root, with what its ``config.json`` moves elsewhere.

``.squad`` is looked for before the older ``.ai-team``; a worktree of git also has its main checkout. Nothing of the
team is read here but ``config.json``. What is in the folder is ``reader``.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

from outfitter.squad.folder_files import DiskShelf, decode

StateBackend: TypeAlias = Literal["local", "external", "branch"]
_NAMES = (".squad", ".ai-team")
_BRANCHES = frozenset({"orphan", "two-layer", "git-notes"})
_LOCAL = frozenset({"", "local", "worktree"})
_MAX_POINTER = 4096
_UNSAFE_KEY = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class SquadPlace:
    """Where a team's files are: ``root`` for its work, ``team`` for who it is; the same folder for most."""

    root: Path
    team: Path
    backend: StateBackend = "local"
    """``branch``: what changes is on the branch ``squad-state``."""
    notes: tuple[str, ...] = ()

    @property
    def project(self) -> Path:
        """The folder that the team works in."""
        return self.root.parent


def find_squad(start: str | Path = ".", environ: Mapping[str, str] | None = None) -> SquadPlace | None:
    """The team's folder for this start folder; None when there is none up to the root of the repository."""
    found = _find(Path(start).absolute())
    return None if found is None else place_of(found, environ)


def place_of(folder: Path, environ: Mapping[str, str] | None = None) -> SquadPlace:
    """What ``config.json`` of a team's folder says about where its files are."""
    notes: list[str] = []
    config = _config(folder, notes)
    backend = str(config.get("stateBackend") or "").lower()
    if backend not in _BRANCHES | _LOCAL | {"external"}:
        notes.append(f"config.json: the state backend {ascii(backend)[:80]} is not known; the folder itself is read")
    if folder.name == _NAMES[1]:
        notes.append("this is the older folder .ai-team; there is no .squad beside it")
    root = folder
    if backend == "external" or config.get("stateLocation") == "external":
        root = _external(folder, config, os.environ if environ is None else environ, notes)
    team = root if root != folder else _team_root(folder, config, notes)
    return SquadPlace(root, team, _backend(backend, root != folder), tuple(notes))


def _backend(named: str, is_external: bool) -> StateBackend:
    if named in _BRANCHES:
        return "branch"
    return "external" if is_external else "local"


def _find(start: Path) -> Path | None:
    if start.name in _NAMES and _is_dir(start):
        return start
    for folder in (start, *start.parents):
        found = _in(folder)
        if found is not None:
            return found
        mark = folder / ".git"
        if _is_dir(mark):
            return None
        if _is_file(mark):
            main = _main_checkout(folder, mark)
            return None if main is None else _in(main)
    return None


def _in(folder: Path) -> Path | None:
    return next((folder / name for name in _NAMES if _is_dir(folder / name)), None)


def _is_dir(path: Path) -> bool:
    """Whether there is such a folder that may be looked at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _main_checkout(worktree: Path, pointer: Path) -> Path | None:
    """The main checkout of a worktree, whose ``.git`` is a file that points into its ``.git/worktrees``."""
    try:
        with pointer.open("rb") as file:
            said = file.read(_MAX_POINTER).decode("utf-8", "replace")
    except OSError:
        return None
    if not said.startswith("gitdir:") or "\0" in said:
        return None
    inside = Path(os.path.normpath(worktree / said.removeprefix("gitdir:").partition("\n")[0].strip()))
    common = inside.parent.parent
    return common.parent if inside.parent.name == "worktrees" and _is_dir(common) else None


def _config(folder: Path, notes: list[str]) -> Mapping[str, object]:
    shelf = DiskShelf(folder)
    if shelf.version("config.json") is None:
        return {}
    text = decode("config.json", shelf.read(["config.json"])["config.json"])
    notes.extend(text.notes)
    try:
        found = json.loads(text.text)
    except (ValueError, RecursionError) as error:
        notes.append(f"config.json: it cannot be read as JSON ({type(error).__name__}); the folder itself is read")
        return {}
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _team_root(folder: Path, config: Mapping[str, object], notes: list[str]) -> Path:
    named = config.get("teamRoot")
    if not isinstance(named, str) or not named.strip() or "\0" in named:
        return folder
    team = Path(os.path.normpath(folder.parent / named))
    team = _in(team) or team
    if not _looks_like_a_team(team):
        notes.append(f"config.json: there is no team at teamRoot {ascii(named)[:200]}; the folder itself is read")
        return folder
    if team.resolve() != folder.resolve():
        notes.append(f"who the team is stands in {team} (teamRoot in config.json)")
    return team


def _looks_like_a_team(folder: Path) -> bool:
    return _is_file(folder / "team.md") or _is_dir(folder / "agents") or _is_dir(folder / "casting")


def _external(folder: Path, config: Mapping[str, object], environ: Mapping[str, str], notes: list[str]) -> Path:
    """The folder in the user's own configuration where everything of this project is."""
    named = config.get("projectKey")
    key = named if isinstance(named, str) and named else folder.parent.name.lower()
    key = _UNSAFE_KEY.sub("-", key).strip("-")
    base = _user_folder(environ)
    root = None if base is None or not key or ".." in key else base / "squad" / "projects" / key
    if root is None or not _is_dir(root):
        notes.append(f"config.json: the state is said to be external, but there is none for project {ascii(key)[:80]};"
                     " the copy in the folder may be old")  # fmt: skip
        return folder
    return root


def _user_folder(environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if sys.platform == "win32":
        named = environ.get("APPDATA") or environ.get("LOCALAPPDATA")
        return Path(named) if named else None
    if sys.platform == "darwin":
        return Path(home) / "Library" / "Application Support" if home else None
    named = environ.get("XDG_CONFIG_HOME")
    if named:
        return Path(named)
    return Path(home) / ".config" if home else None
