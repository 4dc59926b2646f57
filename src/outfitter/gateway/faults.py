"""What a client hears when its request cannot be answered: one JSON-RPC error, one HTTP status.

The one table of this door: every error of the tree has its place here.
"""

from __future__ import annotations

from typing import Any

from outfitter.errors import (
    Conflict,
    Forbidden,
    Invalid,
    McpError,
    NeedsAuth,
    NotFound,
    OutfitterError,
    ProtocolViolation,
    Unavailable,
    UpstreamDown,
    UpstreamError,
    UpstreamLost,
    UpstreamTimeout,
)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_FOUND_LEGACY = -32002
HEADER_MISMATCH = -32020
CAPABILITY_MISSING = -32021
VERSION_UNSUPPORTED = -32022
TIMED_OUT = -32001
UPSTREAM_UNAVAILABLE = -31999
"""Our own codes lie outside the range that belongs to the protocol."""
DENIED = -31998


class Rejected(OutfitterError):
    """A request of a client that is answered by an error of the protocol."""

    code = "rejected"

    def __init__(self, message: str, *, rpc_code: int, status: int = 200, data: object = None) -> None:
        """Keep what goes on the wire."""
        super().__init__(message)
        self.rpc_code = rpc_code
        self.status = status
        self.data = data


RPC_CODES: dict[type[OutfitterError], int] = {
    UpstreamTimeout: TIMED_OUT,
    UpstreamDown: UPSTREAM_UNAVAILABLE,
    UpstreamLost: UPSTREAM_UNAVAILABLE,
    NeedsAuth: UPSTREAM_UNAVAILABLE,
    ProtocolViolation: UPSTREAM_UNAVAILABLE,
    Unavailable: UPSTREAM_UNAVAILABLE,
    Invalid: INVALID_PARAMS,
    NotFound: INVALID_PARAMS,
    Forbidden: DENIED,
    Conflict: INTERNAL_ERROR,
    McpError: UPSTREAM_UNAVAILABLE,
    OutfitterError: INTERNAL_ERROR,
}


def rpc_error(error: OutfitterError) -> dict[str, Any]:
    """The error object of a response."""
    if isinstance(error, Rejected | UpstreamError):
        shown: dict[str, Any] = {"code": error.rpc_code, "message": error.message}
        return shown if error.data is None else {**shown, "data": error.data}
    code = next(RPC_CODES[kind] for kind in type(error).__mro__ if kind in RPC_CODES)
    data: dict[str, Any] = {"code": error.code}
    if isinstance(error, UpstreamDown):
        data["retryAfter"] = round(error.retry_after, 1)
    return {"code": code, "message": str(error), "data": data}
