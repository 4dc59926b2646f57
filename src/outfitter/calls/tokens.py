"""How many tokens does a model read here? An estimate without a tokenizer, from what kinds of characters there are.

No model's own count is promised: the weights lie between three tokenizers (docs/tool-search.md has the measured error).
Every byte is looked at by C code, a few times; nothing is decoded. What a definition costs is the cost of what a model
is given: name, description and input schema, as compact JSON.
"""

from __future__ import annotations

import json
import math
import string
from collections.abc import Iterable, Mapping

from outfitter.catalog import JsonValue

DEFINITION = ("name", "description", "inputSchema")
"""What a model is given of a tool."""
_LETTERS = string.ascii_letters.encode()
_DIGITS = string.digits.encode()
_BREAKS = (b"\n", b"\t", b"\r")


def _only(kind: bytes) -> bytes:
    """A table that makes ``x`` of one kind of character, and a space of every other."""
    return bytes(ord("x") if byte in kind else ord(" ") for byte in range(256))


_TO_LETTERS = _only(_LETTERS)
_TO_CAPITALS = _only(string.ascii_uppercase.encode())
_TO_SIGNS = _only(string.punctuation.encode())


def estimate_tokens(text: str | bytes) -> int:
    """About how many tokens a model reads in a text."""
    told = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    data = b" " + told
    letters, signs = data.translate(_TO_LETTERS), data.translate(_TO_SIGNS)
    letter_count, sign_count, runs = letters.count(b"x"), signs.count(b"x"), signs.count(b" x")
    digits = len(data) - len(data.translate(None, _DIGITS))
    breaks = sum(data.count(one) for one in _BREAKS)
    spaces = data.count(b" ") - 1
    others = len(told) - letter_count - sign_count - digits - breaks - spaces
    worth = (
        0.84 * letters.count(b" x")
        + 0.52 * data.translate(_TO_CAPITALS).count(b" x")
        + 0.02 * letter_count
        + 0.58 * digits
        + 0.88 * runs
        + 0.17 * (sign_count - runs)
        + 0.90 * breaks
        + 0.06 * spaces
        + 0.24 * others
    )
    return math.ceil(worth)


def definition_text(tool: Mapping[str, JsonValue]) -> str:
    """A tool's definition as a model is given it."""
    given = {key: tool[key] for key in DEFINITION if key in tool}
    return json.dumps(given, ensure_ascii=False, separators=(",", ":"))


def definition_tokens(tool: Mapping[str, JsonValue]) -> int:
    """About how many tokens a tool's definition takes from a model's context."""
    return estimate_tokens(definition_text(tool))


def total_tokens(tools: Iterable[Mapping[str, JsonValue]]) -> int:
    """About how many tokens the definitions of some tools take together."""
    return sum(map(definition_tokens, tools))
