"""Which texts a glob on an argument matches.

``*`` and ``?`` stay inside one path segment, ``**`` crosses them. A path is compared in its normal form, so that
``tests/../src/x`` is never taken for something under ``tests``. Links on disk are not followed: this is pure text.
A glob that begins with ``text:`` is no path: what follows is compared with the text as it stands, whatever its case,
and ``*`` stands for any text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

INCOMPARABLE = "\0"
AS_IT_STANDS = "text:"
_LONGEST_TEXT = 4096
_PIECES = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^\]/]+\]|.", re.DOTALL)
_TEXT_PIECES = re.compile(r"\*+|\[!?[^\]/]+\]|.", re.DOTALL)
_ANY, _NOT_SLASH, _NOTHING = re.compile(r".", re.DOTALL), re.compile(r"[^/]"), re.compile(r"[^\s\S]")


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a glob: a character it takes, once or any number of times, and how far ahead one may go without."""

    takes: re.Pattern[str]
    repeats: bool = False
    skips: tuple[int, ...] = ()


@lru_cache(maxsize=1024)
def _compile(glob: str) -> tuple[_Step, ...]:
    return tuple(step for piece in _PIECES.findall(glob) for step in _steps(piece))


@lru_cache(maxsize=1024)
def _compile_text(glob: str) -> re.Pattern[str]:
    """A pattern that takes each piece where it first stands and never goes back: text times glob bounds the time."""
    runs = [""]
    for piece in _TEXT_PIECES.findall(glob):
        if piece.startswith("*"):
            runs.append("")
        elif len(piece) > 1:
            runs[-1] += _character_class(piece).pattern
        else:
            runs[-1] += "." if piece == "?" else re.escape(piece)
    first, *others = runs
    last = f".*{others.pop()}" if others else ""
    return re.compile(first + "".join(f"(?>.*?{run})" for run in others) + last, re.DOTALL)


def _steps(piece: str) -> Iterator[_Step]:
    if piece == "**/":
        yield _Step(_NOTHING, skips=(1, 3))  # no folder at all, or some text that ends with a slash
        yield _Step(_ANY, repeats=True, skips=(1,))
        yield _Step(re.compile("/"))
    elif piece in {"*", "**"}:
        yield _Step(_NOT_SLASH if piece == "*" else _ANY, repeats=True, skips=(1,))
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
        return _NOTHING


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
        for target in (place + far for far in steps[place].skips) if place < len(steps) else ():
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def is_comparable(text: str) -> bool:
    """Whether a glob can be held against the text: NUL and excessive length cannot."""
    return "\0" not in text and len(text) <= _LONGEST_TEXT


def matches(glob: str, text: str, *, climbs: bool = False) -> bool:
    """Whether the glob matches the whole text, taken as a path in normal form.

    Only with ``climbs`` a path that leaves its folder (``../x``) is matched by a wildcard, and one from the root by
    ``**/``. With it the text as it stands is looked at too: it need not be a path, and ``..`` in it must not hide what
    stands before.
    """
    if not is_comparable(text):
        return False
    if glob.startswith(AS_IT_STANDS):
        return _compile_text(glob.removeprefix(AS_IT_STANDS).lower()).fullmatch(text.lower()) is not None
    path = _normal(text)
    if climbs and path != text and _fits(_compile(glob), text):
        return True
    if path.startswith("..") and not (climbs or glob == "**" or glob.startswith("..")) and _leaves(path):
        return False
    if path.startswith("/") and glob.startswith("**/") and not climbs:
        return False
    return _fits(_compile(glob), path)


def _leaves(path: str) -> bool:
    return path == ".." or path.startswith("../")


def _normal(text: str) -> str:
    unified = text.replace("\\", "/")
    return posixpath.normpath(unified) if "/" in unified or unified in {".", ".."} else unified
