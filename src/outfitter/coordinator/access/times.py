"""Times as the database keeps them: texts in UTC that sort as texts."""

from __future__ import annotations

from datetime import UTC, datetime


def as_text(seconds: float) -> str:
    """A moment in seconds since 1970, as it is kept."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def as_seconds(text: str | None) -> float:
    """A kept moment in seconds since 1970; never, when there is none."""
    return float("inf") if text is None else datetime.fromisoformat(text).timestamp()
