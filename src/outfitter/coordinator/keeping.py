"""Sealed values that outlive a change: they stay sealed, and they go to nobody else than before.

A value is kept when its mask comes back, when a rollback brings it back, and when something that it depends on is
changed. Who makes the change need not know the value; so the change may neither show it nor send it to another place.
Pure. Neighbours: ``sensitive`` says what is sealed, ``entries`` and ``blueprints`` ask here before they go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from outfitter.coordinator.drafts import Read
from outfitter.coordinator.reading import raise_all
from outfitter.coordinator.sensitive import hidden_pointers, receivers, sensitive_pointers, trail_of, value_at
from outfitter.coordinator.values import Author
from outfitter.coordinator.view import View
from outfitter.errors import Forbidden, InvalidDocument, OutfitterError
from outfitter.storage import Entry, Put, User

_NEW_VALUE = "give the value itself, or a reference to it"


def check_kept(before: View, after: View, reads: Sequence[Read], who: Author | None = None) -> None:
    """Refuse what would show a sealed value or send it elsewhere; without ``who`` nothing is stored, and sent."""
    given = {read.name: read for read in reads}
    problems: list[OutfitterError] = []
    for name in after.affected_by(given):
        entry = after.entries.get(name)
        if entry is None:
            continue
        read = given.get(name)
        kept = hidden_pointers(before.entries[name], before.catalog) if read is None else read.kept
        if not kept:
            continue
        problems += _shown(entry, kept, after)
        if read is not None and read.is_restored and name.kind == "mcp-servers":
            continue  # it brings its old address back too
        moved = [place for place in sorted(kept) if _is_moved(before, after, name, place)]
        if read is not None and not read.is_restored:
            problems += (_elsewhere(name, place) for place in moved)
        elif moved and who is not None and not who.is_admin:
            hint = "ask an admin, or take these values away first"
            message = "only an admin sends sealed values to another place than before"
            raise Forbidden(message, where=f"{name.kind}/{name.id}", hint=hint)
    raise_all(problems, "registry")


def resealed(after: View, reads: Sequence[Read]) -> tuple[Put, ...]:
    """What must be stored again because a value in it has become sensitive by these changes."""
    given = {read.name for read in reads}
    puts: list[Put] = []
    for name in after.affected_by(given):
        entry = after.entries.get(name)
        if entry is None or name in given:
            continue
        sealed = hidden_pointers(entry, after.catalog)
        if sealed != entry.sealed:
            puts.append(Put(name.kind, name.id, entry.document, sealed, entry.version))
    return tuple(puts)


def newly_judged(after: View, reads: Sequence[Read]) -> tuple[User, ...]:
    """Whose earlier documents are to be looked through: what is sensitive in them is said anew by these changes."""
    return after.affected_by([read.name for read in reads if _judges_anew(read)])


def _judges_anew(read: Read) -> bool:
    old = None if read.stored is None else read.stored.document.get("header_schema")
    return read.stored is not None and old != read.document.get("header_schema")


def _shown(entry: Entry, kept: frozenset[str], after: View) -> Iterator[OutfitterError]:
    for place in sorted(kept - sensitive_pointers(entry.kind, entry.document, after.catalog)):
        hint = f"{_NEW_VALUE}; or leave the header sensitive"
        source = f"{entry.kind}/{entry.id}"
        error = InvalidDocument("a sealed value would become readable here", source=source, path=place, hint=hint)
        yield error.under(*trail_of(place))


def _elsewhere(name: User, place: str) -> OutfitterError:
    source, message = f"{name.kind}/{name.id}", "a sealed value would be sent to another place than before"
    return InvalidDocument(message, source=source, path=place, hint=_NEW_VALUE).under(*trail_of(place))


def _is_moved(before: View, after: View, name: User, place: str) -> bool:
    """Whether the value comes to others than those who have it now."""
    old, new, trail = before.entries.get(name), after.entries[name], trail_of(place)
    if old is None or value_at(old.document, trail) != value_at(new.document, trail):
        return True
    return receivers(name.kind, old.document, trail, before.catalog) != receivers(
        name.kind, new.document, trail, after.catalog
    )
