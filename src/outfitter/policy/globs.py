"""Which texts a glob on an argument matches.

``*`` and ``?`` stay inside one path segment, ``**`` crosses them. A path is compared in its normal form, so that
``tests/../src/x`` is never taken for something under ``tests``. Links on disk are not followed: this is pure text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

INCOMPARABLE = "\0"
_LONGEST_TEXT = 4096
_PIECES = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|.", re.DOTALL)
_ANY, _NOT_SLASH = re.compile(r".", re.DOTALL), re.compile(r"[^/]")


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a glob: a character it takes, once or any number of times, and how many steps may be skipped."""

    takes: re.Pattern[str]
    repeats: bool = False
    skips: int = 0


@lru_cache(maxsize=1024)
def _compile(glob: str) -> tuple[_Step, ...]:
    return tuple(step for piece in _PIECES.findall(glob) for step in _steps(piece))


def _steps(piece: str) -> Iterator[_Step]:
    if piece == "**/":
        yield _Step(_ANY, repeats=True, skips=2)
        yield _Step(re.compile("/"))
    elif piece in {"*", "**"}:
        yield _Step(_NOT_SLASH if piece == "*" else _ANY, repeats=True, skips=1)
    elif piece == "?":
        yield _Step(_NOT_SLASH)
    else:
        yield _Step(_character_class(piece) if len(piece) > 1 else re.compile(re.escape(piece)))


def _character_class(piece: str) -> re.Pattern[str]:
    """One of these characters, or none of them after ``!``; never a slash. A backward range holds nothing."""
    start, inside = (r"(?!/)[^", piece[2:-1]) if piece[1] == "!" else ("[", piece[1:-1])
    try:
        return re.compile(start + re.escape(inside).replace(r"\-", "-") + "]")
    except re.error:
        return re.compile(r"[^\s\S]")


def _fits(steps: tuple[_Step, ...], text: str) -> bool:
    """Follow every way through the glob at once: the time is bounded by text times glob, whatever they hold."""
    places = _with_skips(steps, {0})
    for character in text:
        taken = {place for place in places if place < len(steps) and steps[place].takes.match(character)}
        places = _with_skips(steps, {place + (not steps[place].repeats) for place in taken})
        places |= _with_skips(steps, {place + 1 for place in taken if steps[place].repeats})
        if not places:
            return False
    return len(steps) in places


def _with_skips(steps: tuple[_Step, ...], places: Iterable[int]) -> set[int]:
    reached = set(places)
    waiting = list(reached)
    while waiting:
        place = waiting.pop()
        target = place + (steps[place].skips if place < len(steps) else 0)
        if target not in reached:
            reached.add(target)
            waiting.append(target)
    return reached


def is_comparable(text: str) -> bool:
    """Whether a glob can be held against the text: NUL and excessive length cannot."""
    return "\0" not in text and len(text) <= _LONGEST_TEXT


def matches(glob: str, text: str, *, climbs: bool = False) -> bool:
    """Whether the glob matches the whole text, taken as a path in normal form.

    A path that leaves its folder (``../x``) is matched by a wildcard only when ``climbs`` says so, and ``**/`` stands
    for folders below this one, never for the root.
    """
    if not is_comparable(text):
        return False
    path = _normal(text)
    if path.startswith("..") and not (climbs or glob == "**" or glob.startswith("..")) and _leaves(path):
        return False
    if path.startswith("/") and glob.startswith("**/"):
        return False
    return _fits(_compile(glob), path)


def _leaves(path: str) -> bool:
    return path == ".." or path.startswith("../")


def _normal(text: str) -> str:
    unified = text.replace("\\", "/")
    return posixpath.normpath(unified) if "/" in unified or unified in {".", ".."} else unified
