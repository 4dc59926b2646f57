"""Documents of the API as values: read by ``formats``, every fault with its JSON pointer, all of them where possible.

One fault can hide others. So what is at fault is left out and the rest is read again, until nothing more is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar, cast

from outfitter.basics import quote
from outfitter.catalog import Agent, Capability, ServerEntry
from outfitter.coordinator.commands import command_digest
from outfitter.errors import Invalid, InvalidDocument, OutfitterError, Refused
from outfitter.formats import pointer, read_agent, read_capability, read_entry
from outfitter.storage import Kind

T = TypeVar("T")
Value: TypeAlias = ServerEntry | Capability | Agent
Document: TypeAlias = Mapping[str, Any]

_MOST = 20
_MOST_READ = 40_000
"""How many values are read in all while looking for more faults: others wait meanwhile."""
_DEEPEST = 64
_Trail: TypeAlias = tuple[str | int, ...]
_LONGEST = 1000
_MOST_STEPS = 8
"""How much of a way is told: a deep one is long."""
_ID_FIELDS: Mapping[Kind, str] = {"mcp-servers": "id", "capabilities": "name", "agents": "name"}
_READERS: Mapping[Kind, Callable[[object, str, str], Value]] = {
    "mcp-servers": read_entry,
    "capabilities": read_capability,
    "agents": read_agent,
}


def as_document(document: object) -> dict[str, Any]:
    """The document itself, if it is an object."""
    if not isinstance(document, Mapping):
        raise InvalidDocument("expected an object", source="")
    return dict(cast("Mapping[str, Any]", document))


def check_plain(document: object) -> None:
    """Refuse what no reader could handle, and values that only storage writes."""
    check_told(document)
    waiting: list[object] = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, object]", value)
            if "$sealed" in fields:
                hint = "give the value itself"
                raise Invalid("'$sealed' is how values are stored, not how they are given", hint=hint)
            waiting.extend(fields.values())
        elif isinstance(value, list):
            waiting.extend(cast("list[object]", value))


def check_told(value: object) -> None:
    """Refuse what no reader could handle, and say where: endless nesting, and numbers beyond all measure.

    For what programs tell, of which nothing is ever sealed. It does not call itself: what it is there for must not
    bring it down.
    """
    waiting: list[tuple[object, _Trail]] = []
    _note(value, (), waiting)
    while waiting:
        found, trail = waiting.pop()
        if isinstance(found, Mapping):
            for key, item in cast("Mapping[str, object]", found).items():
                _note(item, (*trail, key), waiting)
        else:
            for place, item in enumerate(cast("list[object]", found)):
                _note(item, (*trail, place), waiting)


def _note(value: object, trail: _Trail, waiting: list[tuple[object, _Trail]]) -> None:
    """Refuse a value, or note that there is more to look at in it."""
    problem = ""
    if len(trail) > _DEEPEST:
        problem = f"it is nested more than {_DEEPEST} deep"
    elif isinstance(value, Mapping | list):
        waiting.append((cast("object", value), trail))
    elif isinstance(value, float) and not math.isfinite(value):
        problem = "NaN and Infinity are not JSON"
    elif isinstance(value, int) and value.bit_length() > _LONGEST:
        problem = "a number is too large"
    if problem:
        raise Invalid(problem, hint="send it as a text").under(*trail[:_MOST_STEPS])


def id_of(kind: Kind, document: Document, name: str | None = None) -> str:
    """The id that a document names; ``name`` is what it must be, or is when the document leaves it out."""
    field = _ID_FIELDS[kind]
    found = document.get(field, name)
    if found is None:
        raise InvalidDocument(f"'{field}' is missing", source=kind, path=f"/{field}").under(field)
    if not isinstance(found, str):
        raise InvalidDocument("expected a text", source=kind, path=f"/{field}").under(field)
    if name is not None and found != name:
        message = f"the {field} is {quote(found)}, and the document is for {quote(name)}"
        raise InvalidDocument(message, source=kind, path=f"/{field}", hint="it cannot be changed").under(field)
    return found


def with_id(kind: Kind, document: Document, name: str) -> dict[str, Any]:
    """The document with its id in it."""
    return {_ID_FIELDS[kind]: name, **document}


def read_stored(kind: Kind, name: str, document: Document, approved: str | None) -> Value:
    """The value of a stored document; a program to start is approved when its digest is the approved one."""
    value = _READERS[kind](document, name, f"{kind}/{name}")
    digest = command_digest(value)
    if digest is None or digest == approved:
        return value
    if isinstance(value, Agent) and value.executor is not None:
        return replace(value, executor=replace(value.executor, is_approved=False))
    return replace(value, is_approved=False) if isinstance(value, ServerEntry) else value


def read_all(document: object, read: Callable[[object], T], source: str) -> T:
    """What the reader makes of the document; one error as it is, several as Refused, fewer of a very long document."""
    problems: list[OutfitterError] = []
    rest = document
    most = max(1, min(_MOST, _MOST_READ // _size(document)))
    while len(problems) < most:
        try:
            value = read(rest)
        except OutfitterError as problem:
            if not problem.trail and problems:
                break  # what is left out is missed: a consequence, not another fault
            problem.locate(source, None, pointer(problem.trail))
            problems.append(problem)
            smaller = _without(rest, problem.trail)
            if smaller is None:
                break
            rest = smaller
        else:
            if not problems:
                return value
            break
    raise_all(problems, source)
    raise AssertionError  # pragma: no cover - there is at least one problem here


def _size(document: object) -> int:
    """How many values a document has, itself included."""
    size, waiting = 0, [document]
    while waiting:
        value = waiting.pop()
        size += 1
        if isinstance(value, Mapping):
            waiting.extend(cast("Mapping[str, object]", value).values())
        elif isinstance(value, list):
            waiting.extend(cast("list[object]", value))
    return size


def raise_all(problems: list[OutfitterError], source: str) -> None:
    """Raise the problem, or all of them together; nothing when there is none."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Refused(f"{len(problems)} problems", problems, where=source)


def _without(value: object, trail: tuple[str | int, ...]) -> object | None:
    """A copy without what the trail leads to; None when it leads nowhere."""
    if not trail:
        return None
    key, rest = trail[0], trail[1:]
    if isinstance(value, dict) and key in value:
        fields = dict(cast("dict[str | int, object]", value))
        inner = _without(fields[key], rest) if rest else None
        if inner is None:
            del fields[key]
        else:
            fields[key] = inner
        return fields
    if isinstance(value, list) and isinstance(key, int) and key < len(cast("list[object]", value)):
        items = list(cast("list[object]", value))
        inner = _without(items[key], rest) if rest else None
        items[key : key + 1] = [] if inner is None else [inner]
        return items
    return None
