"""What does a search ask for? The tracker's small query language: words, ``project=KEY`` and ``status=NAME``.

    importer crash project=ALPHA status="in progress"

All words must occur; of several projects or states one is enough. A query becomes values, never a piece of a larger
query, so it can only narrow what the scope allows. Anything that is not understood is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TERM = re.compile(r'(?:(?P<field>\w+)=)?(?:"(?P<quoted>[^"]+)"|(?P<bare>[^\s"=]+))(?=\s|$)')
_HOW = 'write words, project=KEY, status=NAME, and "quotes" around what holds spaces or ='
FIELDS = ("project", "status")


class UnreadableQuery(ValueError):
    """A query that means nothing; the message says why."""


@dataclass(frozen=True, slots=True)
class Query:
    """What issues must have. An empty tuple of projects or states means any."""

    words: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


def read_query(text: str) -> Query:
    """The meaning of a query."""
    words: list[str] = []
    fields: dict[str, list[str]] = {name: [] for name in FIELDS}
    rest = text.strip()
    # SQLite takes a text that ends at a NUL for a shorter one, and the empty text is in every summary.
    if not "".join(rest.split()).isprintable():
        raise UnreadableQuery("the query holds characters that cannot be printed")
    while rest:
        term = _TERM.match(rest)
        if term is None:
            raise UnreadableQuery(f"cannot read the query at {rest[:30]!r}: {_HOW}")
        _sort(term, words, fields)
        rest = rest[term.end() :].lstrip()
    projects = (key.upper() for key in fields["project"])
    states = (state.casefold() for state in fields["status"])
    return Query(tuple(words), tuple(projects), tuple(states))


def _sort(term: re.Match[str], words: list[str], fields: dict[str, list[str]]) -> None:
    value, name = term["quoted"] or term["bare"], term["field"]
    if name is None:
        words.append(value.casefold())
    elif name.lower() in fields:
        fields[name.lower()].append(value)
    else:
        raise UnreadableQuery(f"the query has an unknown field {name!r}; there are {', '.join(FIELDS)}")
