"""Whose value wins: the header chain of one server.

registry → capabilities → agent → run → parent. Later wins, ``null`` removes, names compare without case; locks,
narrowing and merging hold later levels back. Every problem is collected, none is raised here; no message quotes a
value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from outfitter.basics import Level, Origin, Overruled, Secret, Sourced, looks_sensitive, quote
from outfitter.catalog import MAX_TOTAL_BYTES, HeaderSchema, HeaderSetting, name_fault, text_fault
from outfitter.errors import (
    InternalHeader,
    InvalidHeader,
    LockedHeader,
    MissingHeader,
    NarrowedHeader,
    OutfitterError,
)
from outfitter.resolution.values import (
    HeaderValue,
    Merged,
    Plain,
    bind_value,
    keep_items,
    list_items,
    read_setting,
    seal,
    text_of,
)

INTERNAL_DEFAULTS = {"x-agent-session-id": "${AGENT_SESSION_ID}", "x-agent-run-id": "${runtime.run_id}"}
_MAY_SET_INTERNAL = frozenset({Level.OUTFITTER, Level.REGISTRY})
OUTFITTER = Origin(Level.OUTFITTER, "outfitter")


@dataclass(frozen=True, slots=True)
class LevelHeaders:
    """What one level says: settings as they were written, or values a parent has already resolved."""

    origin: Origin
    settings: Mapping[str, HeaderSetting | Sourced[HeaderValue | None]]


@dataclass(frozen=True, slots=True)
class ResolvedHeaders:
    """The outcome of a chain: what is sent, what was taken away, what a run still has to give, what is wrong."""

    headers: Mapping[str, Sourced[HeaderValue]]
    removed: Mapping[str, Sourced[HeaderValue | None]]
    missing: tuple[str, ...]
    undeclared: tuple[tuple[str, Origin], ...]
    problems: tuple[OutfitterError, ...]


class _Cell:
    """One header while the levels speak in turn."""

    __slots__ = ("name", "note", "origin", "overruled", "schema", "value")

    def __init__(self, name: str, schema: HeaderSchema | None) -> None:
        self.name = name
        self.schema = schema
        self.value: HeaderValue | None = None
        self.origin: Origin = OUTFITTER
        self.overruled: tuple[Overruled[HeaderValue], ...] = ()
        self.note = ""

    def put(self, value: HeaderValue | None, origin: Origin, note: str = "") -> None:
        if self.value is not None:
            self.overruled = (*self.overruled, Overruled(self.value, self.origin))
        self.value, self.origin, self.note = value, origin, note


def resolve_headers(schemas: Mapping[str, HeaderSchema], levels: Iterable[LevelHeaders]) -> ResolvedHeaders:
    """The headers of one server after every level has spoken."""
    declared = {name.lower(): (name, schema) for name, schema in schemas.items()}
    cells: dict[str, _Cell] = {}
    problems: list[OutfitterError] = []
    for name, (shown, schema) in declared.items():
        if schema.internal and name in INTERNAL_DEFAULTS:
            cells[name] = cell = _Cell(shown, schema)
            cell.put(Plain(INTERNAL_DEFAULTS[name], authored=True), OUTFITTER)
    for level in levels:
        for name, setting in level.settings.items():
            key = name.lower()
            cell = cells.get(key)
            if cell is None:
                shown, schema = declared.get(key, (name, None))
                cells[key] = cell = _Cell(shown, schema)
            elif cell.schema is None:
                cell.name = name
            problem = _apply(cell, setting, level.origin)
            if problem is not None:
                problems.append(problem)
    return _collect(cells, declared, problems)


def _apply(cell: _Cell, setting: HeaderSetting | Sourced[HeaderValue | None], origin: Origin) -> OutfitterError | None:
    """Let one level speak about one header; the problem when it may not say that."""
    schema = cell.schema
    if isinstance(setting, Sourced):
        if schema is not None and schema.internal:
            return None
        value, origin = setting.value, Origin(origin.level, origin.name, origin.where, setting.origin)
    elif setting is None:
        value = None
    else:
        read = read_setting(setting, schema, authored=origin.is_authored)
        if isinstance(read, str):
            return InvalidHeader(f"header '{cell.name}' from {origin}: {read}")
        value = seal(read) if _must_seal(cell.name, schema) else read
    if schema is None:
        cell.put(value, origin)
        return None
    return _apply_declared(cell, schema, value, origin)


def _must_seal(name: str, schema: HeaderSchema | None) -> bool:
    """Whether a literal becomes a Secret at once; what must still be compared or merged is masked when shown."""
    if schema is None:
        return looks_sensitive(name)
    return schema.sensitive and not (schema.narrows or schema.merges)


def _apply_declared(
    cell: _Cell, schema: HeaderSchema, value: HeaderValue | None, origin: Origin
) -> OutfitterError | None:
    if schema.internal and origin.level not in _MAY_SET_INTERNAL:
        return InternalHeader(f"header '{cell.name}' is filled by Outfitter; {origin} cannot set it")
    if value is not None and origin.level is Level.PARENT and _names_this_run(cell.value):
        cell.put(value, origin)
        return None
    if schema.locked and (value is None or cell.value is not None):
        return _apply_locked(cell, value, origin)
    if schema.narrows and cell.value is not None:
        return _apply_narrow(cell, value, origin)
    if schema.merges and value is not None and cell.value is not None and origin.level is not Level.PARENT:
        merged = _merge(cell.value, cell.origin, value, origin)
        if merged is not None:
            cell.put(merged, origin, "merged with what earlier levels gave")
            return None
    cell.put(value, origin)
    return None


def _names_this_run(value: HeaderValue | None) -> bool:
    """Whether the ids of a run stand in it, so that a parent's can only differ."""
    return value is not None and bind_value(value, None, None) != value


