"""Which dataclass something reads, and the value of that dataclass for one rendering.

Parameters are found by their exact type: first what was given, then the section's own default, then the first default
of that type in the template, then the dataclass by itself when every field has a default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, get_args

from outfitter.errors import PromptValidationError

ParamTable = Mapping[type, object]


def declared_argument(instance: object) -> object:
    """The X of ``Kind[X](…)`` or of ``class Mine(Kind[X])``; Any when nothing was declared."""
    ways = [getattr(instance, "__orig_class__", None)]
    for kind in type(instance).__mro__:
        ways += kind.__dict__.get("__orig_bases__", ())
    for way in ways:
        for argument in get_args(way)[:1]:
            if not isinstance(argument, TypeVar):
                return argument
    return Any


def field_names(kind: type | None) -> frozenset[str]:
    """The fields of a parameter type."""
    return frozenset[str]() if kind is None else frozenset(field.name for field in fields(kind))


def by_type(params: Iterable[object]) -> dict[type, object]:
    """The parameters under their types; PromptValidationError when two have one type or one is no dataclass."""
    table: dict[type, object] = {}
    for value in params:
        kind = type(value)
        if not is_dataclass(value) or isinstance(value, type):
            given = value if isinstance(value, type) else kind
            message = f"parameters are instances of dataclasses, not {given.__name__}"
            raise PromptValidationError(message, hint="give Params(…)")
        if kind in table:
            raise PromptValidationError(f"two parameters of type {kind.__name__} were given", hint="give one of each")
        table[kind] = value
    return table


def made_of_defaults(kind: type) -> object | None:
    """The dataclass with every field at its default; None when one has none."""
    needed = [f for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]
    return None if needed else kind()
