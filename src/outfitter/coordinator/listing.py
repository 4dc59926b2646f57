"""Lists in pages, and search, from memory: a page costs what it shows, a search one pass over one text.

A cursor is the id of the last item of the page before, so that a page is right whatever was added or taken away
meanwhile. The texts that are searched are id, name and description: never a header.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from outfitter.coordinator.text_shelf import TextShelf
from outfitter.coordinator.view import View
from outfitter.errors import Invalid
from outfitter.storage import Entry, Kind, User

MOST = 1000
_LONGEST = 18
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part of a list: after a cursor, so many, with a text in it."""

    cursor: str | None = None
    limit: int = 100
    text: str | None = None


@dataclass(frozen=True, slots=True)
class _Shelf:
    """The ids of one kind in order, and what is searched."""

    ids: list[str]
    texts: TextShelf


class Listing:
    """The order and the search text of each kind, made when first asked for after a change."""

    def __init__(self) -> None:
        self._revision = -1
        self._shelves: dict[Kind, _Shelf] = {}

    def page(self, view: View, kind: Kind, wanted: Wanted) -> tuple[list[Entry], str | None]:
        """The entries of a page, and the cursor of the next one."""
        check_limit(wanted.limit)
        shelf = self._shelf(view, kind)
        first = 0 if wanted.cursor is None else bisect_right(shelf.ids, wanted.cursor)
        found = shelf.texts.find(wanted.text, first) if wanted.text else iter(range(first, len(shelf.ids)))
        places = [place for place, _ in zip(found, range(wanted.limit + 1), strict=False)]
        items = [view.entries[User(kind, shelf.ids[place])] for place in places[: wanted.limit]]
        return items, items[-1].id if len(places) > wanted.limit else None

    def _shelf(self, view: View, kind: Kind) -> _Shelf:
        if self._revision != view.revision:
            self._shelves, self._revision = {}, view.revision
        shelf = self._shelves.get(kind)
        if shelf is None:
            shelf = self._shelves[kind] = _make(view, kind)
        return shelf


def check_limit(limit: int) -> None:
    """Refuse pages of no or endless size."""
    if not 1 <= limit <= MOST:
        raise Invalid(f"a page has 1 to {MOST} items", hint="mend 'limit'")


def is_plain(name: str | None) -> bool:
    """Whether anything could have this name; what no database could even compare has not."""
    return name is None or _PLAIN.fullmatch(name) is not None


def read_number(cursor: str | None) -> int | None:
    """The number that the cursor of a list by number holds."""
    if cursor is None:
        return None
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > _LONGEST:
        raise Invalid("this cursor is none of this list", hint="use the next_cursor of the page before")
    return int(cursor)


def _make(view: View, kind: Kind) -> _Shelf:
    ids = sorted(name.id for name in view.entries if name.kind == kind)
    return _Shelf(ids, TextShelf.of(_text_of(view.entries[User(kind, name)]) for name in ids))


def _text_of(entry: Entry) -> str:
    fields = (entry.id, entry.document.get("name"), entry.document.get("description"))
    return "\n".join(field for field in fields if isinstance(field, str))