def _apply_locked(cell: _Cell, value: HeaderValue | None, origin: Origin) -> OutfitterError | None:
    if value is not None and value == cell.value:
        return None
    if cell.value is None:
        return LockedHeader(f"header '{cell.name}' is locked; {origin} cannot remove it")
    doing = "remove" if value is None else "change"
    return LockedHeader(
        f"header '{cell.name}' is locked by {cell.origin}; {origin} cannot {doing} it",
        hint="leave it out at this level",
    )


def _apply_narrow(cell: _Cell, value: HeaderValue | None, origin: Origin) -> OutfitterError | None:
    before = cell.value
    if value == before:
        return None
    if value is None:
        return NarrowedHeader(
            f"header '{cell.name}' may only be narrowed; {origin} cannot remove what {cell.origin} set"
        )
    old = list_items(before) if isinstance(before, Plain) else None
    new = list_items(value) if isinstance(value, Plain) else None
    if old is None or new is None or not isinstance(before, Plain):
        message = f"header '{cell.name}' may only be narrowed, and {origin} cannot be compared with {cell.origin}"
        return NarrowedHeader(message, hint="write plain lists; a placeholder is not known before it is filled")
    kept = [item for item in old if item in new]
    if not kept:
        return NarrowedHeader(
            f"header '{cell.name}': nothing that {origin} asks for is in what {cell.origin} allows",
            hint="ask for a subset of the earlier list",
        )
    dropped = len(set(new) - set(kept))
    note = f"narrowed to what {cell.origin} allows; {dropped} asked for and not given" if dropped else "narrowed"
    cell.put(keep_items(before, kept), origin, note)
    return None


def _merge(old: HeaderValue, old_origin: Origin, new: HeaderValue, new_origin: Origin) -> Merged | None:
    """The shallow merge of two objects; None when one of them is not an object."""
    before, after = _members(old, old_origin), _members(new, new_origin)
    if before is None or after is None:
        return None
    merged = dict(before)
    for key, member in after.items():
        earlier = merged.get(key)
        overruled = () if earlier is None else (*earlier.overruled, Overruled(earlier.value, earlier.origin))
        merged[key] = Sourced(member.value, member.origin, overruled)
    return Merged(merged)


def _members(value: HeaderValue, origin: Origin) -> Mapping[str, Sourced[Plain]] | None:
    if isinstance(value, Merged):
        return value.members
    if not isinstance(value.value, dict):
        return None
    return {key: Sourced(Plain(item, value.authored), origin) for key, item in value.value.items()}


def is_sensitive(name: str, schema: HeaderSchema | None) -> bool:
    """Whether the header's value must not be shown: declared so, or undeclared with a name that says so."""
    return looks_sensitive(name) if schema is None else schema.sensitive


def _collect(
    cells: Mapping[str, _Cell], declared: Mapping[str, tuple[str, HeaderSchema]], problems: list[OutfitterError]
) -> ResolvedHeaders:
    headers: dict[str, Sourced[HeaderValue]] = {}
    removed: dict[str, Sourced[HeaderValue | None]] = {}
    size = 0
    for cell in cells.values():
        if cell.value is None:
            removed[cell.name] = Sourced(None, cell.origin, cell.overruled)
            continue
        text = text_of(cell.value)
        size += len(cell.name) + len(text)
        fault = _fault_of(cell.name, cell.value, text)
        if fault is not None:
            problems.append(InvalidHeader(f"header {quote(cell.name)} from {cell.origin}: {fault}"))
        headers[cell.name] = Sourced(cell.value, cell.origin, cell.overruled, cell.note)
    if size > MAX_TOTAL_BYTES:
        problems.append(InvalidHeader(f"the headers are {size} bytes together, more than {MAX_TOTAL_BYTES}"))
    missing = tuple(
        shown
        for key, (shown, schema) in declared.items()
        if schema.required and (key not in cells or cells[key].value is None)
    )
    undeclared = tuple((c.name, c.origin) for c in cells.values() if c.schema is None and declared)
    return ResolvedHeaders(headers, removed, missing, undeclared, tuple(problems))


def _fault_of(name: str, value: HeaderValue, text: str) -> str | None:
    """Judge what will be sent once more: a mapping may have changed since its level was checked."""
    inner = value.value if isinstance(value, Plain) else None
    fault = inner.fault(text_fault) if isinstance(inner, Secret) else text_fault(text)
    return fault or name_fault(name)


def missing_problem(alias: str, name: str, schema: HeaderSchema | None) -> MissingHeader:
    """The error for a required header that nobody gave."""
    about = f" ({schema.description})" if schema and schema.description else ""
    hint = f"give it in the run's mcp_headers['{alias}'], or at the agent, a capability or the registry"
    return MissingHeader(f"server '{alias}': required header '{name}'{about} has no value", hint=hint)
