"""A problem of the API, turned back into the error it was: class, code, places, and what each kind carries.

What has no error of its own (a request that was turned away for its form) becomes the branch that its status tells.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from outfitter import errors
from outfitter.errors import (
    Conflict,
    Forbidden,
    InUse,
    Invalid,
    InvalidDocument,
    NeedsToken,
    NotFound,
    OutfitterError,
    Refused,
    Unavailable,
    VersionConflict,
)

_SERVER_FAULT = 500
_BRANCHES: Mapping[int, type[OutfitterError]] = {
    401: NeedsToken, 403: Forbidden, 404: NotFound, 405: NotFound, 409: Conflict, 412: Conflict, 421: NotFound,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    """An entry that a problem names."""

    kind: str
    id: str


def read_problem(status: int, content: bytes) -> OutfitterError:
    """The error that an answer of this status and content tells."""
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or "code" not in found:
        hint = "does --server name the registry's service?"
        return _branch(status)(f"the service answered with status {status}", hint=hint)
    return _read(cast("dict[str, Any]", found), status)


def _read(problem: Mapping[str, Any], status: int) -> OutfitterError:
    kind = _kinds().get(str(problem.get("code"))) or _branch(status)
    error = _make(kind, problem, status)
    error.trail = _trail(str(problem.get("pointer", "")))
    if not error.where and error.trail:
        error.locate("the document", None, str(problem["pointer"]))
    return error


def _make(kind: type[OutfitterError], problem: Mapping[str, Any], status: int) -> OutfitterError:
    message, where, hint = (str(problem.get(name, "")) for name in ("detail", "where", "hint"))
    if kind is Refused:
        return Refused(message, [_read(fault, status) for fault in problem.get("problems", ())], where=where)
    if kind is InUse:
        users = [Named(str(user["kind"]), str(user["id"])) for user in problem.get("users", ())]
        return InUse(message, users=users, where=where, hint=hint)
    if kind is VersionConflict:
        current = str(problem.get("current") or "").strip('"')
        return VersionConflict(message, current=int(current) if current.isdigit() else 0, where=where, hint=hint)
    if kind is InvalidDocument:
        error = InvalidDocument(message, source="", hint=hint)
        error.where = where
        return error
    return kind(message, where=where, hint=hint)


@cache
def _kinds() -> Mapping[str, type[OutfitterError]]:
    """Every kind of error by its code; one that carries what no problem tells is read as the branch it is on."""
    found: dict[str, type[OutfitterError]] = {}
    for name in errors.__all__:
        kind: type[OutfitterError] = getattr(errors, name)
        found[kind.code] = next(one for one in kind.__mro__ if one in _TOLD or "__init__" not in vars(one))
    return found


_TOLD = frozenset({OutfitterError, Refused, InUse, VersionConflict, InvalidDocument})


def _branch(status: int) -> type[OutfitterError]:
    if status >= _SERVER_FAULT:
        return Unavailable
    return _BRANCHES.get(status, Invalid)


def _trail(pointer: str) -> tuple[str | int, ...]:
    parts = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    return tuple(int(part) if part.isdigit() else part for part in parts)
