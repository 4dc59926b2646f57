"""A server's document as a form, and back. What the form does not show stays as it was.

A sensitive value never reaches the browser: its field is empty, and left empty it keeps what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outfitter.catalog import PinMode
from outfitter.coordinator import MASK
from outfitter.dashboard.form_values import Document, part_of, put, read_number, read_value, shown
from outfitter.errors import Invalid

Fields = Mapping[str, str]
FLAGS = ("required", "sensitive", "locked")
TYPES = ("string", "json", "number", "boolean")
PINS = tuple(mode.value for mode in PinMode)
NO_SIGN_IN, AUTH0, CREDENTIALS = "none", "auth0_m2m", "oauth2_client_credentials"
SIGN_INS = {
    NO_SIGN_IN: "none, or by a header",
    CREDENTIALS: "OAuth client credentials",
    AUTH0: "Auth0, machine to machine",
}
_TEXTS = ("name", "description")
_SECONDS = ("timeout", "connect_timeout", "total_timeout")
_SIGN_IN_TEXTS = ("token_url", "client_id", "scope", "audience")
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


@dataclass(frozen=True, slots=True)
class VariableRow:
    """One variable of a program as the form shows it."""

    name: str = ""
    value: str = ""
    is_kept: bool = False
    """Whether there is a value that is not shown."""


def rows_of(document: Mapping[str, Any]) -> list[HeaderRow]:
    """The headers of a document, and room for one more."""
    schema, defaults = part_of(document, "header_schema"), part_of(document, "default_headers")
    rows: list[HeaderRow] = []
    for name in dict.fromkeys([*schema, *defaults]):
        rule: Document = schema.get(name, {})
        value, is_kept = _visible(defaults.get(name, ""))
        flags = frozenset(flag for flag in FLAGS if rule.get(flag))
        rows.append(HeaderRow(name, rule.get("type", "string"), rule.get("description", ""), flags, value, is_kept))
    return rows + [HeaderRow()] * _EMPTY_ROWS


def variables_of(document: Mapping[str, Any]) -> list[VariableRow]:
    """The variables of a program, and room for one more."""
    found = [VariableRow(name, *_visible(value)) for name, value in part_of(document, "env").items()]
    return found + [VariableRow()] * _EMPTY_ROWS


def _visible(value: object) -> tuple[str, bool]:
    """A value as it may be shown, and whether there is one that is not."""
    return ("", True) if value == MASK else (shown(value), False)


def fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The plain fields of a document."""
    found: dict[str, Any] = {
        name: str(document.get(name, "")) for name in ("id", *_TEXTS, "url", "command", "cwd", *_SECONDS)
    }
    found["type"] = document.get("type") or ("stdio" if document.get("command") else "http")
    found["args"] = "\n".join(document.get("args") or ())
    found["fallback"] = document.get("fallback", "")
    found["known_tools"] = "\n".join(document.get("known_tools") or ())
    found["pins"] = document.get("pins") or PINS[0]
    found["trusted"] = bool(document.get("trusted"))
    auth = part_of(document, "auth")
    found |= {f"auth_{name}": str(auth.get(name) or "") for name in _SIGN_IN_TEXTS}
    found["auth_type"] = auth.get("type") or document.get("auth_type") or NO_SIGN_IN
    found["auth_client_secret"], found["is_secret_kept"] = _visible(auth.get("client_secret", ""))
    return found


def document_of(sent: Sequence[tuple[str, str]], before: Mapping[str, Any], problems: list[Invalid]) -> Document:
    """The document that a form describes. A field that cannot be read stays as it was typed, and is a problem."""
    fields, made = dict(sent), dict(before)
    for name in ("id", *_TEXTS, "fallback"):
        put(made, name, fields.get(name, "").strip())
    _put_place(made, fields, before, problems)
    for name in _SECONDS:
        number = read_number(name.replace("_", " "), fields.get(name, ""), "seconds", problems)
        put(made, name, number or "")
    put(made, "known_tools", fields.get("known_tools", "").split())
    pins = fields.get("pins", PINS[0])
    put(made, "pins", "" if pins == PINS[0] else pins)
    put(made, "trusted", True if fields.get("trusted") else "")
    _put_sign_in(made, fields, before, problems)
    _put_headers(made, _rows(fields, "h"), before, problems)
    return made


def _put_place(made: Document, fields: Fields, before: Mapping[str, Any], problems: list[Invalid]) -> None:
    kind = fields.get("type", "http")
    is_program = kind == "stdio"
    made["type"] = kind
    put(made, "url", "" if is_program else fields.get("url", "").strip())
    put(made, "command", fields.get("command", "").strip() if is_program else "")
    put(made, "args", fields.get("args", "").splitlines() if is_program else [])
    put(made, "cwd", fields.get("cwd", "").strip() if is_program else "")
    put(made, "env", _variables(fields, part_of(before, "env"), problems) if is_program else {})


def _variables(fields: Fields, kept: Document, problems: list[Invalid]) -> Document:
    found: Document = {}
    for row in _rows(fields, "e"):
        name, text = row["name"], row.get("value", "")
        if name in found:
            problems.append(Invalid(f"variable '{name}' stands there twice"))
        found[name] = MASK if not text and kept.get(name) == MASK else read_value(name, "string", text, problems)
    return found


def _put_sign_in(made: Document, fields: Fields, before: Mapping[str, Any], problems: list[Invalid]) -> None:
    kind = NO_SIGN_IN if made["type"] == "stdio" else fields.get("auth_type", NO_SIGN_IN)
    kept = part_of(before, "auth")
    made.pop("auth_type", None)
    auth: Document = {} if kind == NO_SIGN_IN else {"type": kind}
    for name in () if kind == NO_SIGN_IN else ("audience",) if kind == AUTH0 else _SIGN_IN_TEXTS:
        put(auth, name, fields.get(f"auth_{name}", "").strip())
    if kind == CREDENTIALS:
        secret = fields.get("auth_client_secret", "")
        is_kept = not secret and kept.get("client_secret") == MASK
        put(auth, "client_secret", MASK if is_kept else read_value("client secret", "string", secret, problems))
    put(made, "auth", auth)


def _rows(fields: Fields, mark: str) -> list[dict[str, str]]:
    """The rows of a part of the form that have a name, in order."""
    found: list[dict[str, str]] = []
    for number in range(_MOST_ROWS):
        prefix = f"{mark}{number}-"
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
