"""What an agent is shown of another agent's answer: escaped, and no longer than a model should read.

Pure. A result is whatever an executor reported: any JSON, any length, any characters. What a terminal would
obey is written out (``texts``); what is too long is cut, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from outfitter.runner.texts import clean_value, harmless

LONGEST_RESULT = 64 * 1024
"""Characters of one result, as an agent reads it."""
_LONGEST_ERROR = 2000
Json = dict[str, Any]


def shown_result(result: object, longest: int = LONGEST_RESULT) -> Json:
    """``result``, and when it is cut ``is_cut`` and how long it was."""
    cleaned = clean_value(result)
    text = cleaned if isinstance(cleaned, str) else msgspec.json.encode(cleaned).decode()
    if len(text) <= longest:
        return {"result": cleaned}
    return {"result": f"{text[:longest]}…", "is_cut": True, "length": len(text)}


def shown_error(error: object) -> Json:
    """``error`` with its code and message; nothing when there is none."""
    if error is None:
        return {}
    fields: Mapping[str, object] = (
        cast("Mapping[str, object]", error) if isinstance(error, dict) else {"message": error}
    )
    told = {name: harmless(str(fields[name]))[:_LONGEST_ERROR] for name in ("code", "message") if name in fields}
    return {"error": told}
