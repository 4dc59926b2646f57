"""Every error of the tree has an exit code at this door."""

from __future__ import annotations

import inspect
from collections.abc import Callable

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


MADE: dict[type[errors.OutfitterError], Callable[[], errors.OutfitterError]] = {
    errors.InvalidDocument: lambda: errors.InvalidDocument("x", source="f"),
    errors.Refused: lambda: errors.Refused("x", []),
    errors.UpstreamError: lambda: errors.UpstreamError("x", rpc_code=-32601),
    errors.UpstreamDown: lambda: errors.UpstreamDown("x", retry_after=60),
    errors.InUse: lambda: errors.InUse("x", users=()),
    errors.VersionConflict: lambda: errors.VersionConflict("x", current=1),
    errors.McpTimeoutError: lambda: errors.McpTimeoutError("x", server_name="s", timeout=1),
    errors.McpToolError: lambda: errors.McpToolError("x", server_name="s", tool_name="t"),
    errors.McpSchemaError: lambda: errors.McpSchemaError("x", server_name="s", tool_name="t"),
}
"""Those that need more than a message."""


@pytest.mark.promise("CLI-EXIT-CODES")
@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_has_the_exit_code_of_its_branch(kind: type[errors.OutfitterError]) -> None:
    branch = next(base.__name__ for base in kind.__mro__ if base.__name__ in BRANCHES)
    made = next((MADE[base] for base in kind.__mro__ if base in MADE), lambda: kind("x"))
    assert exit_code(made()) == BRANCHES[branch]


def test_several_problems_of_one_branch_have_its_exit_code() -> None:
    assert exit_code(errors.Refused("x", [errors.UnknownAgent("a"), errors.UnknownAlias("b")])) == 4
    assert exit_code(errors.Refused("x", [errors.UnknownAgent("a"), errors.LockedHeader("b")])) == 3
