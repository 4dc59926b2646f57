"""Where in a text does a value stand?

A walker per syntax goes through a text and yields one Entry per value: its path, and the offset of its key. Walkers
are forgiving, never recurse without a bound, and run only when an error is told; YAML is also read through its walker.
Here are those of YAML and TOML. JSON and its walker are ``jsonc``; reading the others is ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from outfitter.basics import quote
from outfitter.errors import InvalidDocument

if TYPE_CHECKING:
    from yaml.events import Event, NodeEvent

Path: TypeAlias = "tuple[str | int, ...]"

MAX_DEPTH = 100
"""How many objects and lists may stand inside each other."""
_SHOWN_PATH = 200
_SHOWN_STEPS = 5


class Entry(NamedTuple):
    """One value of a text: where its key begins (in a list: itself), and where the value begins."""

    path: Path
    at: int
    value_at: int
    is_alias: bool = False


class YamlEntry(NamedTuple):
    """One node of a YAML text; a key is told before its value, under the same path."""

    path: Path
    at: int
    event: NodeEvent
    is_key: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """A text that is being read: it knows how to blame a place in itself."""

    text: str
    source: str
    walk: Callable[[str], Iterator[Entry]] | None = None

    def fault(self, message: str, *, path: Path = (), at: int | None = None, hint: str = "") -> InvalidDocument:
        """The error to raise, with the line of the offset or else of the path."""
        if at is not None:
            line = line_at(self.text, at)
        else:
            line = find_line(self.text, path, self.walk(self.text)) if self.walk else None
        return InvalidDocument(message, source=self.source, line=line, path=shown_pointer(path), hint=hint)

    def repeat_fault(self, path: Path, *, at: int) -> InvalidDocument:
        """What to raise for a key that stands in one object twice."""
        first = find_line(self.text, path, self.walk(self.text)) if self.walk else None
        message = f"the key {quote(str(path[-1]))} is given twice, first in line {first}"
        return self.fault(message, path=path, at=at, hint="keep one of the two")

    def depth_fault(self, path: Path, *, at: int | None = None) -> InvalidDocument:
        """What to raise for objects and lists that nest too deep; the path is where that begins."""
        message = f"objects and lists nest deeper than {MAX_DEPTH} levels"
        return self.fault(message, path=path[:_SHOWN_STEPS], at=at, hint="make the document flatter")


def pointer(path: Sequence[str | int]) -> str:
    """The path as a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def line_at(text: str, offset: int) -> int:
    """The line, counted from 1, in which the offset lies."""
    return text.count("\n", 0, offset) + 1


def find_line(text: str, path: Path, entries: Iterator[Entry]) -> int | None:
    """The line of the entry with this path, or of the alias that stands for it."""
    for entry in entries:
        if entry.path == path or (entry.is_alias and path[: len(entry.path)] == entry.path):
            return line_at(text, entry.at)
    return None


def find_lines(text: str, paths: frozenset[Path], entries: Iterator[Entry]) -> dict[Path, int]:
    """The lines of the first entries with these paths; the text is gone through once."""
    lines: dict[Path, int] = {}
    line, counted = 1, 0
    for entry in entries:
        if len(lines) == len(paths):
            break
        if entry.path in paths and entry.path not in lines:
            line, counted = line + text.count("\n", counted, entry.at), entry.at
            lines[entry.path] = line
    return lines


def shown_pointer(path: Path) -> str:
    """The pointer as it may stand in a message: on one line, and cut when long."""
    text = pointer(path)
    cut = text if len(text) <= _SHOWN_PATH else text[:_SHOWN_PATH] + "…"
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in cut)


@dataclass(slots=True)
class OpenFrame:
    """An open object or list: the step from it to the value that comes next, and where that step was written."""

    step: str | int | None
    at: int = -1

    def advance(self) -> None:
        """Expect the next key or element."""
        self.step = self.step + 1 if isinstance(self.step, int) else None
        self.at = -1

    def start(self, value_at: int) -> int:
        """Where the entry begins: at its key, or in a list where the value does."""
        return self.at if self.at >= 0 else value_at


def path_of(frames: list[OpenFrame]) -> Path:
    """The path of the value that comes next; the first frame is the document itself."""
    return tuple(frame.step for frame in frames[1:] if frame.step is not None)


# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def yaml_entries(text: str) -> Iterator[Entry]:
    """Every value of a YAML text in order; it ends early where the text makes no sense."""
    from yaml import YAMLError
    from yaml.events import AliasEvent

    try:
        for entry in yaml_nodes(text):
            if not entry.is_key:
                is_alias = isinstance(entry.event, AliasEvent)
                yield Entry(entry.path, entry.at, entry.event.start_mark.index, is_alias)
    except YAMLError:
        return


def yaml_nodes(text: str) -> Iterator[YamlEntry]:
    """Every key and value of a YAML text in order; a key that is no scalar and a nest too deep are the last to come."""
    from yaml.events import CollectionEndEvent, CollectionStartEvent, MappingStartEvent, NodeEvent, ScalarEvent

    frames = [OpenFrame(0)]
    for event in _yaml_events(text):
        frame, at = frames[-1], event.start_mark.index
        if isinstance(event, CollectionEndEvent):
            frames.pop()
            frames[-1].advance()
        elif isinstance(event, NodeEvent) and frame.step is not None:
            yield YamlEntry(path_of(frames), frame.start(at), event, is_key=False)
            if isinstance(event, CollectionStartEvent):
                frames.append(OpenFrame(None if isinstance(event, MappingStartEvent) else 0))
            else:
                frame.advance()
        elif isinstance(event, ScalarEvent):
            frame.step, frame.at = event.value, at
            yield YamlEntry(path_of(frames), at, event, is_key=True)
        elif isinstance(event, NodeEvent):
            yield YamlEntry(path_of(frames), at, event, is_key=True)
            return
        if len(frames) > MAX_DEPTH + 1:
            return


def _yaml_events(text: str) -> Iterator[Event]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    yield from yaml.parse(text, loader)  # pyright: ignore[reportUnknownMemberType] (the stubs leave it untyped)


# ── TOML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_TOML_GAP = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_TOML_PART = re.compile(r"""[ \t]*+([A-Za-z0-9_-]++|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+')[ \t]*+(\.?)""")
_TOML_SCALAR = re.compile(
    r"""\"{3}(?:[^"\\]++|\\.|"(?!""))*+"{3,5}|'{3}(?:[^']++|'(?!''))*+'{3,5}|"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*+'|"""
    r"""[^\s,\[\]{}#"'=][^,\[\]{}#"'=\n]*+""",
    re.DOTALL,
)


def toml_entries(text: str) -> Iterator[Entry]:
    """Every value of a TOML text in order; it ends early where the text makes no sense or nests too deep."""
    return _TomlWalk(text).entries()


