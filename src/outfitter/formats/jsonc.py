"""How are JSON and JSONC read, and which values can JSON hold?

Reading is ``json`` with a few guards. Why a text was refused, and where, is found out only after it was refused.
JSONC is made JSON first, with blanks for comments and trailing commas, so that every offset stays as it was.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from outfitter.catalog import JsonValue
from outfitter.formats.positions import MAX_DEPTH, Draft, Entry, OpenFrame, Path, path_of

if TYPE_CHECKING:
    from outfitter.errors import InvalidDocument

_Value = TypeVar("_Value")

MAX_STRING = 1024 * 1024
"""How many bytes one string or key may have."""
_MAX_INT_BITS = 14_285  # what Python's own limit of 4300 digits amounts to

_ESCAPE = re.compile(r"\\.", re.DOTALL)
_NO_MARKS = bytes(set(range(256)) - set(b'"[]{}'))
_MARKED_STRING = re.compile(rb'"[^"]*+"?')
_STEPS = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_NUMBER = re.compile(r"NaN|-?Infinity|-?[0-9]++(\.[0-9]++)?([eE][-+]?[0-9]++)?")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]++|\\.)*+"?|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\\n]++|\\.)*+"?|[\[{,:]\s*+,|,(?=\s*+[\]}])', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")


def read_json(draft: Draft) -> JsonValue:
    """The value of a JSON text; InvalidDocument names the first fault."""
    text = draft.text
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(text) > MAX_DEPTH:
        raise _explain(draft)
    value: JsonValue = None
    refusal: InvalidDocument | None = None
    try:
        value = _decoder().decode(text)
    except (ValueError, RecursionError) as error:
        refusal = _explain(draft, error)
    if refusal:
        raise refusal  # here, not above: the first error holds the whole text
    if len(text) > MAX_STRING // 4 or ("\\" in text and _ESCAPED_SURROGATE.search(text)):
        plain_value(value, draft)
    return value


@cache
def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _unique(pairs: list[tuple[str, _Value]]) -> dict[str, _Value]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError
    return value


def _refuse(_constant: str) -> NoReturn:
    raise ValueError


def _finite(written: str) -> float:
    value = float(written)
    if math.isinf(value):
        raise ValueError
    return value


def read_jsonc(draft: Draft) -> JsonValue:
    """The value of a JSON text that may have comments and trailing commas."""
    return read_json(Draft(without_comments(draft), draft.source, json_entries))


def depth_of(text: str) -> int:
    """How deep the brackets of a JSON text nest; strings are told by the parity of their quotes."""
    bare = _ESCAPE.sub("", text) if "\\" in text else text
    marks = bare.encode().translate(None, _NO_MARKS).replace(b'""', b"")
    if b'"' in marks:
        marks = _MARKED_STRING.sub(b"", marks)
    return max(accumulate(map(_STEPS.__getitem__, marks)), default=0)


def without_comments(draft: Draft) -> str:
    """The text with blanks instead of comments and trailing commas."""

    def blank_comment(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith("/*") and (len(found) < len("/**/") or not found.endswith("*/")):
            raise draft.fault("a comment is never closed", at=match.start(), hint="close it with */")
        return found if found[0] == '"' else _NOT_NEWLINE.sub(" ", found)

    plain = _STRING_OR_COMMENT.sub(blank_comment, draft.text)
    return _STRING_OR_COMMA.sub(lambda match: " " if match[0] == "," else match[0], plain)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def plain_value(value: object, draft: Draft, path: Path = ()) -> JsonValue:
    """A fresh copy that has only JSON's own types; InvalidDocument names the first value that cannot be one."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_string(value, draft, path)
    if isinstance(value, int | float):
        return _plain_number(value, draft, path)
    if not isinstance(value, Mapping | list | tuple):
        is_time = type(value).__name__ in {"date", "datetime", "time"}
        what = "a date or time" if is_time else f"a value of type {type(value).__name__}"
        hint = "put it in quotes" if is_time else "use text, numbers, true, false, null, lists and objects"
        raise draft.fault(f"{what} is not a JSON value", path=path, hint=hint)
    if isinstance(value, Mapping):
        return plain_object(cast("Mapping[Any, object]", value), draft, path)
    if len(path) >= MAX_DEPTH:
        raise draft.depth_fault(path)
    elements = cast("list[object] | tuple[object, ...]", value)
    return [plain_value(element, draft, (*path, index)) for index, element in enumerate(elements)]


def plain_object(members: Mapping[Any, object], draft: Draft, path: Path = ()) -> dict[str, JsonValue]:
    """The same for an object."""
    if len(path) >= MAX_DEPTH:
        raise draft.depth_fault(path)
    return {
        (name := _plain_key(key, draft, path)): plain_value(member, draft, (*path, name))
        for key, member in members.items()
    }


def plain_string(value: str, draft: Draft, path: Path) -> str:
    """The string itself, when it is Unicode text of bearable length."""
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        message = "a string has half of a surrogate pair, which is not a character"
        raise draft.fault(message, path=path, hint="write the character itself, or both \\u escapes of the pair")
    if len(value) > MAX_STRING // 4 and len(value.encode()) > MAX_STRING:
        message = f"a string has more than {MAX_STRING // 1024 // 1024} MiB"
        raise draft.fault(message, path=path, hint="keep long texts in a file of their own")
    return str.__str__(value)


