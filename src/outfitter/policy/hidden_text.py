"""Does a text say something to a model that a person does not see? Says what, where, and how to show it safely.

Characters without width, characters that turn the direction of writing, escape sequences of terminals, comments of
HTML, and Unicode's tag characters. What joins emoji or letters of scripts that need it is left alone. Nothing is
removed here: the raw text stays in the pin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from outfitter.catalog import JsonValue

_JOINED = r"[\u0600-\u0dff\u0e00-\u109f\u1780-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff]"
"""Letters of scripts that are written with joiners, and what emoji are made of."""
_HIDDEN = re.compile(
    r"(?P<tag>[\U000e0000-\U000e007f]+)"
    r"|(?P<comment><!--)"
    r"|(?P<ansi>\x1b|\x9b)"
    r"|(?P<bidi>[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])"
    rf"|(?<={_JOINED})[\u200c\u200d](?={_JOINED})"
    r"|(?P<zero_width>[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2028\u2029\u2060-\u2064"
    r"\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb])"
    r"|(?P<variation>[\ufe00-\ufe0d\U000e0100-\U000e01ef]+)"
    r"|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9a\x9c-\x9f\ud800-\udfff])"
)
_WORDS = {
    "tag": "Unicode tag characters",
    "comment": "an HTML comment",
    "ansi": "a terminal escape",
    "bidi": "a character that turns the direction of writing",
    "zero_width": "a character without width",
    "variation": "variation selectors",
    "control": "a control character",
    "depth": "values nested deeper than anybody reads",
}
_TAGS = 0xE0000
_MOST_FOUND = 50
_DEEPEST = 200


@dataclass(frozen=True, slots=True)
class HiddenText:
    """One place of a definition where something is hidden."""

    kind: str
    where: str
    """A JSON pointer; a key that hides something is pointed at, too."""
    place: int
    shown: str
    """What is there, made visible."""

    def __str__(self) -> str:
        """What and where, for a person."""
        return f"{_WORDS[self.kind]} in {self.where or '/'} at character {self.place}: {self.shown}"


def find_hidden(value: JsonValue) -> tuple[HiddenText, ...]:
    """Every place of a definition, or of a text, that hides something; at most so many as anybody reads."""
    found: list[HiddenText] = []
    try:
        for where, text in _texts(value, "", 0):
            found += [
                HiddenText(match.lastgroup, where, match.start(), _shown(match))
                for match in _HIDDEN.finditer(text)
                if match.lastgroup is not None
            ]
            if len(found) >= _MOST_FOUND:
                break
    except RecursionError:
        found.append(HiddenText("depth", "", 0, "⟦…⟧"))
    return tuple(found[:_MOST_FOUND])


def reveal_hidden(text: str) -> str:
    """The text with everything that is hidden in it made visible."""
    return _HIDDEN.sub(lambda match: match.group() if match.lastgroup is None else _shown(match), text)


def _shown(match: re.Match[str]) -> str:
    text, kind = match.group(), match.lastgroup
    if kind == "comment":
        return "⟦<!--⟧"
    if kind == "tag":
        letters = "".join(chr(ord(one) - _TAGS) for one in text)
        return f"⟦tag characters: {''.join(one if one.isprintable() else '·' for one in letters)}⟧"
    codes = " ".join(f"U+{ord(one):04X}" for one in text[:8])
    return f"⟦{codes}{' …' if text[8:] else ''}⟧"


def _texts(value: JsonValue, where: str, depth: int) -> Iterator[tuple[str, str]]:
    """Every text in a value, keys included; RecursionError where it is nested deeper than any schema."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, JsonValue]", value).items():
            below = f"{where}/{reveal_hidden(key).replace('~', '~0').replace('/', '~1')}"
            yield below, key
            yield from _texts(inner, below, depth + 1)
    elif isinstance(value, Sequence):
        for place, inner in enumerate(cast("Sequence[JsonValue]", value)):
            yield from _texts(inner, f"{where}/{place}", depth + 1)
