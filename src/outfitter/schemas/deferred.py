"""What of a large type is not made before somebody asks for it: the types of fields that are more than a word.

Most arguments of most tools are never given, and most types are never looked at. Reading them then costs nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, ItemsView, Iterator, ValuesView
from typing import Any, NamedTuple, cast

from outfitter.schemas.loading import Loader, load_with

_READING = threading.RLock()
"""One document is read by one thread at a time: a schema that contains itself must become one class."""


class Reading(NamedTuple):
    """A Python type and the loader of its instances; None when values are taken as they are."""

    annotation: Any
    loader: Loader | None


class Deferred:
    """A reading that is made when it is first needed; it is its own loader."""

    __slots__ = ("_make", "_reading")

    def __init__(self, make: Callable[[], Reading]) -> None:
        """Keep how it is made."""
        self._make: Callable[[], Reading] | None = make
        self._reading: Reading | None = None

    def read(self) -> Reading:
        """The reading; what was needed to make it is let go."""
        with _READING:
            if self._reading is None and self._make is not None:
                self._reading, self._make = self._make(), None
            return cast("Reading", self._reading)

    def load(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """What the schema gives."""
        return load_with(self.read().loader, value)


class Annotations(dict[str, Any]):
    """The types of fields by name, as a class's ``__annotations__``; a deferred one is read when it is asked for."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - a type
        """The type of one field."""
        found = super().__getitem__(name)
        if isinstance(found, Deferred):
            found = self[name] = found.read().annotation
        return found

    def __iter__(self) -> Iterator[str]:
        """The names; defined so that copies ask for each type."""
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401 - a type
        """The type of one field, if there is one."""
        return self[name] if name in self else default  # noqa: SIM401 - this is that method

    def items(self) -> ItemsView[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Names and types."""
        return self._all().items()

    def values(self) -> ValuesView[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The types."""
        return self._all().values()

    def _all(self) -> dict[str, Any]:
        return {name: self[name] for name in self}
