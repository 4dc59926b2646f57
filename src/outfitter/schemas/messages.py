"""How a fault is said: short, for a model that will try again, and without quoting what may be a secret.

Where no alternative fits, the one that was most likely meant is told: the one whose kind and marks agree, then the one
that got furthest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from outfitter.basics import looks_sensitive, quote
from outfitter.schemas.keywords import as_node
from outfitter.schemas.references import Library
from outfitter.schemas.shape import Fault
from outfitter.schemas.soundness import pointer_of, word_for

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_MOST_SHOWN = 64
_MOST_NAMES = 20
_MARKS = ('"writeOnly"', '"password"')
"""A schema that says one of these has values that nobody should see; then none is quoted."""
_SAY: dict[str, Callable[[Any], str]] = {
    "additionalItems": lambda kind: f"has more than {kind.limit} items",
    "contains": lambda _: "has no item of the required form",
    "contentEncoding": lambda kind: f"is not encoded as {quote(kind.content_encoding)}",
    "contentMediaType": lambda kind: f"is not of the media type {quote(kind.content_media_type)}",
    "exclusiveMaximum": lambda kind: f"must be less than {kind.limit}",
    "exclusiveMinimum": lambda kind: f"must be greater than {kind.limit}",
    "falseSchema": lambda _: "must not be given",
    "format": lambda kind: f"must be a {quote(kind.format)}",
    "maxItems": lambda kind: f"must have at most {kind.limit} items",
    "maximum": lambda kind: f"must be at most {kind.limit}",
    "maxLength": lambda kind: f"must have at most {kind.limit} characters",
    "maxProperties": lambda kind: f"must have at most {kind.limit} properties",
    "minItems": lambda kind: f"must have at least {kind.limit} items",
    "minimum": lambda kind: f"must be at least {kind.limit}",
    "minLength": lambda kind: f"must have at least {kind.limit} characters",
    "minProperties": lambda kind: f"must have at least {kind.limit} properties",
    "multipleOf": lambda kind: f"must be a multiple of {kind.multiple_of}",
    "not": lambda _: "is of a form that is not allowed",
    "pattern": lambda kind: f"must match {quote(kind.pattern)}",
    "unevaluatedItems": lambda _: "has items that are not allowed",
    "uniqueItems": lambda _: "has equal items, and each must be different",
}


class Teller:
    """What turns the errors of one schema into faults."""

    __slots__ = ("_is_discreet", "_text")

    def __init__(self, text: str) -> None:
        """Keep the text of the schema, to name what it knows."""
        self._text = text
        self._is_discreet = any(mark in text for mark in _MARKS)

    def tell(self, error: ValidationError) -> Iterator[Fault]:
        """The faults that one error stands for."""
        kind: Any = error.kind
        name = type(kind).__name__
        path = error.instance_path
        if name in {"AnyOf", "OneOfNotValid"}:
            yield from self._tell_alternatives(error, kind.context)
        elif name == "Required":
            yield Fault(pointer_of([*path, kind.property]), "is a required property")
        elif name in {"AdditionalProperties", "UnevaluatedProperties"}:
            yield Fault(pointer_of(path), self._unknown(error, kind.unexpected))
        elif name == "PropertyNames":
            inner = next(self.tell(kind.error), Fault("", "is not allowed"))
            yield Fault(pointer_of(path), f"a property name {inner.message}")
        else:
            yield Fault(pointer_of(path), _message(error, discreet=self._is_discreet))

    def _unknown(self, error: ValidationError, names: list[str]) -> str:
        shown = ", ".join(quote(name) for name in names[:_MOST_NAMES])
        known = self._known_properties(error.schema_path[:-1])
        more = "" if known is None else f"; known: {', '.join(map(quote, known[:_MOST_NAMES])) or 'none'}"
        rest = ", …" if known is not None and len(known) > _MOST_NAMES else ""
        return f"unknown {'property' if len(names) == 1 else 'properties'} {shown}{more}{rest}"

    def _known_properties(self, path: list[str | int]) -> list[str] | None:
        """The properties of the object schema at this path, where the path can be followed."""
        library = Library.of(json.loads(self._text))
        place: Any = library.root
        for part in path:
            node = as_node(place)
            if part == "$ref" and node is not None and part in node:
                place = library.resolve(node[part], node)
                continue
            try:
                place = place[part]
            except (KeyError, IndexError, TypeError):
                return None
        node = as_node(place)
        properties = None if node is None else as_node(node.get("properties", {}))
        return None if properties is None else list(properties)

    def _tell_alternatives(self, error: ValidationError, branches: list[list[ValidationError]]) -> Iterator[Fault]:
        path = error.instance_path
        ranked = [(_unlikeliness(branch, path), branch) for branch in branches if branch]
        if not ranked:
            yield Fault(pointer_of(path), "fits none of the alternatives")
            return
        best, likely = min(ranked, key=lambda entry: entry[0])
        alike = [branch for rank, branch in ranked if best[0] or rank == best]
        together = _together(error, alike, discreet=self._is_discreet)
        if together:
            yield Fault(pointer_of(path), together)
            return
        for inner in likely:
            yield from self.tell(inner)


def _unlikeliness(branch: list[ValidationError], path: list[str | int]) -> tuple[int, int, int, int]:
    """How unlikely it is that this alternative was meant: wrong kind, wrong marks, how early it failed, how often."""
    here = [error for error in branch if error.instance_path == path]
    wrong_kind = any(_is_about(error, "Type", "Constant", "Enum", "FalseSchema", "Not") for error in here)
    depth = len(path)
    marks = [e for e in branch if len(e.instance_path) == depth + 1 and _is_about(e, "Constant", "Enum")]
    furthest = max(_depth(error) for error in branch)
    return (int(wrong_kind), len(marks) + sum(_is_about(e, "Required") for e in here), -furthest, len(branch))


def _depth(error: ValidationError) -> int:
    context: list[list[ValidationError]] = getattr(error.kind, "context", [])
    return max((_depth(inner) for branch in context for inner in branch), default=len(error.instance_path))


def _is_about(error: ValidationError, *names: str) -> bool:
    return type(error.kind).__name__ in names


def _together(error: ValidationError, branches: list[list[ValidationError]], *, discreet: bool) -> str:
    """One sentence for alternatives that all failed at the value itself, in the same simple way."""
    firsts = [_innermost(branch[0]) for branch in branches]
    if any(first.instance_path != error.instance_path for first in firsts):
        return ""
    kinds: list[Any] = [first.kind for first in firsts]
    names = {type(kind).__name__ for kind in kinds}
    if names == {"Required"} and len(kinds) > 1:
        return f"needs one of {', '.join(dict.fromkeys(quote(kind.property) for kind in kinds))}"
    if names == {"Type"}:
        types = dict.fromkeys(name for kind in kinds for name in kind.types)
        return f"expected {_either(list(types))}, got {_shown(error, discreet=discreet)}"
    if names <= {"Constant", "Enum"}:
        return _one_of([option for kind in kinds for option in _options(kind)], error, discreet=discreet)
    if names <= {"Constant", "Enum", "Type"} and not isinstance(error.instance, dict | list):
        options = [json.dumps(option) for kind in kinds for option in _options(kind)]
        types = dict.fromkeys(name for kind in kinds for name in getattr(kind, "types", ()))
        return f"expected {_either([*types, *options][:_MOST_NAMES])}, got {_shown(error, discreet=discreet)}"
    return ""


def _innermost(error: ValidationError) -> ValidationError:
    """The first error of an alternative that has only one itself."""
    context: list[list[ValidationError]] = getattr(error.kind, "context", [])
    return _innermost(context[0][0]) if len(context) == 1 and len(context[0]) == 1 else error


def _message(error: ValidationError, *, discreet: bool) -> str:
    kind: Any = error.kind
    name = type(kind).__name__
    if name == "Type":
        return f"expected {_either(kind.types)}, got {_shown(error, discreet=discreet)}"
    if name in {"Constant", "Enum"}:
        return _one_of(_options(kind), error, discreet=discreet)
    if name == "OneOfMultipleValid":
        return "fits more than one of the alternatives, and must fit exactly one"
    if name in {"BacktrackLimitExceeded", "RegexEngineFailure"}:
        return "could not be checked: its pattern takes too many steps"
    say = _SAY.get(f"{name[0].lower()}{name[1:]}")
    told = say(kind) if say is not None else f"does not keep '{kind.name}'"
    return f"{told}, got {_shown(error, discreet=discreet)}" if not isinstance(error.instance, dict | list) else told


def _options(kind: Any) -> list[Any]:  # noqa: ANN401 - any kind of error
    if type(kind).__name__ == "Constant":
        return [kind.expected_value]
    return list(getattr(kind, "options", ()))


def _one_of(options: list[Any], error: ValidationError, *, discreet: bool) -> str:
    shown = list(dict.fromkeys(_short(option) for option in options))
    rest = ", …" if len(shown) > _MOST_NAMES else ""
    start = "must be" if len(shown) == 1 else "must be one of"
    return f"{start} {', '.join(shown[:_MOST_NAMES])}{rest}, got {_shown(error, discreet=discreet)}"


def _either(names: list[str]) -> str:
    names = sorted(names, key=lambda name: name == "null")
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}" if names else "something else"


def _shown(error: ValidationError, *, discreet: bool) -> str:
    """The value as it may be quoted: its kind, and a short scalar unless it stands under a key that holds secrets."""
    value = error.instance
    word = word_for(value)
    if discreet or value is None or isinstance(value, dict | list):
        return word
    if any(isinstance(part, str) and looks_sensitive(part) for part in error.instance_path):
        return word
    return f"{word} {_short(value)}"


def _short(value: object) -> str:
    shown = quote(value) if isinstance(value, str) else json.dumps(value, default=str)
    return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
