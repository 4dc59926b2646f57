"""Which literals of a document nobody may see, and the document without them.

Sensitive are: values of headers that the server's schema says so of, at every level that refers to it; values of
undeclared headers whose name says so; the variables of a program or an executor; the secret of a sign-in. References
(``${VAR}`` and ``{"$secret": …}``) stay readable. Works on documents as they are written, so that old ones can be shown
too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from outfitter.basics import looks_sensitive
from outfitter.catalog import Capability, Catalog, HeaderSchema, ServerRef
from outfitter.coordinator.values import MASK
from outfitter.errors import InvalidDocument, OutfitterError
from outfitter.formats import pointer
from outfitter.resolution import Variable, parse_template
from outfitter.storage import Entry, Kind

Trail: TypeAlias = tuple[str, ...]
_SCHEME = re.compile(r"\s*|(?:Bearer|Basic|Token|ApiKey) ", re.IGNORECASE)
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Place:
    """A place that may hold a sensitive value: where, what, and the header it is of (None: a variable or secret)."""

    trail: Trail
    value: object
    header: str | None = None
    alias: str | None = None


def sensitive_pointers(kind: Kind, document: Mapping[str, Any], catalog: Catalog) -> frozenset[str]:
    """Where the document holds literals that nobody may see, as JSON pointers."""
    own = _declared(document.get("header_schema"))
    return frozenset(
        pointer(place.trail)
        for place in _places(document)
        if not is_reference(place.value)
        and (
            place.header is None
            or _says_so(
                place.header, own if kind == "mcp-servers" else _schema_of(document, place.alias or "", catalog)
            )
        )
    )


def hidden_pointers(entry: Entry, catalog: Catalog) -> frozenset[str]:
    """Where a stored entry holds literals that nobody may see: sensitive now, or when it was stored."""
    return sensitive_pointers(entry.kind, entry.document, catalog) | entry.sealed


def masks_in(document: Mapping[str, Any]) -> frozenset[str]:
    """Where the document says to keep what is stored, as JSON pointers."""
    return frozenset(pointer(place.trail) for place in _places(document) if place.value == MASK)


def trail_of(place: str) -> Trail:
    """The names that a JSON pointer leads along."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in place.split("/")[1:])


def receivers(kind: Kind, document: Mapping[str, Any], trail: Trail, catalog: Catalog) -> frozenset[tuple[str, ...]]:
    """To whom the value in this place is sent: servers by id and address, as they are written."""
    if kind == "mcp-servers":
        return frozenset({(str(document.get("url")), str(_fields(document, "auth").get("token_url")))})
    if trail[:1] == ("executor",):
        executor = _fields(document, "executor")
        return frozenset({tuple(str(executor.get(name)) for name in ("type", "command", "args"))})
    alias = trail[1] if len(trail) > 1 else ""
    found = {("", str(_fields(_fields(document, "mcpServers"), alias).get("url")))}
    for ref in _refs_of(document, alias, catalog):
        entry = catalog.servers.get(ref)
        found.add((ref, "" if entry is None else str(entry.server.url)))
    return frozenset(found)


def is_reference(value: object) -> bool:
    """Whether a value only says where a secret is kept; also null, which takes a header away."""
    if value is None:
        return True
    if isinstance(value, Mapping):
        return set(cast("Mapping[str, object]", value)) == {"$secret"}
    if not isinstance(value, str):
        return False
    try:
        parts = parse_template(value)
    except OutfitterError:
        return False
    texts = [part for part in parts if isinstance(part, str)]
    defaults = [part.default for part in parts if isinstance(part, Variable) and part.default]
    return len(texts) < len(parts) and not defaults and all(_SCHEME.fullmatch(text) for text in texts)


def references_in(document: Mapping[str, Any]) -> Iterator[tuple[Trail, str]]:
    """Where the document says that a secret is kept elsewhere, and where that is: ``provider:name``."""
    for place in _places(document):
        value = place.value
        text = cast("Mapping[str, object]", value).get("$secret") if isinstance(value, Mapping) else None
        if isinstance(text, str):
            yield place.trail, text


def secrets_in_query(url: str) -> tuple[str, ...]:
    """The names of what an address asks with that look like secrets and are not references."""
    query = url.partition("?")[2].partition("#")[0]
    pairs = (part.partition("=") for part in query.split("&"))
    return tuple(
        name for name, _, value in pairs if value and looks_sensitive(unquote(name)) and not is_reference(value)
    )


def masked(document: Mapping[str, Any], pointers: AbstractSet[str]) -> dict[str, Any]:
    """The document with a mask in each of these places."""
    return cast("dict[str, Any]", _masked(document, (), pointers)) if pointers else dict(document)


