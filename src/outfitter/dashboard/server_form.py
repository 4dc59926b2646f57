"""A server's document as a form, and back. What the form does not show stays as it was.

A sensitive default never reaches the browser: its field is empty, and left empty it keeps what is stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outfitter.coordinator import MASK
from outfitter.dashboard.form_values import Document, part_of, put, read_value
from outfitter.errors import Invalid

Fields = Mapping[str, str]
FLAGS = ("required", "sensitive", "locked")
TYPES = ("string", "json", "number", "boolean")
_TEXTS = ("name", "description")
_SECONDS = ("timeout", "connect_timeout", "total_timeout")
_MOST_ROWS = 200
_EMPTY_ROWS = 1


@dataclass(frozen=True, slots=True)
class HeaderRow:
    """One header as the form shows it."""

    name: str = ""
    type: str = "string"
    description: str = ""
    flags: frozenset[str] = frozenset()
    default: str = ""
    is_kept: bool = False
    """Whether there is a default that is not shown."""


def rows_of(document: Mapping[str, Any]) -> list[HeaderRow]:
    """The headers of a document, and room for one more."""
    schema, defaults = part_of(document, "header_schema"), part_of(document, "default_headers")
    rows: list[HeaderRow] = []
    for name in dict.fromkeys([*schema, *defaults]):
        rule: Document = schema.get(name, {})
        value = defaults.get(name, "")
        is_kept = value == MASK
        rows.append(
            HeaderRow(
                name,
                rule.get("type", "string"),
                rule.get("description", ""),
                frozenset(flag for flag in FLAGS if rule.get(flag)),
                "" if is_kept else value if isinstance(value, str) else json.dumps(value),
                is_kept,
            )
        )
    return rows + [HeaderRow()] * _EMPTY_ROWS


def fields_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The plain fields of a document."""
    shown = {name: str(document.get(name, "")) for name in ("id", *_TEXTS, "url", "command", "cwd", *_SECONDS)}
    shown["type"] = document.get("type") or ("stdio" if document.get("command") else "http")
    shown["args"] = "\n".join(document.get("args") or ())
    shown["fallback"] = document.get("fallback", "")
    shown["known_tools"] = "\n".join(document.get("known_tools") or ())
    return shown


def document_of(sent: Sequence[tuple[str, str]], before: Mapping[str, Any], problems: list[Invalid]) -> Document:
    """The document that a form describes. A field that cannot be read stays as it was typed, and is a problem."""
    fields, made = dict(sent), dict(before)
    for name in ("id", *_TEXTS, "fallback"):
        put(made, name, fields.get(name, "").strip())
    _put_place(made, fields)
    for name in _SECONDS:
        put(made, name, _number(name, fields.get(name, ""), problems))
    put(made, "known_tools", fields.get("known_tools", "").split())
    _put_headers(made, _rows(fields), before, problems)
    return made


def _put_place(made: Document, fields: Fields) -> None:
    kind = fields.get("type", "http")
    is_program = kind == "stdio"
    made["type"] = kind
    put(made, "url", "" if is_program else fields.get("url", "").strip())
    put(made, "command", fields.get("command", "").strip() if is_program else "")
    put(made, "args", fields.get("args", "").splitlines() if is_program else [])
    put(made, "cwd", fields.get("cwd", "").strip() if is_program else "")
    if not is_program:
        made.pop("env", None)


def _rows(fields: Fields) -> list[dict[str, str]]:
    """The rows of headers that have a name, in order."""
    found: list[dict[str, str]] = []
    for number in range(_MOST_ROWS):
        prefix = f"h{number}-"
        row = {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}
        if row.get("name", "").strip():
            found.append({**row, "name": row["name"].strip()})
    return found


def _put_headers(
    made: Document, rows: Sequence[Mapping[str, str]], before: Mapping[str, Any], problems: list[Invalid]
) -> None:
    known, kept = part_of(before, "header_schema"), part_of(before, "default_headers")
    schema: Document = {}
    defaults: Document = {}
    for row in rows:
        name = row["name"]
        if name in schema:
            problems.append(Invalid(f"header '{name}' stands there twice"))
        rule = {key: value for key, value in part_of(known, name).items() if key not in (*FLAGS, "type", "description")}
        rule["type"] = row.get("type", "string")
        put(rule, "description", row.get("description", "").strip())
        rule |= {flag: True for flag in FLAGS if row.get(flag)}
        schema[name] = rule
        given = row.get("default", "")
        if given:
            defaults[name] = read_value(name, rule["type"], given, problems)
        elif kept.get(name) == MASK and not row.get("forget"):
            defaults[name] = MASK
    put(made, "header_schema", schema)
    put(made, "default_headers", defaults)


def _number(name: str, text: str, problems: list[Invalid]) -> float | str:
    try:
        value = float(text) if text.strip() else 0.0
    except ValueError:
        problems.append(Invalid(f"{name.replace('_', ' ')}: '{text[:20]}' is no number of seconds"))
        return text
    return (int(value) if value.is_integer() else value) if value else ""
