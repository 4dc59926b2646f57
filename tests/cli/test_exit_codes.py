"""Every error of the tree has an exit code at this door."""

from __future__ import annotations

import inspect

import pytest

from outfitter import errors
from outfitter.cli import exit_code

BRANCHES = {
    "Invalid": 3,
    "NotFound": 4,
    "Conflict": 5,
    "Forbidden": 6,
    "Unavailable": 7,
    "McpError": 7,
    "OutfitterError": 1,
}
CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.OutfitterError)]


@pytest.mark.promise("CLI-EXIT-CODES")
@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_has_the_exit_code_of_its_branch(kind: type[errors.OutfitterError]) -> None:
    branch = next(base.__name__ for base in kind.__mro__ if base.__name__ in BRANCHES)
    if issubclass(kind, errors.InvalidDocument):
        error = errors.InvalidDocument("x", source="f")
    elif issubclass(kind, errors.Refused):
        error = errors.Refused("x", [])
    elif issubclass(kind, errors.UpstreamError):
        error = errors.UpstreamError("x", rpc_code=-32601)
    elif issubclass(kind, errors.UpstreamDown):
        error = errors.UpstreamDown("x", retry_after=60)
    elif issubclass(kind, errors.InUse):
        error = errors.InUse("x", users=())
    elif issubclass(kind, errors.VersionConflict):
        error = errors.VersionConflict("x", current=1)
    elif issubclass(kind, errors.McpTimeoutError):
        error = errors.McpTimeoutError("x", server_name="s", timeout=1)
    elif issubclass(kind, errors.McpToolError | errors.McpSchemaError):
        error = kind("x", server_name="s", tool_name="t")
    else:
        error = kind("x")
    assert exit_code(error) == BRANCHES[branch]


def test_several_problems_of_one_branch_have_its_exit_code() -> None:
    assert exit_code(errors.Refused("x", [errors.UnknownAgent("a"), errors.UnknownAlias("b")])) == 4
    assert exit_code(errors.Refused("x", [errors.UnknownAgent("a"), errors.LockedHeader("b")])) == 3
