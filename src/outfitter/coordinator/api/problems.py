"""What an error becomes over HTTP: problem+json (RFC 9457) with the stable code of the error.

One table says which code has which status. What is wrong with the request itself (its target, its form, its size) has
no error of its own and is ``Turned``. Nothing here decides what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus

import msgspec
from starlette.responses import Response

from outfitter.coordinator.api.models import Fault, Problem, UserShown
from outfitter.errors import InUse, NotFound, OutfitterError, Refused, Unavailable, VersionConflict
from outfitter.formats import lines_of, pointer

PROBLEM = "application/problem+json"
_INTERNAL = 500
_UNPROCESSABLE = 422

STATUSES: Mapping[str, int] = {
    # the author of the input
    "invalid": 422,
    "invalid_document": 422,
    "invalid_name": 422,
    "invalid_server": 422,
    "invalid_header": 422,
    "invalid_filter": 422,
    "invalid_run": 422,
    "invalid_schema": 422,
    "invalid_arguments": 422,
    "invalid_tool": 422,
    "invalid_prompt": 422,
    "missing_header": 422,
    "unresolved": 422,
    "refused": 422,
    "ssrf_blocked": 422,
    "precondition_required": 428,
    # the name is not known here
    "not_found": 404,
    "unknown_agent": 404,
    "unknown_capability": 404,
    "missing_ref": 404,
    "unknown_run": 404,
    "unknown_session": 404,
    "unknown_alias": 404,
    # two things cannot both hold
    "conflict": 409,
    "alias_conflict": 409,
    "too_many_events": 409,
    "already_exists": 409,
    "in_use": 409,
    "version_conflict": 412,
    # a rule says no; where a definition or a run breaks it, its author must mend that
    "needs_token": 401,
    "forbidden": 403,
    "call_denied": 403,
    "locked_header": 422,
    "internal_header": 422,
    "narrowed_header": 422,
    "destination_forbidden": 422,
    "command_forbidden": 422,
    "not_approved": 422,
    # something outside
    "unavailable": 503,
    "storage_unavailable": 503,
    "secret_unavailable": 503,
    "upstream_down": 503,
    "spawn_failed": 502,
    "upstream_lost": 502,
    "upstream_error": 502,
    "protocol_violation": 502,
    "needs_auth": 502,
    "upstream_timeout": 504,
    "mcp_error": 502,
    "mcp_connection": 502,
    "mcp_tool": 502,
    "mcp_schema": 502,
    "mcp_timeout": 504,
    "error": 500,
}
"""The HTTP status of every code; a test compares it with the tree of errors."""


class Turned(Exception):
    """A request that is turned away for its form: a status, a code, and what to do."""

    def __init__(
        self, status: int, code: str, detail: str, *, hint: str = "", headers: Sequence[tuple[str, str]] = ()
    ) -> None:
        """Say what is wrong with the request."""
        super().__init__(detail)
        self.problem = Problem(
            type=type_of(code), title=HTTPStatus(status).phrase, status=status, code=code, detail=detail, hint=hint
        )
        self.headers = dict(headers)

    def response(self) -> Response:
        """The answer."""
        return respond(self.problem, self.headers)


def type_of(code: str) -> str:
    """The URI that names a kind of problem."""
    return f"urn:outfitter:problem:{code}"


def respond(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """A problem as an answer."""
    return Response(msgspec.json.encode(problem), problem.status, headers, PROBLEM)


def problem_of(error: OutfitterError, body: bytes = b"") -> Problem:
    """The error as a problem; ``body`` is the request's text, in which the places of faults are looked up."""
    status = STATUSES.get(error.code, _INTERNAL)
    inner = error.problems if isinstance(error, Refused) else ()
    places = {one.trail for one in (error, *inner) if one.trail}
    lines = lines_of(body.decode("utf-8", "replace"), places) if places else {}
    return Problem(
        type=type_of(error.code),
        title=HTTPStatus(status).phrase,
        status=status,
        code=error.code,
        detail=error.message,
        hint=error.hint,
        # Where our own database or folder is, is nobody's business.
        where="" if isinstance(error, Unavailable) else error.where,
        pointer=pointer(error.trail),
        line=_line(error, lines),
        problems=[_fault(problem, lines) for problem in inner],
        users=[UserShown(user.kind, user.id) for user in error.users] if isinstance(error, InUse) else [],
        current=f'"{error.current}"' if isinstance(error, VersionConflict) and error.current else None,
    )


def of_content(problem: Problem, error: OutfitterError) -> Problem:
    """The same problem where a name stands in the body: the request was found, its content is wrong."""
    if isinstance(error, NotFound):
        return msgspec.structs.replace(problem, status=_UNPROCESSABLE, title=HTTPStatus(_UNPROCESSABLE).phrase)
    return problem


def _fault(error: OutfitterError, lines: Mapping[tuple[str | int, ...], int]) -> Fault:
    return Fault(
        code=error.code,
        detail=error.message,
        hint=error.hint,
        where=error.where,
        pointer=pointer(error.trail),
        line=_line(error, lines),
    )


def _line(error: OutfitterError, lines: Mapping[tuple[str | int, ...], int]) -> int | None:
    given = getattr(error, "line", None)
    return given if isinstance(given, int) else lines.get(error.trail)
