"""What executes an agent's runs, as it is written in the agent's document."""

from __future__ import annotations

from typing import cast

from outfitter.catalog import EXECUTORS, Executor, ExecutorType, JsonValue
from outfitter.errors import InvalidDocument, OutfitterError
from outfitter.formats.servers import read_choice, write_settings
from outfitter.formats.shape import (
    Fields,
    read_env,
    read_flag,
    read_object,
    read_optional_text,
    read_seconds,
    read_texts,
    wrong,
)

_FIELDS = frozenset({"type", "model", "command", "args", "env", "timeout", "recover", "concurrency"})


def read_executor(fields: Fields, key: str = "executor") -> Executor | None:
    """The executor of an agent's document; None when it names none."""
    if fields.get(key) is None:
        return None
    try:
        inner = read_object(fields[key], _FIELDS)
        if "type" not in inner:
            raise InvalidDocument("'type' is missing", source="", hint=f"one of {', '.join(EXECUTORS)}")
        return Executor(
            type=cast("ExecutorType", read_choice(inner, "type", EXECUTORS)),
            model=read_optional_text(inner, "model"),
            command=read_optional_text(inner, "command"),
            args=read_texts(inner, "args") or (),
            env=read_env(inner),
            timeout=read_seconds(inner, "timeout"),
            recover=read_flag(inner, "recover"),
            concurrency=_read_count(inner, "concurrency"),
        )
    except OutfitterError as error:
        raise error.under(key) from None


def _read_count(fields: Fields, key: str) -> int | None:
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong("a whole number", value).under(key)
    return value


def write_executor(executor: Executor) -> dict[str, JsonValue]:
    """The executor as it is written: only what differs from a default."""
    written: dict[str, JsonValue] = {"type": executor.type}
    for name in ("model", "command", "timeout", "recover", "concurrency"):
        value = getattr(executor, name)
        if value is not None and value is not False:
            written[name] = value
    if executor.args:
        written["args"] = list(executor.args)
    if executor.env:
        written["env"] = write_settings(executor.env)
    return written
