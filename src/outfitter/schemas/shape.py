"""What a tool's arguments or results must look like, whoever wrote it down: a JSON Schema or a Python type.

Both kinds answer the same four questions, so a foreign tool and one of our own are checked, loaded and sent the same
way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from outfitter.catalog import JsonValue


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a value, and where: a JSON pointer such as ``/records/0/id``, empty for the whole."""

    path: str
    message: str

    def __str__(self) -> str:
        """Say where, then what."""
        return f"{self.path or '/'}: {self.message}"


class Shape(Protocol):
    """The form of a value between Python and JSON."""

    @property
    def schema(self) -> Mapping[str, JsonValue]:
        """The JSON Schema, exactly as it was given."""
        ...

    @property
    def type(self) -> Any:  # noqa: ANN401 - any Python type: a dataclass, None, a list of one
        """The Python type; made when it is first asked for."""
        ...

    def faults(self, value: JsonValue) -> tuple[Fault, ...]:
        """Everything that is wrong with a JSON value; empty when it fits."""
        ...

    def load(self, value: JsonValue) -> Any:  # noqa: ANN401 - an instance of ``type``
        """The JSON value as an instance of the type; InvalidArguments when it does not fit."""
        ...

    def dump(self, value: object) -> JsonValue:
        """The instance as JSON, with the original keys and without what is absent."""
        ...
