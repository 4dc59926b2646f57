"""What an answer of the API that is no good one tells whoever typed a command."""

from __future__ import annotations

from outfitter.errors import OutfitterError
from outfitter.formats import read_problem

_HINTS = {401: "set OUTFITTER_TOKEN, or OUTFITTER_TOKEN_FILE to a file with mode 600"}


def error_of(status: int, content: bytes) -> OutfitterError:
    """The error that an answer of this status and content tells."""
    error = read_problem(status, content)
    error.hint = _HINTS.get(status, error.hint)
    return error
