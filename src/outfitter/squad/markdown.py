"""What does a text of a team say? Headings, tables, ``**Field:**`` lines and front matter of Markdown, read tolerantly.

Nothing is refused: what is not understood is left out. Every pattern here is linear in the text. What the parts *mean*
is ``roster``, ``decisions``, ``histories`` and ``tasks``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

_MARKS = re.compile(r"^(?:(#{1,6})[ \t]([^\n]*)|[ \t]{0,3}(`{3,}|~{3,})[^\n]*)$", re.MULTILINE)
_FIELD = re.compile(
    r"^[ \t]{0,8}(?:[-*+][ \t]{1,4})?\*\*([^*\n:]{1,60})(?::\*\*|\*\*[ \t]{0,4}:)([^\n]*)$", re.MULTILINE
)
_PLAIN_FIELD = re.compile(r"^[ \t]{0,8}[-*+][ \t]{1,4}([A-Za-z][A-Za-z ]{0,40}):([^\n]*)$", re.MULTILINE)
_RULE_CELL = re.compile(r":?-+:?")
_LINK = re.compile(r"\[([^\]\n]{0,200})\]\([^)\n]{0,500}\)")
_MOMENT = re.compile(
    r"(?<!\d)(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T _-](\d{2})[:-]?(\d{2})(?:[:-]?(\d{2})(?:\.\d{1,9})?)?(Z|[+-]\d{2}[:-]?\d{2})?)?(?!\d)",
    re.ASCII,
)
_NOT_SLUG = re.compile(r"[^\w]+|_+")
_SLUG_SIZE = 64
_PLAIN_SIZE = 4000
_PICTURES = frozenset({"So", "Sk", "Cn", "Cf"})
_NOTHING = frozenset({"", "-", "–", "—", "n/a", "none", "tbd"})


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands below it, up to the next heading of any level. Level 0 is what comes before all."""

    level: int
    title: str
    body: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the heading it stands under, and its rows by column name in lower case."""

    heading: str
    rows: tuple[Mapping[str, str], ...]


def sections_of(text: str) -> list[Section]:
    """The text cut at its headings; what looks like a heading inside a code block is none."""
    found: list[Section] = []
    start, level, title, fence = 0, 0, "", ""
    for mark in _MARKS.finditer(text):
        if mark[3] is not None:
            fence = _fence_after(fence, mark[3])
        elif not fence:
            found.append(Section(level, title, text[start : mark.start()]))
            start, level, title = mark.end() + 1, len(mark[1]), heading_of(mark[2])
    found.append(Section(level, title, text[start:]))
    return found


def heading_of(text: str) -> str:
    """What stands behind the marks of a heading."""
    return text.strip().rstrip("#").rstrip()


def _fence_after(fence: str, mark: str) -> str:
    if not fence:
        return mark
    return "" if mark[0] == fence[0] and len(mark) >= len(fence) else fence


def tables_of(text: str) -> list[Table]:
    """Every table that has a heading row and a rule; a row with too few cells has empty ones."""
    return [table for section in sections_of(text) for table in _tables_in(section)]


def _tables_in(section: Section) -> Iterator[Table]:
    lines = section.body.splitlines()
    at = 0
    while at + 1 < len(lines):
        columns = _cells(lines[at])
        if not columns or not _is_rule(lines[at + 1]):
            at += 1
            continue
        names = [plain(cell).lower() for cell in columns]
        rows: list[Mapping[str, str]] = []
        at += 2
        while at < len(lines) and (cells := _cells(lines[at])):
            if not _is_rule(lines[at]):
                rows.append(dict(zip(names, cells + [""] * (len(names) - len(cells)), strict=False)))
            at += 1
        yield Table(section.title, tuple(rows))


def _cells(line: str) -> list[str]:
    bare = line.strip()
    if not bare.startswith("|"):
        return []
    inner = bare[1:-1] if bare.endswith("|") and len(bare) > 1 else bare[1:]
    return [cell.replace("\0", "|").strip() for cell in inner.replace("\\|", "\0").split("|")]


def _is_rule(line: str) -> bool:
    cells = _cells(line)
    return bool(cells) and all(_RULE_CELL.fullmatch(cell) for cell in cells)


def fields_of(text: str) -> dict[str, str]:
    """``**Name:** value`` by name in lower case, the first of each; also rows ``| **Name** | value |`` of a table."""
    found: dict[str, str] = {}
    for mark in _FIELD.finditer(text):
        found.setdefault(mark[1].strip().lower(), mark[2].strip())
    for line in text.splitlines() if "|" in text else ():
        cells = _cells(line)
        if len(cells) > 1 and cells[0].startswith("**"):
            found.setdefault(plain(cells[0]).rstrip(":").lower(), cells[1])
    return found


def bullets_of(text: str) -> dict[str, str]:
    """``- Name: value`` and ``- **Name:** value`` by name in lower case."""
    found = {mark[1].strip().lower(): mark[2].strip() for mark in _PLAIN_FIELD.finditer(text)}
    return {**found, **fields_of(text)}


def plain(text: str) -> str:
    """The words without emphasis, code marks, links and emoji; of a very long text the start."""
    bare = _LINK.sub(r"\1", text[:_PLAIN_SIZE]) if "[" in text else text[:_PLAIN_SIZE]
    bare = bare.replace("`", "").replace("**", "")
    if not bare.isascii():
        bare = "".join(c for c in bare if unicodedata.category(c) not in _PICTURES and c != "\ufe0f")
    bare = bare.strip().strip("*").strip()
    return "" if bare.lower() in _NOTHING else bare


def slug_of(text: str) -> str:
    """The text as it may stand in a URI or a file name: words of letters and digits, joined with '-'."""
    bare = plain(text).lower().replace("'", "").replace("’", "")
    return unicodedata.normalize("NFC", _NOT_SLUG.sub("-", bare)).strip("-")[:_SLUG_SIZE].rstrip("-")


def moment_in(text: str) -> tuple[str, int, int] | None:
    """The first day or moment in the text as ISO 8601, and where it stands; None without a real one."""
    for mark in _MOMENT.finditer(text):
        year, month, day, hour, minute, second, zone = mark.groups()
        try:
            date(int(year), int(month), int(day))
            if hour is None:
                return f"{year}-{month}-{day}", mark.start(), mark.end()
            clock = f"{hour}:{minute}:{second or '00'}{_zone(zone)}"
            datetime.fromisoformat(f"{year}-{month}-{day}T{clock}")
        except ValueError:
            continue
        return f"{year}-{month}-{day}T{clock}", mark.start(), mark.end()
    return None


def _zone(text: str | None) -> str:
    if not text or text == "Z":
        return text or ""
    return f"{text[:3]}:{text[-2:]}"


def order_of(moment: str) -> float:
    """A number that grows with time, for a day or moment in ISO 8601; less than any other for an empty one."""
    try:
        read = datetime.fromisoformat(moment)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return float("-inf")


def front_matter_of(text: str) -> tuple[dict[str, list[str]], str]:
    """What stands between ``---`` lines at the start, each value as a list, and the rest of the text."""
    if not text.startswith("---"):
        return {}, text
    head, mark, rest = text.removeprefix("---").partition("\n---")
    if not mark:
        return {}, text
    found: dict[str, list[str]] = {}
    name = ""
    for line in head.splitlines():
        item = line.strip()
        if item.startswith("- ") and name:
            found[name].append(_scalar(item[2:]))
        elif line[:1].isalnum() and ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            found[name] = _values(value.strip())
    return found, rest.partition("\n")[2]


def _values(text: str) -> list[str]:
    if text.startswith("[") and text.endswith("]"):
        return [_scalar(part) for part in text[1:-1].split(",") if part.strip()]
    return [_scalar(text)] if text else []


def _scalar(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "\"'" else bare
