"""What a header is worth before secrets are filled in: one level's value, or an object merged from several."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.basics import MASK, Secret, SecretRef, Sourced
from outfitter.catalog import HeaderSchema, HeaderSetting, HeaderType, JsonValue, json_text, type_fault
from outfitter.resolution.placeholders import bind_to_parent, holds_placeholder, mask_literals


@dataclass(frozen=True, slots=True)
class Plain:
    """A value as one level gave it. Only an authored one may hold placeholders; any other is sent as it is."""

    value: JsonValue | SecretRef | Secret = field(repr=False)
    authored: bool


@dataclass(frozen=True, slots=True)
class Merged:
    """A JSON object whose members come from several levels."""

    members: Mapping[str, Sourced[Plain]]


HeaderValue: TypeAlias = Plain | Merged


def read_setting(setting: HeaderSetting, schema: HeaderSchema | None, *, authored: bool) -> Plain | str:
    """The setting as a value of its declared type, or the fault in words (which never quote the value).

    A text without placeholders is the same whoever wrote it, so that repeating a locked value changes nothing.
    """
    authored = authored and _may_hold_placeholder(setting)
    if schema is None or isinstance(setting, SecretRef | Secret):
        return Plain(setting, authored)
    if isinstance(setting, str) and authored and holds_placeholder(setting) and schema.type is not HeaderType.JSON:
        return Plain(setting, authored)
    if schema.type is HeaderType.JSON and isinstance(setting, str):
        return _read_json_text(setting, authored=authored)
    fault = type_fault(setting, schema.type)
    return Plain(setting, authored) if fault is None else fault


def _may_hold_placeholder(setting: HeaderSetting) -> bool:
    if isinstance(setting, str):
        return holds_placeholder(setting)
    return isinstance(setting, dict | list) and holds_placeholder(json_text(setting))


def _read_json_text(text: str, *, authored: bool) -> Plain | str:
    """JSON that was written as text: its structure when it has one, so that it can be merged and narrowed."""
    try:
        parsed: JsonValue = json.loads(text)
    except ValueError:
        if authored and holds_placeholder(text):
            return Plain(text, authored)
        return "expected JSON: the text cannot be parsed"
    return Plain(parsed if isinstance(parsed, dict | list) else text, authored)


def text_of(value: HeaderValue) -> str:
    """The value as text with placeholders unfilled; a held secret shows its mask, a reference its name."""
    if isinstance(value, Merged):
        return json_text({key: _shown(member.value) for key, member in value.members.items()})
    inner = value.value
    return inner if isinstance(inner, str) else str(inner) if isinstance(inner, Secret) else json_text(_shown(value))


def _shown(plain: Plain) -> JsonValue:
    inner = plain.value
    if isinstance(inner, SecretRef):
        return {"$secret": str(inner)}
    return str(inner) if isinstance(inner, Secret) else inner


def show_sensitive(value: HeaderValue) -> str:
    """The value of a sensitive header as it may be shown: references as references, literals as a fingerprint."""
    if isinstance(value, Plain):
        inner = value.value
        if isinstance(inner, Secret | SecretRef):
            return text_of(value)
        masked = mask_literals(inner, MASK) if value.authored and isinstance(inner, str) else None
        if masked is not None:
            return masked
    return str(Secret(text_of(value)))


def seal(value: Plain) -> Plain:
    """The value of a sensitive header: a literal becomes a Secret, what must be filled stays as it is written."""
    if isinstance(value.value, Secret | SecretRef) or (value.authored and holds_placeholder(text_of(value))):
        return value
    return Plain(Secret(text_of(value)), authored=False)


def bind_value(value: HeaderValue, session_id: str | None, run_id: str | None) -> HeaderValue:
    """The value as a child inherits it: the parent's ids stay the parent's."""
    if isinstance(value, Merged):
        bound = {
            key: Sourced(_bind_plain(m.value, session_id, run_id), m.origin, m.overruled, m.note)
            for key, m in value.members.items()
        }
        return Merged(bound)
    return _bind_plain(value, session_id, run_id)


def _bind_plain(plain: Plain, session_id: str | None, run_id: str | None) -> Plain:
    if not plain.authored or isinstance(plain.value, SecretRef | Secret):
        return plain
    return Plain(_bind_json(plain.value, session_id, run_id), authored=True)


def _bind_json(value: JsonValue, session_id: str | None, run_id: str | None) -> JsonValue:
    if isinstance(value, str):
        return bind_to_parent(value, session_id, run_id) if holds_placeholder(value) else value
    if isinstance(value, list):
        return [_bind_json(item, session_id, run_id) for item in value]
    if isinstance(value, dict):
        return {key: _bind_json(item, session_id, run_id) for key, item in value.items()}
    return value


def list_items(plain: Plain) -> list[str] | None:
    """The members of a comma-separated or JSON list; None when they are not known before filling."""
    inner = plain.value
    if isinstance(inner, SecretRef | Secret) or (
        plain.authored and isinstance(inner, str) and holds_placeholder(inner)
    ):
        return None
    if isinstance(inner, str):
        return [item.strip() for item in inner.split(",") if item.strip()]
    if isinstance(inner, list):
        return [item if isinstance(item, str) else json_text(item) for item in inner]
    return None


def keep_items(plain: Plain, allowed: list[str]) -> Plain:
    """The list with only the allowed members, in their order and in the form the list has."""
    if isinstance(plain.value, list):
        kept: list[JsonValue] = [i for i in plain.value if (i if isinstance(i, str) else json_text(i)) in allowed]
        return Plain(kept, plain.authored)
    return Plain(",".join(item for item in list_items(plain) or [] if item in allowed), plain.authored)
