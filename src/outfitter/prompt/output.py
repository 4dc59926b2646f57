"""What the model is asked to answer with, and how its answer becomes a value.

``PromptTemplate[Output]`` asks for one object, ``PromptTemplate[list[Output]]`` for a list of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_origin

from outfitter.catalog import JsonValue
from outfitter.errors import InvalidArguments, PromptValidationError
from outfitter.schemas import Shape, shape_of

T_co = TypeVar("T_co", covariant=True)
_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\n(?P<inside>.*?)\n?```", re.DOTALL)
_WRAPPER = "items"
_MOST_FAULTS = 8


@dataclass(frozen=True, slots=True)
class StructuredOutput(Generic[T_co]):
    """The form of the answer: its dataclass, whether one or a list is asked for, and its JSON Schema."""

    type: Any
    container: Literal["object", "array"]
    shape: Shape = field(repr=False)
    where: str = field(default="", repr=False)

    @property
    def schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema of the answer."""
        return self.shape.schema

    def parse(self, answer: str | JsonValue) -> T_co:
        """The answer as a value; InvalidArguments says what does not fit."""
        opener = "{" if self.container == "object" else "["
        value = _read(answer, opener, self.where) if isinstance(answer, str) else answer
        if self.container == "array" and isinstance(value, dict) and value.keys() == {_WRAPPER}:
            value = value[_WRAPPER]
        faults = self.shape.faults(value)
        if faults:
            told = "; ".join(map(str, faults[:_MOST_FAULTS]))
            pairs = tuple((fault.path, fault.message) for fault in faults)
            raise InvalidArguments(f"the answer does not fit: {told}", faults=pairs, where=self.where)
        return cast("T_co", self.shape.load(value))

    def instructions(self) -> str:
        """The section that tells the model."""
        what = "one JSON object" if self.container == "object" else "one JSON array"
        schema = json.dumps(self.schema, indent=2, ensure_ascii=False)
        asked = f"Answer with {what} that fits this JSON Schema, and with nothing else:"
        return f"## Response Format\n\n{asked}\n\n```json\n{schema}\n```"


def output_of(declared: object, where: str) -> StructuredOutput[Any] | None:
    """The form for a template's type parameter; None when it asks for no form."""
    if declared in {Any, None, type(None)}:
        return None
    is_list = get_origin(declared) is list
    kind = get_args(declared)[0] if is_list else declared
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise PromptValidationError(f"{where}: the output must be a dataclass, or a list of one")
    return StructuredOutput(kind, "array" if is_list else "object", shape_of(declared), where)


def _read(text: str, opener: str, where: str) -> JsonValue:
    """The JSON in an answer: all of it, or in a fence, or after a greeting."""
    fenced = _FENCE.search(text)
    for whole in (text, fenced["inside"] if fenced else ""):
        try:
            return json.loads(whole, parse_constant=_refuse)
        except (ValueError, RecursionError):
            continue
    return _find(text, opener, where)


def _find(text: str, opener: str, where: str) -> JsonValue:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    start = text.find(opener)
    while start >= 0:
        try:
            return decoder.raw_decode(text, start)[0]
        except json.JSONDecodeError as error:
            # From where it went wrong: what lies inside a broken answer is not the answer.
            start = text.find(opener, max(start + 1, error.pos))
        except (ValueError, RecursionError):
            break
    raise InvalidArguments("the answer holds no JSON that could be read", where=where)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
