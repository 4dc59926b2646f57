"""The form of our own types: dataclasses, checked and turned into JSON by msgspec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from outfitter.catalog import JsonValue
from outfitter.errors import InvalidArguments
from outfitter.schemas.shape import Fault, Shape

_NO_ARGUMENTS: Mapping[str, JsonValue] = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class _TypeShape:
    """A shape read off a Python type."""

    type: Any

    @property
    def schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema of the type."""
        return cast("Mapping[str, JsonValue]", msgspec.json.schema(self.type))

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        """What msgspec finds first."""
        try:
            msgspec.convert(value, self.type)
        except msgspec.ValidationError as error:
            return (Fault("", str(error)),)
        return ()

    def load(self, value: JsonValue) -> Any:  # noqa: ANN401 - an instance of the type
        """The value as an instance."""
        try:
            return msgspec.convert(value, self.type)
        except msgspec.ValidationError as error:
            raise InvalidArguments(str(error)) from None

    def dump(self, value: object) -> JsonValue:
        """The instance as JSON."""
        return cast("JsonValue", msgspec.to_builtins(value))


def shape_of(kind: Any) -> Shape:  # noqa: ANN401 - any type
    """The shape of a Python type; None for a tool without arguments."""
    return _TypeShape(kind)
