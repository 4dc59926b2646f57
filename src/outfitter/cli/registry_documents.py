"""Documents as commands are given them: a file, standard input, a few options, or a change of one value.

A literal that looks like a secret is refused on the command line, where other users and the shell's history see it.
Faults that the API finds are put back into the place of the file they came from.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click

from outfitter.basics import looks_sensitive
from outfitter.errors import Invalid, OutfitterError, Refused
from outfitter.formats import MAX_BYTES, Syntax, line_of, parse_text, pointer
from outfitter.storage import read_bytes

Document = dict[str, Any]
_ENV = "env:"


@dataclass(frozen=True, slots=True)
class Given:
    """A document and where it stands."""

    document: Document
    text: str
    source: str
    syntax: Syntax

    @contextmanager
    def located(self) -> Generator[None]:
        """Errors of the block that point into the document name its file and line."""
        try:
            yield
        except OutfitterError as error:
            for one in error.problems if isinstance(error, Refused) else (error,):
                if one.trail and self.text:
                    one.locate(self.source, line_of(self.text, one.trail, self.syntax), pointer(one.trail))
            raise


def read_given(file: str) -> Given:
    """The document of a file, or of standard input (``-``: JSON or YAML)."""
    if file == "-":
        data, source, syntax = sys.stdin.buffer.read(MAX_BYTES + 1), "standard input", Syntax.YAML
        if data.lstrip().startswith(b"{"):
            syntax = Syntax.JSON
    else:
        data, source, syntax = read_bytes(Path(file), MAX_BYTES), file, Syntax.of(file)
    return parse_given(data, source, syntax)


def parse_given(data: bytes | str, source: str, syntax: Syntax) -> Given:
    """The document of a text; InvalidDocument says where it cannot be read."""
    document = cast("Document", parse_text(data, source=source, syntax=syntax))
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    return Given(document, text, source, syntax)


def split_pair(text: str, what: str) -> tuple[str, str]:
    """NAME=VALUE in its parts; a wrong use of the command otherwise."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"{what} is NAME=VALUE")
    return name, value


def public_pair(text: str, what: str) -> tuple[str, str]:
    """NAME=VALUE where the value may be seen by everyone on the machine; Invalid for a literal secret."""
    name, value = split_pair(text, what)
    refuse_secret(name, value)
    return name, value


def refuse_secret(name: str, value: object) -> None:
    """Refuse a literal under a name that says it is a secret, however deep in the value."""
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if set(fields) == {"$secret"}:
            return
        for inner, item in fields.items():
            refuse_secret(inner, item)
    if isinstance(value, list):
        for item in cast("list[object]", value):
            refuse_secret(name, item)
    if looks_sensitive(name) and isinstance(value, str) and value and "${" not in value:
        hint = "write ${VARIABLE}, or give the document with -f -"
        raise Invalid(f"the value of '{name}' looks like a secret, and command lines are seen by others", hint=hint)


def read_secret(label: str, reference: str = "") -> str:
    """A secret from a variable (``env:NAME``), or typed unseen, or from a line of standard input."""
    if reference:
        found = os.environ.get(reference.removeprefix(_ENV), "") if reference.startswith(_ENV) else ""
        if not found:
            hint = "write =env:VARIABLE with a variable that is set, or leave it out to be asked"
            raise Invalid(f"there is no value for {label}", hint=hint)
        return found
    if sys.stdin.isatty():
        typed: str = click.prompt(label, hide_input=True, err=True)
        return typed
    line = sys.stdin.readline().rstrip("\n")
    if not line:
        raise Invalid(f"there is no value for {label}", hint="give it on a line of standard input, or as env:VARIABLE")
    return line


def change_values(document: Document, sets: Sequence[str], unsets: Sequence[str]) -> Document:
    """The document with values put at JSON pointers, or taken away from them."""
    changed = cast("Document", json.loads(json.dumps(document)))
    for item in sets:
        place, text = split_pair(item, "--set")
        value = _read_value(text)
        keys = _keys(place)
        refuse_secret(keys[-1], value)
        _put(changed, keys, value)
    for place in unsets:
        keys = _keys(place)
        _step(changed, keys[:-1], place).pop(keys[-1], None)
    return changed


def _put(document: Document, keys: Sequence[str], value: object) -> None:
    inner = document
    for key in keys[:-1]:
        inner = _inner(inner.setdefault(key, {}), keys)
    inner[keys[-1]] = value


def _step(document: Document, keys: Sequence[str], place: str) -> Document:
    inner = document
    for key in keys:
        if key not in inner:
            raise Invalid(f"there is nothing at {place}")
        inner = _inner(inner[key], keys)
    return inner


def _inner(value: object, keys: Sequence[str]) -> Document:
    if not isinstance(value, dict):
        hint = "set the whole list or value, as JSON"
        raise Invalid(f"{pointer(tuple(keys))} leads into something that has no names", hint=hint)
    return cast("Document", value)


def _keys(place: str) -> list[str]:
    if not place.startswith("/") or place == "/":
        raise click.UsageError("a place is a JSON pointer, such as /default_headers/X-Team")
    return [part.replace("~1", "/").replace("~0", "~") for part in place[1:].split("/")]


def _read_value(text: str) -> object:
    """JSON where it is JSON, text otherwise."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value
