"""What is to be done, when nobody can be asked? ``identity/now.md`` and the files of ``triage/``.

Pure: text in, items out. Whoever can be asked is ``backlog``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from outfitter.squad.folder_files import Text
from outfitter.squad.markdown import fields_of, front_matter_of, plain, sections_of, slug_of, tables_of
from outfitter.squad.team import BacklogItem

_BULLET = re.compile(r"^[ \t]{0,8}(?:[-*+]|\d{1,3}[.)])[ \t]{1,4}(?:\[([ xX])\][ \t]{1,4})?([^\n]+)$", re.MULTILINE)
_ISSUE = re.compile(r"#(\d{1,9})\b")
_NUMBER = re.compile(r"\d{1,9}")
_LABEL = re.compile(r"\bsquad:([\w-]{1,64})")
_URL = re.compile(r"https?://[^\s)\]>|]{1,400}")
_STEPS = ("next step", "next up", "to do", "todo")
_CLOSED = frozenset({"closed", "done", "resolved", "rejected", "wontfix"})
_TITLE_SIZE = 300


@dataclass(frozen=True, slots=True)
class Tasks:
    """What a file says is to be done."""

    items: tuple[BacklogItem, ...] = ()
    notes: tuple[str, ...] = ()


def read_now(text: Text) -> Tasks:
    """The active issues of the front matter, and the next steps that are not ticked off."""
    front, rest = front_matter_of(text.text)
    items = [_issue(told) for told in front.get("active_issues", []) if told]
    level = 0
    for section in sections_of(rest):
        heading = section.title.lower()
        if any(heading.startswith(word) for word in _STEPS):
            level = section.level
        elif level and section.level <= level:
            level = 0
        if level:
            items.extend(_steps(section.body))
    return Tasks(tuple(items), text.notes)


def _issue(told: str) -> BacklogItem:
    number = _ISSUE.search(told) or _NUMBER.match(told)
    digits = number[0].lstrip("#") if number else ""
    title = told.replace(number[0], "", 1).strip(" #:—–-") if number else told
    return _item(f"#{digits}" if digits else f"now-{slug_of(told)}", title or f"issue {digits}", told)


def _steps(body: str) -> Iterator[BacklogItem]:
    for mark in _BULLET.finditer(body):
        if (mark[1] or "").lower() == "x":
            continue
        number = _ISSUE.search(mark[2])
        yield _item(number[0] if number else f"now-{slug_of(mark[2])}", mark[2], mark[2])


def _item(id_: str, title: str, told: str) -> BacklogItem:
    labels = tuple(dict.fromkeys(f"squad:{name}" for name in _LABEL.findall(told)))
    url = _URL.search(told)
    assignee = labels[0].removeprefix("squad:") if labels else ""
    return BacklogItem(id_, plain(title)[:_TITLE_SIZE], "open", assignee, labels, url[0] if url else "")


def read_triage(text: Text) -> Tasks:
    """The rows of its tables that name an issue; else what is not ticked off; else the file itself."""
    front, rest = front_matter_of(text.text)
    status = plain((front.get("status") or [fields_of(rest[:4000]).get("status", "open")])[0]).lower() or "open"
    if status in _CLOSED or not text.text.strip():
        return Tasks((), text.notes)
    items = [item for table in tables_of(rest) for row in table.rows if (item := _row(dict(row))) is not None]
    if not items and ("[ ]" in rest or "[x]" in rest.lower()):
        items = [item for section in sections_of(rest) for item in _steps(section.body)]
    return Tasks(tuple(items) or (_file(text.key, front.get("title", []), rest),), text.notes)


def _row(row: dict[str, str]) -> BacklogItem | None:
    number = next((found for cell in row.values() if (found := _ISSUE.search(cell))), None)
    if number is None or plain(row.get("status", row.get("state", ""))).lower() in _CLOSED:
        return None
    title = row.get("title") or row.get("summary") or row.get("description") or next(
        (cell for cell in row.values() if plain(cell).strip("# ") != number[1]), "")  # fmt: skip
    item = _item(number[0], title, " ".join(row.values()))
    assignee = item.assignee or slug_of(row.get("assignee") or row.get("assigned to") or row.get("route to") or "")
    return BacklogItem(item.id, item.title, "open", assignee, item.labels, item.url)


def _file(key: str, titles: list[str], rest: str) -> BacklogItem:
    heading = next((section.title for section in sections_of(rest) if section.level), "")
    stem = key.rpartition("/")[2].removesuffix(".md")
    return _item(f"triage-{slug_of(stem)}", (titles or [heading])[0] or heading or stem, rest[:4000])
