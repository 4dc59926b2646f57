"""The dataclasses that schemas become: frozen, with generic methods, made without generating any code.

``dataclasses`` writes and compiles source text for every class. Here the methods are written once, in ``Record``, and
``dataclasses`` only takes down the fields, when they are first asked for; so keys, titles and defaults of a foreign
schema are never near a compiler, and a class costs a fraction.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, cast

from outfitter.basics import MASK, looks_sensitive, quote
from outfitter.catalog import JsonValue
from outfitter.errors import InvalidArguments
from outfitter.schemas.absent import ABSENT
from outfitter.schemas.naming import EXTRA

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_TAKING = threading.RLock()
"""While fields are taken down a class is in between; other threads wait."""


class Column(NamedTuple):
    """One field: its name in Python, its key in JSON, its type, and whether it must be given."""

    name: str
    key: str
    annotation: Any
    is_required: bool


class RecordType(type):
    """The class of such classes: what ``dataclasses`` wants to know is taken down when somebody first asks for it."""

    @property
    def __dataclass_fields__(cls) -> dict[str, Any]:
        """The fields, as every dataclass has them."""
        if "__match_args__" not in cls.__dict__:
            raise AttributeError("the base of records has no fields")
        with _TAKING:
            if "__taken__" not in cls.__dict__:
                _take_down(cls)
        return cast("Any", cls).__taken__

    @__dataclass_fields__.setter
    def __dataclass_fields__(cls, fields: dict[str, Any]) -> None:
        cast("Any", cls).__taken__ = fields


class Record(metaclass=RecordType):
    """The base of every class made from a schema. Fields that were not given are ABSENT."""

    __record__: ClassVar[Mapping[str, str]] = _NOTHING
    """The key of each field, by its name."""
    __required__: ClassVar[frozenset[str]] = frozenset()
    extra_: Mapping[str, Any] = _NOTHING
    """Properties that the schema allows and does not name."""

    def __init__(self, /, *values: object, **named: object) -> None:
        """Take the fields by position or by name, required ones first."""
        cls = type(self)
        names = tuple(cls.__record__)
        given = dict(zip(names, values, strict=False))
        extra = named.pop(EXTRA, None)
        wrong = [name for name in named if name not in cls.__record__]
        if len(values) > len(names) or wrong or not given.keys().isdisjoint(named):
            told = f"no field {quote(wrong[0])}" if wrong else "a field given twice, or too many values"
            raise TypeError(f"{cls.__name__}: {told}; its fields are {', '.join(names) or 'none'}")
        given |= named
        missing = [name for name in names if name in cls.__required__ and name not in given]
        if missing:
            raise TypeError(f"{cls.__name__} needs {', '.join(missing)}")
        state = vars(self)
        state.update({name: given.get(name, ABSENT) for name in names})
        if extra:
            state[EXTRA] = dict(cast("Mapping[str, Any]", extra))

    @property
    def __dataclass_fields__(self) -> dict[str, Any]:
        """The fields of its class."""
        return type(self).__dataclass_fields__

    def __setattr__(self, name: str, value: object) -> None:
        """Never."""
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        """Never."""
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        """The same class, and the same values and extra properties."""
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        """The hash of the values; lists and dicts have none."""
        return hash((type(self), *(self.__dict__[name] for name in type(self).__record__)))

    def __repr__(self) -> str:
        """The class and what was given, without values that are usually secret."""
        keys = {**type(self).__record__, EXTRA: EXTRA}
        shown = [
            f"{name}={MASK if looks_sensitive(keys[name]) else repr(value)}"
            for name, value in self.__dict__.items()
            if value is not ABSENT
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True)
class _Frozen:
    """What a frozen dataclass says about itself."""


_PARAMETERS = cast("Any", _Frozen).__dataclass_params__


def open_record(name: str) -> type[Record]:
    """A class without fields yet, so that it can appear in the types of its own fields."""
    return RecordType(name, (Record,), {"__doc__": "Made from a JSON Schema.", "__module__": "outfitter.schemas"})


def close_record(
    cls: type[Record], columns: Iterable[Column], annotate: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> None:
    """Give the class its fields, required ones first; ``annotate`` may have types made only when asked for."""
    ordered = sorted(columns, key=lambda column: not column.is_required)
    made: Any = cls
    made.__annotations__ = annotate({column.name: column.annotation for column in ordered})
    made.__record__ = {column.name: column.key for column in ordered}
    made.__required__ = frozenset(column.name for column in ordered if column.is_required)
    made.__match_args__ = tuple(made.__record__)
    made.__dataclass_params__ = _PARAMETERS


def _take_down(cls: Any) -> None:  # noqa: ANN401 - a class made here
    """Let ``dataclasses`` take down the fields; methods it would generate exist already."""
    for name, key in cls.__record__.items():
        default: Any = dataclasses.MISSING if name in cls.__required__ else ABSENT
        setattr(cls, name, dataclasses.field(default=default, metadata={"key": key}))
    annotations = dict(cls.__annotations__)
    cls.__annotations__ = {**annotations, EXTRA: _EXTRA_TYPE}
    setattr(cls, EXTRA, dataclasses.field(default=None, kw_only=True))
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    delattr(cls, EXTRA)
    cls.__annotations__ = annotations
    cls.__dataclass_params__ = _PARAMETERS


# An init-only field: ``dataclasses.replace`` hands it on, ``fields`` and ``asdict`` do not show it.
_EXTRA_TYPE = dataclasses.InitVar[Mapping[str, Any]]


def to_json(value: object) -> JsonValue:
    """The value as JSON: records by their original keys, without what is absent."""
    if isinstance(value, Record):
        return _object_of(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value).items()
        return {key: to_json(entry) for key, entry in entries if entry is not ABSENT}
    if isinstance(value, list | tuple):
        return [to_json(member) for member in cast("list[object]", value)]
    if value is None or isinstance(value, str | int | float):
        return value
    raise InvalidArguments(f"a value of the Python type {type(value).__name__} cannot be written as JSON")


def _object_of(record: Record) -> JsonValue:
    cls = type(record)
    state = record.__dict__
    found = {key: to_json(state[name]) for name, key in cls.__record__.items() if state[name] is not ABSENT}
    for key, value in record.extra_.items():
        found[key] = to_json(value)
    return found