def _plain_key(key: object, draft: Draft, path: Path) -> str:
    if not isinstance(key, str):
        message = f"a key is of type {type(key).__name__}"
        raise draft.fault(message, path=path, hint="every key must be a string")
    return plain_string(key, draft, (*path, key))


def _plain_number(value: float, draft: Draft, path: Path) -> int | float:
    if isinstance(value, int):
        if value.bit_length() > _MAX_INT_BITS:
            raise draft.fault("this whole number has too many digits", path=path, hint="write it as text in quotes")
        return int(value)
    if not math.isfinite(value):
        message = "this number is infinite, too large to be held, or not a number"
        raise draft.fault(message, path=path, hint="write a finite number, or text in quotes")
    return float(value)


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _explain(draft: Draft, error: Exception | None = None) -> InvalidDocument:
    """The first fault in the text, in the order of the text."""
    stop = error.pos if isinstance(error, json.JSONDecodeError) else len(draft.text)
    homes: list[set[str | int]] = []
    for entry in json_entries(draft.text):
        if entry.value_at >= stop:
            break
        if fault := _repeat_fault(draft, entry, homes) or _value_fault(draft, entry):
            return fault
    if isinstance(error, json.JSONDecodeError):
        return _syntax_fault(draft, error)
    return draft.fault("this cannot be read as JSON", hint="check it with a JSON validator")


def _repeat_fault(draft: Draft, entry: Entry, homes: list[set[str | int]]) -> InvalidDocument | None:
    """``homes`` has the keys seen so far, one set per object or list around the entry."""
    depth = len(entry.path)
    if depth == 0:
        return None
    del homes[depth:]
    homes.extend(set() for _ in range(depth - len(homes)))
    if entry.path[-1] in homes[-1]:
        return draft.repeat_fault(entry.path, at=entry.at)
    homes[-1].add(entry.path[-1])
    return None


def _value_fault(draft: Draft, entry: Entry) -> InvalidDocument | None:
    if draft.text[entry.value_at] in "[{":
        return draft.depth_fault(entry.path, at=entry.value_at) if len(entry.path) >= MAX_DEPTH else None
    number = _NUMBER.match(draft.text, entry.value_at)
    message = _number_fault(number) if number else None
    if message is None:
        return None
    return draft.fault(message, path=entry.path, at=entry.value_at, hint="write a finite number, or text in quotes")


def _number_fault(number: re.Match[str]) -> str | None:
    if number[0][-1] in "Ny":
        return f"{number[0]} is not a JSON value"
    if number[1] or number[2]:
        return "this number is too large to be held" if math.isinf(float(number[0])) else None
    try:
        int(number[0])
    except ValueError:
        return "this whole number has too many digits"
    return None


def _syntax_fault(draft: Draft, error: json.JSONDecodeError) -> InvalidDocument:
    text, pos = draft.text, error.pos
    if not text.strip():
        return draft.fault("the document is empty", hint="write at least {}")
    if text[pos : pos + 2] in {"//", "/*"}:
        hint = "JSON has no comments: take it out, or name the file .jsonc"
    elif "trailing comma" in error.msg or (text[:pos].rstrip()[-1:] == "," and text[pos : pos + 1] in {"]", "}"}):
        hint = "take out the comma before the closing bracket"
    elif "control character" in error.msg:
        hint = r"write a line break in a string as \n and a tab as \t"
    else:
        hint = "correct the file here or just before"
    what = error.msg[:1].lower() + error.msg[1:].removesuffix(" at")
    message = f"not valid JSON: {what} at column {error.colno}"
    return draft.fault(message, at=pos, hint=hint)


# ── positions ────────────────────────────────────────────────────────────────────────────────────────────────────────

_TOKEN = re.compile(
    r"""(?P<value>"(?:[^"\\]++|\\.)*+"|[\[{]|[^\s"\[\]{},:]++)|(?P<close>[\]}])|(?P<comma>,)|(?P<broken>")""", re.DOTALL
)


def json_entries(text: str) -> Iterator[Entry]:
    """Every value of a JSON text in order; it ends early where the text makes no sense or nests too deep."""
    frames = [OpenFrame(0)]
    for token in _TOKEN.finditer(text):
        kind, frame, at = token.lastgroup, frames[-1], token.start()
        if kind == "comma":
            frame.advance()
        elif kind == "close":
            frames.pop()
        elif kind == "value" and frame.step is None:
            frame.step, frame.at = _key_of(token[0]), at
        elif kind == "value":
            yield Entry(path_of(frames), frame.start(at), at)
            if token[0] in {"[", "{"}:
                frames.append(OpenFrame(0 if token[0] == "[" else None))
        if kind == "broken" or not 0 < len(frames) <= MAX_DEPTH + 1:
            return


def _key_of(written: str) -> str:
    try:
        return str(json.loads(written, strict=False))
    except ValueError:
        return written
