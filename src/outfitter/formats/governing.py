"""Budgets, overrides and the search of tools as they are written in an agent's file."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from outfitter.basics import quote, suggest
from outfitter.catalog import (
    LISTED,
    NO_BUDGETS,
    Agent,
    Budget,
    Budgets,
    JsonValue,
    Measure,
    Period,
    SearchMode,
    ToolOverride,
    ToolSearch,
)
from outfitter.errors import InvalidDocument
from outfitter.formats.shape import (
    Fields,
    read_each,
    read_number,
    read_object,
    read_optional_text,
    read_texts,
)

_LIMITS = {f"{measure.value}_per_{period.value}": (measure, period) for measure in Measure for period in Period}
_RATES = ("concurrent_calls", "calls_per_second", "repeats")
_SCOPES = ("per_server", "per_tool")
_OVERRIDE_FIELDS = frozenset({"title", "description", "defaults", "hidden"})


def read_budgets(fields: Fields) -> Budgets:
    """The budgets of an agent."""
    if "budgets" not in fields:
        return NO_BUDGETS
    try:
        given = read_object(fields["budgets"])
        limits = _read_limits(given, (*_LIMITS, *_RATES, *_SCOPES))
        for alias, scoped in read_each(given, "per_server", _read_scoped).items():
            limits += (replace(limit, server=alias) for limit in scoped)
        for place, scoped in read_each(given, "per_tool", _read_scoped_tool).items():
            alias, _, tool = place.partition("/")
            limits += (replace(limit, server=alias, tool=tool) for limit in scoped)
        rate = _read_rate(given, "calls_per_second")
        return Budgets(_read_whole(given, "concurrent_calls"), rate, _read_whole(given, "repeats", 1), tuple(limits))
    except InvalidDocument as fault:
        raise fault.under("budgets") from None


def _read_limits(given: Fields, known: Iterable[str]) -> list[Budget]:
    stray = next((name for name in given if name not in known), None)
    if stray is not None:
        raise InvalidDocument(f"unknown budget {quote(stray)}", source="", hint=suggest(stray, known)).under(stray)
    amounts = {name: _read_whole(given, name) for name in _LIMITS if name in given}
    return [Budget(_LIMITS[name][0], amount or 0, _LIMITS[name][1]) for name, amount in amounts.items()]


def _read_scoped(_place: str, value: object) -> list[Budget]:
    return _read_limits(read_object(value), tuple(_LIMITS))


def _read_scoped_tool(place: str, value: object) -> list[Budget]:
    if not all(place.partition("/")):
        hint = "write 'server/tool', the server by its alias"
        raise InvalidDocument(f"{quote(place)} names no tool", source="", hint=hint)
    return _read_scoped(place, value)


def _read_rate(given: Fields, name: str) -> float | None:
    value = read_number(given, name)
    if value is not None and not 0 <= value < math.inf:
        raise InvalidDocument("must be a number that is not negative", source="").under(name)
    return value


def _read_whole(given: Fields, name: str, least: int = 0) -> int | None:
    value = _read_rate(given, name)
    if value is not None and (value != int(value) or value < least):
        raise InvalidDocument(f"must be a whole number of at least {least}", source="").under(name)
    return None if value is None else int(value)


def write_budgets(budgets: Budgets) -> dict[str, JsonValue]:
    """The budgets as they are written: only what is limited."""
    written: dict[str, JsonValue] = {
        name: value for name in _RATES if (value := cast("JsonValue", getattr(budgets, name))) is not None
    }
    for limit in budgets.limits:
        scope = "per_tool" if limit.tool else "per_server"
        place = written
        if limit.server:
            scopes = cast("dict[str, dict[str, JsonValue]]", written.setdefault(scope, {}))
            place = scopes.setdefault(limit.scope, {})
        place[limit.name] = limit.amount
    return written


def write_governing(agent: Agent) -> dict[str, JsonValue]:
    """What limits an agent and how it finds its tools: only what differs from a default."""
    written: dict[str, JsonValue] = {}
    if agent.budgets != NO_BUDGETS:
        written["budgets"] = write_budgets(agent.budgets)
    if agent.tool_search != LISTED:
        written["tool_search"] = _write_search(agent.tool_search)
    if agent.result_limit is not None:
        written["result_limit"] = agent.result_limit
    return written


def read_override(_tool: str, value: object) -> ToolOverride:
    """What a file says otherwise about one tool."""
    fields = read_object(value, _OVERRIDE_FIELDS)
    return ToolOverride(
        title=read_optional_text(fields, "title"),
        description=read_optional_text(fields, "description"),
        defaults=read_each(fields, "defaults", lambda _name, given: cast("JsonValue", given)),
        hidden=read_texts(fields, "hidden") or (),
    )


def write_override(override: ToolOverride) -> dict[str, JsonValue]:
    """An override as it is written: only what it changes."""
    written: dict[str, JsonValue] = {
        key: value for key in ("title", "description") if (value := getattr(override, key)) is not None
    }
    if override.defaults:
        written["defaults"] = dict(override.defaults)
    if override.hidden:
        written["hidden"] = list(override.hidden)
    return written


def read_search(fields: Fields) -> ToolSearch:
    """How an agent finds its tools: a mode, or a mode with its threshold."""
    given = fields.get("tool_search")
    if given is None:
        return LISTED
    try:
        found = {"mode": given} if isinstance(given, str) else read_object(given, frozenset({"mode", "threshold"}))
        mode = found.get("mode", SearchMode.AUTO.value)
        if mode not in tuple(SearchMode):
            raise InvalidDocument(
                f"unknown mode {quote(str(mode))}", source="", hint=f"known: {', '.join(SearchMode)}"
            ).under(*(() if isinstance(given, str) else ("mode",)))
        threshold = _read_whole(found, "threshold", least=1)
    except InvalidDocument as fault:
        raise fault.under("tool_search") from None
    return ToolSearch(SearchMode(mode), LISTED.threshold if threshold is None else threshold)


def _write_search(search: ToolSearch) -> JsonValue:
    """The search as it is written: the mode alone where the threshold is the usual one."""
    if search.threshold == LISTED.threshold:
        return search.mode.value
    return {"mode": search.mode.value, "threshold": search.threshold}


def read_result_limit(fields: Fields) -> int | None:
    """From how many bytes on a result is kept aside; None when never."""
    return _read_whole(fields, "result_limit", least=1024)
