"""The reducers people write most often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def append_all(values: tuple[T, ...], event: T) -> tuple[T, ...]:
    """Keep every event."""
    return (*values, event)


def replace_latest(values: tuple[T, ...], event: T) -> tuple[T, ...]:  # noqa: ARG001 - a reducer's signature
    """Keep the newest event only."""
    return (event,)


def upsert_by(key: Callable[[Any], object]) -> Callable[[tuple[T, ...], T], tuple[T, ...]]:
    """Keep the newest event of each key, in the order the keys came."""

    def upsert(values: tuple[T, ...], event: T) -> tuple[T, ...]:
        new = key(event)
        if all(key(value) != new for value in values):
            return (*values, event)
        return tuple(event if key(value) == new else value for value in values)

    return upsert
