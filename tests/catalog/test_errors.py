"""The error tree: every class has a code of its own and stands in the drawing."""

from __future__ import annotations

import inspect
import re
from collections import Counter

import pytest

from outfitter import errors
from outfitter.errors import InvalidDocument, OutfitterError, Refused, UnknownAgent

CLASSES = [
    value
    for _, value in inspect.getmembers(errors, inspect.isclass)
    if issubclass(value, OutfitterError) and value.__module__.startswith(errors.__name__)
]


CODES = {
    "AliasConflict": "alias_conflict",
    "AlreadyExists": "already_exists",
    "VersionConflict": "version_conflict",
    "InUse": "in_use",
    "Conflict": "conflict",
    "NeedsToken": "needs_token",
    "NotApproved": "not_approved",
    "PreconditionRequired": "precondition_required",
    "SsrfBlocked": "ssrf_blocked",
    "UnknownRun": "unknown_run",
    "UnknownSession": "unknown_session",
    "TooManyEvents": "too_many_events",
    "Forbidden": "forbidden",
    "InternalHeader": "internal_header",
    "Invalid": "invalid",
    "InvalidDocument": "invalid_document",
    "InvalidFilter": "invalid_filter",
    "InvalidHeader": "invalid_header",
    "InvalidName": "invalid_name",
    "InvalidRun": "invalid_run",
    "InvalidServer": "invalid_server",
    "LockedHeader": "locked_header",
    "MissingHeader": "missing_header",
    "NarrowedHeader": "narrowed_header",
    "NotFound": "not_found",
    "OutfitterError": "error",
    "Refused": "refused",
    "SecretUnavailable": "secret_unavailable",
    "StorageUnavailable": "storage_unavailable",
    "CallDenied": "call_denied",
    "DestinationForbidden": "destination_forbidden",
    "CommandForbidden": "command_forbidden",
    "SpawnFailed": "spawn_failed",
    "UpstreamLost": "upstream_lost",
    "UpstreamTimeout": "upstream_timeout",
    "UpstreamError": "upstream_error",
    "ProtocolViolation": "protocol_violation",
    "NeedsAuth": "needs_auth",
    "UpstreamDown": "upstream_down",
    "Unavailable": "unavailable",
    "UnknownAgent": "unknown_agent",
    "UnknownAlias": "unknown_alias",
    "UnknownCapability": "unknown_capability",
    "UnknownServer": "missing_ref",
    "UnresolvedPlaceholder": "unresolved",
    "InvalidSchema": "invalid_schema",
    "InvalidArguments": "invalid_arguments",
    "InvalidTool": "invalid_tool",
    "PromptValidationError": "invalid_prompt",
    "McpError": "mcp_error",
    "McpConnectionError": "mcp_connection",
    "McpToolError": "mcp_tool",
    "McpTimeoutError": "mcp_timeout",
    "McpSchemaError": "mcp_schema",
}


def _drawn() -> dict[str, str]:
    """Each class of the drawing with the one it hangs from."""
    parents: list[tuple[int, str]] = []
    found: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        node = re.match(r"^(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)", line)
        if node is None or line.startswith("Every") or len(node["indent"]) < 4:
            continue
        depth = len(node["indent"])
        while parents and parents[-1][0] >= depth:
            parents.pop()
        found[node["name"]] = parents[-1][1] if parents else ""
        parents.append((depth, node["name"]))
    return found


@pytest.mark.promise("ERROR-CODES")
def test_every_class_is_drawn_where_it_stands() -> None:
    bases = {cls.__name__: "" if cls is OutfitterError else cls.__bases__[0].__name__ for cls in CLASSES}
    assert _drawn() == bases


@pytest.mark.promise("ERROR-CODES")
def test_every_class_has_a_code_of_its_own() -> None:
    assert [code for code, count in Counter(cls.code for cls in CLASSES).items() if count > 1] == []
    assert all("code" in vars(cls) and re.fullmatch(r"[a-z_]+", cls.code) for cls in CLASSES)


@pytest.mark.promise("ERROR-CODES")
def test_the_codes_are_stable() -> None:
    assert {cls.__name__: cls.code for cls in CLASSES} == CODES


@pytest.mark.promise("ERROR-CODES")
def test_an_error_says_where_what_and_what_to_do() -> None:
    error = InvalidDocument("wrong", source="a.json", line=3, path="/x", hint="mend it")
    assert str(error) == "a.json:3 at /x: wrong (mend it)"
    assert (error.source, error.line, error.path) == ("a.json", 3, "/x")
    refused = Refused("two things", [error, UnknownAgent("no agent 'x'")])
    assert str(refused).splitlines() == [
        "two things",
        "  - [invalid_document] a.json:3 at /x: wrong (mend it)",
        "  - [unknown_agent] no agent 'x'",
    ]