def mask_sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, as it is stored, with a mask wherever a value is sealed."""
    return cast("dict[str, Any]", _masked(document, (), frozenset()))


def unmasked(document: Mapping[str, Any], stored: Mapping[str, Any] | None, source: str) -> dict[str, Any]:
    """The document with each mask replaced by what is stored in its place; InvalidDocument when nothing is."""

    def keep(place: _Place) -> object:
        if place.value != MASK:
            return place.value
        found = value_at(stored, place.trail)
        if found is _ABSENT:
            hint = "give the value, or a reference to it"
            path = pointer(place.trail)
            error = InvalidDocument("there is no stored value to keep here", source=source, path=path, hint=hint)
            raise error.under(*place.trail)
        return found

    return _replaced(document, keep)


def _masked(value: object, trail: Trail, pointers: AbstractSet[str]) -> object:
    if pointer(trail) in pointers:
        return MASK
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        if set(fields) == {"$sealed"}:
            return MASK
        return {key: _masked(item, (*trail, key), pointers) for key, item in fields.items()}
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [_masked(item, (*trail, str(index)), pointers) for index, item in enumerate(items)]
    return value


def _replaced(document: Mapping[str, Any], change: Callable[[_Place], object]) -> dict[str, Any]:
    copy = dict(document)
    for place in _places(document):
        new = change(place)
        if new is place.value:
            continue
        inner = copy
        for key in place.trail[:-1]:
            inner[key] = dict(inner[key])
            inner = inner[key]
        inner[place.trail[-1]] = new
    return copy


def _places(document: Mapping[str, Any]) -> Iterator[_Place]:
    yield from _headers(document, "default_headers", ())
    yield from _variables(document, ())
    yield from _variables(_fields(document, "executor"), ("executor",))
    auth = _fields(document, "auth")
    if "client_secret" in auth:
        yield _Place(("auth", "client_secret"), auth["client_secret"])
    for alias, use in _fields(document, "mcpServers").items():
        if isinstance(use, Mapping):
            inner, trail = cast("Mapping[str, Any]", use), ("mcpServers", alias)
            yield from _headers(inner, "headers", trail)
            yield from _variables(inner, trail)


def _headers(document: Mapping[str, Any], field: str, trail: Trail) -> Iterator[_Place]:
    for name, value in _fields(document, field).items():
        yield _Place((*trail, field, name), value, name, trail[-1] if trail else None)


def _variables(document: Mapping[str, Any], trail: Trail) -> Iterator[_Place]:
    for name, value in _fields(document, "env").items():
        yield _Place((*trail, "env", name), value)


def _fields(document: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = document.get(field)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _declared(header_schema: object) -> Mapping[str, bool]:
    """Which headers a written schema declares, in lower case, and whether each is sensitive."""
    if not isinstance(header_schema, Mapping):
        return {}
    schemas = cast("Mapping[str, object]", header_schema)
    return {
        name.lower(): bool(cast("Mapping[str, object]", schema).get("sensitive", looks_sensitive(name)))
        for name, schema in schemas.items()
        if isinstance(schema, Mapping)
    }


def _says_so(name: str, declared: Mapping[str, bool]) -> bool:
    return declared.get(name.lower(), looks_sensitive(name))


def _schema_of(document: Mapping[str, Any], alias: str, catalog: Catalog) -> Mapping[str, bool]:
    """What is declared about the headers of an alias; where two servers differ, the stricter one holds."""
    found: dict[str, bool] = {}
    for ref in _refs_of(document, alias, catalog):
        entry = catalog.servers.get(ref)
        for name, schema in () if entry is None else entry.header_schema.items():
            found[name.lower()] = schema.sensitive or found.get(name.lower(), False)
    return found


def _refs_of(document: Mapping[str, Any], alias: str, catalog: Catalog) -> frozenset[str]:
    """The servers that an alias means: by its ref, or by that of a capability with the same alias."""
    refs: set[object] = {_fields(_fields(document, "mcpServers"), alias).get("ref")}
    names = document.get("capabilities")
    for name in cast("list[object]", names) if isinstance(names, list) else ():
        capability = catalog.capabilities.get(name) if isinstance(name, str) else None
        refs.update(_refs(capability, alias))
    return frozenset(ref for ref in refs if isinstance(ref, str))


def _refs(capability: Capability | None, alias: str) -> set[object]:
    use = None if capability is None else capability.servers.get(alias)
    return {use.ref} if isinstance(use, ServerRef) else set()


def is_sensitive(name: str, schemas: Mapping[str, HeaderSchema]) -> bool:
    """Whether a resolved header's value may not be seen."""
    return _says_so(name, {declared.lower(): schema.sensitive for declared, schema in schemas.items()})


def value_at(document: object, trail: Trail) -> object:
    """What stands in this place of a document; something that equals no value when nothing does."""
    value = document
    for key in trail:
        if not isinstance(value, Mapping) or key not in value:
            return _ABSENT
        value = cast("Mapping[str, object]", value)[key]
    return value