class _TomlWalk:
    """A pass over a TOML text; ``pos`` is where it stands, and below zero once it has given up."""

    __slots__ = ("_known", "_lengths", "_text", "pos")

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: set[Path] = set()
        self._lengths: dict[Path, int] = {}
        self.pos = 0

    def entries(self) -> Iterator[Entry]:
        """The whole text: headers, and the pairs under each."""
        yield Entry((), 0, 0)
        home: Path = ()
        self._skip_gap()
        while 0 <= self.pos < len(self._text):
            if self._text[self.pos] == "[":
                start = self.pos
                home = self._read_header()
                yield from self._met(home, start, start)
            else:
                yield from self._read_pair(home)
            self._skip_gap()

    def _skip_gap(self) -> None:
        gap = _TOML_GAP.match(self._text, self.pos) if self.pos >= 0 else None
        self.pos = gap.end() if gap else -1

    def _read_key(self) -> list[str]:
        """The parts of a dotted key; giving up leaves ``pos`` below zero."""
        parts: list[str] = []
        while len(parts) <= MAX_DEPTH and (part := _TOML_PART.match(self._text, self.pos)):
            parts.append(_toml_key(part[1]))
            self.pos = part.end()
            if not part[2]:
                return parts
        self.pos = -1
        return parts

    def _read_header(self) -> Path:
        is_list = self._text.startswith("[[", self.pos)
        self.pos += 2 if is_list else 1
        parts = self._read_key()
        self._take("]]" if is_list else "]")
        if not is_list or not parts:
            return self._resolve((), parts)
        path = (*self._resolve((), parts[:-1]), parts[-1])
        self._lengths[path] = self._lengths.get(path, 0) + 1
        return (*path, self._lengths[path] - 1)

    def _take(self, mark: str) -> bool:
        """Step over the mark, or give up."""
        is_there = self.pos >= 0 and self._text.startswith(mark, self.pos)
        self.pos = self.pos + len(mark) if is_there else -1
        return is_there

    def _resolve(self, home: Path, parts: list[str]) -> Path:
        """The path of a key, with the index of the newest element at every list of tables on the way."""
        for part in parts:
            home = (*home, part)
            if home in self._lengths:
                home = (*home, self._lengths[home] - 1)
        return home

    def _met(self, path: Path, at: int, value_at: int) -> Iterator[Entry]:
        """This entry, after the tables above it that were not written out."""
        for length in range(1, len(path)):
            if path[:length] not in self._known:
                self._known.add(path[:length])
                yield Entry(path[:length], at, value_at)
        self._known.add(path)
        yield Entry(path, at, value_at)
        if len(path) > MAX_DEPTH:
            self.pos = -1

    def _read_pair(self, home: Path) -> Iterator[Entry]:
        at = self.pos
        path = (*home, *self._read_key())
        if not self._take("="):
            yield from self._met(path, at, at) if path != home else ()
            return
        self._skip_gap()
        yield from self._met(path, at, self.pos)
        yield from self._read_value(path)

    def _read_value(self, path: Path) -> Iterator[Entry]:
        """What stands inside the value; its own entry has been told."""
        if self.pos < 0:
            return
        opener = self._text[self.pos : self.pos + 1]
        if opener in {"[", "{"}:
            self.pos += 1
            yield from self._read_members(path, "]" if opener == "[" else "}")
        else:
            scalar = _TOML_SCALAR.match(self._text, self.pos)
            self.pos = scalar.end() if scalar else -1

    def _read_members(self, path: Path, closer: str) -> Iterator[Entry]:
        index = 0
        self._skip_gap()
        while 0 <= self.pos < len(self._text) and self._text[self.pos] != closer:
            if closer == "}":
                yield from self._read_pair(path)
            else:
                yield from self._met((*path, index), self.pos, self.pos)
                yield from self._read_value((*path, index))
            index += 1
            self._skip_gap()
            if self.pos >= 0 and self._text.startswith(",", self.pos):
                self.pos += 1
                self._skip_gap()
        self.pos += self.pos >= 0


def _toml_key(written: str) -> str:
    if written[0] not in "\"'":
        return written
    import tomllib

    try:
        return str(tomllib.loads(f"key = {written}")["key"])
    except ValueError:
        return written[1:-1]


_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TOML_REPEATS = ("Cannot overwrite", "Cannot declare", "Duplicate")
_LONG_NUMBER = re.compile(r"\d[\d_]{4299}")


def toml_fault(draft: Draft, complaint: str) -> InvalidDocument:
    """What to raise for a complaint of ``tomllib``: it tells the line and seldom the key."""
    place = _TOML_PLACE.search(complaint)
    if place is None:
        number = _LONG_NUMBER.search(draft.text)
        hint = "write it as text in quotes"
        return draft.fault("a whole number has too many digits", at=number.start() if number else None, hint=hint)
    offset = _offset_of(draft.text, place)
    repeat = _last_repeat(draft, offset) if complaint.startswith(_TOML_REPEATS) else None
    if repeat:
        return draft.repeat_fault(repeat.path, at=repeat.at)
    message = f"not valid TOML: {complaint[:1].lower()}{complaint[1 : place.start()][:_SHOWN_PATH]}"
    return draft.fault(message, at=offset, hint="correct the file here or just before")


def _last_repeat(draft: Draft, offset: int) -> Entry | None:
    """The last key before the offset that was also given earlier."""
    seen: dict[Path, int] = {}
    repeat: Entry | None = None
    for entry in toml_entries(draft.text):
        if entry.at > offset:
            break
        repeat = repeat if seen.setdefault(entry.path, entry.at) == entry.at else entry
    return repeat


def _offset_of(text: str, place: re.Match[str]) -> int:
    if place[1] is None:
        return len(text)
    lines = text.split("\n", int(place[1]) - 1)
    return len(text) - len(lines[-1]) + int(place[2]) - 1
