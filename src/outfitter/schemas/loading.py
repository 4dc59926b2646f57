"""How a JSON value becomes an instance: one small loader per kind of schema, None where the value is taken as it is.

A loader is only given values that fit the schema. Where the Python type says less than the schema and a value does not
fit the type, the value stays as it is: nothing is lost and nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from outfitter.schemas.absent import ABSENT
from outfitter.schemas.keywords import as_node
from outfitter.schemas.naming import EXTRA
from outfitter.schemas.records import Record
from outfitter.schemas.soundness import word_for


class Loader(Protocol):
    """What turns a JSON value of one schema into Python."""

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON in, any instance out
        """The value as Python has it."""
        ...


def load_with(loader: Loader | None, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The value by its loader; a copy of it where there is none."""
    if loader is not None:
        return loader.load(value)
    if type(value) is list:
        return [load_with(None, member) for member in cast("list[Any]", value)]
    if type(value) is dict:
        return {key: load_with(None, entry) for key, entry in cast("dict[str, Any]", value).items()}
    return value


@dataclass(frozen=True, slots=True)
class ListLoader:
    """An array whose members have a type."""

    member: Loader

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """A list of instances."""
        if type(value) is not list:
            return load_with(None, value)
        return [self.member.load(member) for member in cast("list[Any]", value)]


@dataclass(frozen=True, slots=True)
class MapLoader:
    """An object of which only the values have a type."""

    entry: Loader

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """A dict of instances."""
        if not isinstance(value, dict):
            return load_with(None, value)
        return {key: self.entry.load(entry) for key, entry in cast("dict[str, Any]", value).items()}


@dataclass(slots=True)
class LinkLoader:
    """A schema that is still being read, because it contains itself."""

    target: Loader | None = None

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """What the schema gives, once it has been read."""
        return load_with(self.target, value)


@dataclass(slots=True)
class RecordLoader:
    """An object with named properties, and what tells it from others."""

    cls: type[Record]
    fields: tuple[tuple[str, str, Loader | None], ...] = ()
    """Name, key and loader of each."""
    entry: Loader | None = None
    """The loader of properties without a name of their own."""
    required: frozenset[str] = frozenset()
    tags: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    """The values that a property must have one of."""

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """An instance of the class."""
        if not isinstance(value, dict):
            return load_with(None, value)
        given = cast("dict[str, Any]", value)
        record = object.__new__(self.cls)
        state = vars(record)
        named = 0
        for name, key, loader in self.fields:
            if key in given:
                state[name] = load_with(loader, given[key])
                named += 1
            else:
                state[name] = ABSENT
        if named < len(given):
            known = {key for _, key, _ in self.fields}
            state[EXTRA] = {key: load_with(self.entry, entry) for key, entry in given.items() if key not in known}
        return record

    def misfit(self, value: dict[str, Any]) -> int | None:
        """How many properties have no name here; None when the value cannot be meant for this class."""
        if not self.required <= value.keys():
            return None
        if any(key in value and not _is_among(value[key], options) for key, options in self.tags.items()):
            return None
        return len(value.keys() - {key for _, key, _ in self.fields})


def _is_among(value: object, options: tuple[Any, ...]) -> bool:
    return any(value == option and isinstance(value, bool) == isinstance(option, bool) for option in options)


Judge: TypeAlias = Callable[[str], Callable[[Any], bool]]
"""Gives, for the place of a schema, what judges a value by it."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative: the kinds of value it takes (None for any), its loader, and where its schema stands."""

    kinds: frozenset[str] | None
    loader: Loader | None
    pointer: str | None

    def takes(self, kind: str) -> bool:
        """Whether a value of this kind may be meant for it."""
        return self.kinds is None or kind in self.kinds or (kind == "integer" and "number" in self.kinds)


@dataclass(frozen=True, slots=True)
class UnionLoader:
    """Alternatives; a value is loaded by the one that fits it."""

    branches: tuple[Branch, ...]
    judge: Judge
    judges: dict[str, Callable[[Any], bool]] = field(default_factory=dict[str, Callable[[Any], bool]])

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """What the fitting alternative gives."""
        kind = word_for(value)
        if kind in {"object", "array"}:
            fitting = [branch for branch in self.branches if branch.takes(kind)]
            return load_with(self._choose(fitting, value), value)
        return value

    def _choose(self, branches: list[Branch], value: Any) -> Loader | None:  # noqa: ANN401 - any JSON
        entries = as_node(value)
        if entries is not None:
            branches = _fitting(branches, entries)
        if len(branches) > 1 and any(branch.loader is not None for branch in branches):
            branches = [branch for branch in branches if self._fits(branch, value)]
        return branches[0].loader if branches else None

    def _fits(self, branch: Branch, value: object) -> bool:
        if branch.pointer is None:
            return True
        if branch.pointer not in self.judges:
            self.judges[branch.pointer] = self.judge(branch.pointer)
        return self.judges[branch.pointer](value)


def _fitting(branches: list[Branch], value: dict[str, Any]) -> list[Branch]:
    """The alternatives that can be meant, those that know more of the properties first."""
    ranked: list[tuple[int, Branch]] = []
    for branch in branches:
        loader = branch.loader.target if isinstance(branch.loader, LinkLoader) else branch.loader
        misfit = loader.misfit(value) if isinstance(loader, RecordLoader) else len(value)
        if misfit is not None:
            ranked.append((misfit, branch))
    return [branch for _, branch in sorted(ranked, key=lambda entry: entry[0])]
