"""Reading plain values into checked ones, one field at a time.

The fast path only looks; a fault is raised as ``InvalidDocument`` without a place, and rises through readers that add
the keys they came through (``error.under``). ``document`` turns that trail into file, line and pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar, cast

from outfitter.basics import Secret, SecretRef, quote, suggest
from outfitter.catalog import ALL_TOOLS, HeaderSetting, HeaderSettings, JsonValue, ToolFilter
from outfitter.errors import InvalidDocument, OutfitterError

T = TypeVar("T")
Fields = Mapping[str, object]

_FILTER_FIELDS = frozenset({"include", "exclude"})
_FILTER_KEYS = frozenset({"tools", "enabled_tools", "disabled_tools"})
_NESTED = frozenset({dict, list})
_SECRET_FIELDS = frozenset({"$secret"})
_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
}


def wrong(expected: str, value: object) -> InvalidDocument:
    """The error for a value of the wrong kind; it says the kind that was found and never the value."""
    found = "null" if value is None else _KINDS.get(type(value), type(value).__name__)
    return InvalidDocument(f"expected {expected}, found {found}", source="")


def read_object(value: object, known: frozenset[str] | None = None) -> Fields:
    """The object itself; every key must be known when a set of known keys is given."""
    if not isinstance(value, dict):
        raise wrong("an object", value)
    fields = cast("dict[str, object]", value)
    if known is not None and not fields.keys() <= known:
        stray = next(key for key in fields if key not in known)
        raise InvalidDocument(f"unknown field {quote(stray)}", source="", hint=suggest(stray, known)).under(stray)
    return fields


def read_each(fields: Fields, key: str, read: Callable[[str, object], T]) -> dict[str, T]:
    """Every member of the object at the key, read with its own key; empty when there is none."""
    value = fields.get(key)
    if value is None:
        return {}
    try:
        found = read_object(value)
    except OutfitterError as error:
        raise error.under(key) from None
    members: dict[str, T] = {}
    for name, item in found.items():
        try:
            members[name] = read(name, item)
        except OutfitterError as error:
            raise error.under(key, name) from None
    return members


def read_text(fields: Fields, key: str, default: str = "") -> str:
    """The text at the key, or the default when it is absent."""
    value = fields.get(key, default)
    if not isinstance(value, str):
        raise wrong("a text", value).under(key)
    return value


def read_optional_text(fields: Fields, key: str) -> str | None:
    """The text at the key, or None when it is absent."""
    return read_text(fields, key) if fields.get(key) is not None else None


def read_texts(fields: Fields, key: str) -> tuple[str, ...] | None:
    """The list of texts at the key, or None when it is absent."""
    value = fields.get(key)
    if value is None:
        return None
    try:
        return read_text_list(value)
    except OutfitterError as error:
        raise error.under(key) from None


def read_text_list(value: object) -> tuple[str, ...]:
    """The texts of a list."""
    if not isinstance(value, list):
        raise wrong("a list of texts", value)
    items = cast("list[object]", value)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise wrong("a text", item).under(index)
    return tuple(cast("list[str]", items))


def read_flag(fields: Fields, key: str, *, default: bool = False) -> bool:
    """The true or false at the key, or the default when it is absent."""
    value = fields.get(key, default)
    if not isinstance(value, bool):
        raise wrong("true or false", value).under(key)
    return value


def read_number(fields: Fields, key: str) -> float | None:
    """The number at the key, or None when it is absent."""
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("a number", value).under(key)
    return float(value)


def read_seconds(fields: Fields, key: str, *, milliseconds: bool = False) -> float | None:
    """The duration at the key in seconds, converted when the file counts milliseconds."""
    value = read_number(fields, key)
    return value / 1000 if milliseconds and value is not None else value


def read_filter(fields: Fields, key: str = "tools") -> ToolFilter:
    """Any dialect of a filter: a list of names, an object of include and exclude, or enabled and disabled lists."""
    if key not in fields and fields.keys().isdisjoint(_FILTER_KEYS):
        return ALL_TOOLS
    value = fields.get(key)
    rest = ("enabled_tools", "disabled_tools") if isinstance(value, dict) else ("enabled_tools",)
    for other in rest:
        if value is not None and fields.get(other) is not None:
            raise InvalidDocument(f"give '{key}' or '{other}', not both", source="").under(other)
    if isinstance(value, dict):
        try:
            inner = read_object(cast("object", value), _FILTER_FIELDS)
            return ToolFilter(read_texts(inner, "include"), read_texts(inner, "exclude") or ())
        except OutfitterError as error:
            raise error.under(key) from None
    include = read_texts(fields, key)
    if include is None:
        include = read_texts(fields, "enabled_tools")
    try:
        return ToolFilter(include, read_texts(fields, "disabled_tools") or ())
    except OutfitterError as error:
        raise error.under(key) from None


def is_secret_ref(value: object) -> bool:
    """Whether the value is written as ``{"$secret": "name"}``."""
    return isinstance(value, dict) and "$secret" in value


def read_secret_ref(value: object) -> SecretRef:
    """The reference written as ``{"$secret": "name"}``."""
    return SecretRef.parse(read_text(read_object(value, _SECRET_FIELDS), "$secret"))


def read_settings(fields: Fields, key: str) -> HeaderSettings:
    """The headers that an authored level gives: values, nulls and secret references."""
    value = fields.get(key)
    if not isinstance(value, dict) or any(type(v) in _NESTED for v in cast("dict[str, object]", value).values()):
        return read_each(fields, key, _read_setting)
    return cast("dict[str, JsonValue]", value)


def _read_setting(_name: str, value: object) -> HeaderSetting:
    if is_secret_ref(value):
        return read_secret_ref(value)
    _refuse_nested_ref(value)
    return cast("JsonValue", value)


def _refuse_nested_ref(value: object) -> None:
    if isinstance(value, dict) and "$secret" in value:
        hint = "give the secret a header of its own, or write ${VARIABLE} inside the JSON"
        raise InvalidDocument("a secret reference must be the whole value of a header", source="", hint=hint)
    inner = cast("dict[str, object]", value).values() if isinstance(value, dict) else value
    for item in cast("list[object]", inner) if isinstance(value, dict | list) else ():
        _refuse_nested_ref(item)


def read_env(fields: Fields, key: str = "env") -> dict[str, str | SecretRef | Secret]:
    """The environment that an authored level gives: texts and secret references."""
    return read_each(fields, key, _read_env_value)


def _read_env_value(_name: str, value: object) -> str | SecretRef:
    if is_secret_ref(value):
        return read_secret_ref(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise wrong("a text", value)
    return value


def read_items(fields: Fields, key: str, read: Callable[[object], T]) -> tuple[T, ...]:
    """Every item of the list at the key; empty when there is none."""
    value = fields.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong("a list", value).under(key)
    items: list[T] = []
    for index, item in enumerate(cast("list[object]", value)):
        try:
            items.append(read(item))
        except OutfitterError as error:
            raise error.under(key, index) from None
    return tuple(items)
