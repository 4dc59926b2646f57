"""Which version a change is meant for: If-Match as HTTP writes it, compared with what stands there."""

from __future__ import annotations

import re

from outfitter.errors import PreconditionRequired, VersionConflict
from outfitter.storage import Entry

_TAGS = re.compile(r'\s*(W/)?"([^"]*)"\s*(?:,|$)')


def expected_version(entry: Entry, if_match: str | None) -> int:
    """The version that is changed; PreconditionRequired when none is named, VersionConflict when it is another."""
    where = f"{entry.kind}/{entry.id}"
    if if_match is None or not if_match.strip():
        hint = f"send If-Match with the ETag you have read, now {entry.etag}"
        raise PreconditionRequired("a change must name the version it changes", where=where, hint=hint)
    strong = [tag for weak, tag in _TAGS.findall(if_match) if not weak]
    if if_match.strip() != "*" and str(entry.version) not in strong:
        hint = "read it again and repeat the change"
        message = f"version {entry.version} stands there, and another was expected"
        raise VersionConflict(message, current=entry.version, where=where, hint=hint)
    return entry.version
