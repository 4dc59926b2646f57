"""How values look on a page: the templates, and the few words that templates need.

Everything is escaped by default; nothing here marks a text as safe.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlsplit

from jinja2 import Environment, PackageLoader

from outfitter.policy import reveal_hidden

_STATES = {
    "ready": "good", "done": "good", "running": "live", "starting": "live", "stopping": "live", "pending": "quiet",
    "configured": "quiet", "stopped": "quiet", "degraded": "warn", "needs_auth": "warn", "denied": "warn",
    "refused": "warn", "cancelled": "quiet", "tool_error": "bad", "unknown": "warn", "not in use": "quiet",
    "waiting": "live", "approved": "good", "used": "good", "expired": "quiet",
    "pinned": "good", "rejected": "bad", "down": "bad", "failed": "bad", "lost": "bad", "timed_out": "bad",
    "unavailable": "bad",
}  # fmt: skip
_SPANS = ((60, 1, "s"), (3600, 60, "min"), (86400, 3600, "h"), (float("inf"), 86400, "d"))
_METHODS = frozenset(dir(dict))
_THOUSAND, _LONG = 1000.0, 100.0


class _Environment(Environment):
    """Looks into a JSON object first: it has no attributes but its methods, and asking for those is slow."""

    def getattr(self, obj: Any, attribute: str) -> Any:  # noqa: ANN401 - whatever a template names
        if type(obj) is dict and attribute in obj and attribute not in _METHODS:
            return obj[attribute]  # pyright: ignore[reportUnknownVariableType]
        return super().getattr(obj, attribute)


@cache
def templates() -> Environment:
    """The templates of all pages."""
    made = _Environment(
        loader=PackageLoader("outfitter.dashboard"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "ago": ago, "moment": moment, "milliseconds": milliseconds, "pretty": pretty, "tone": tone, "path": path_part,
        "web": web_link, "static": static, "clock": clock, "unhidden": reveal_hidden,
    }  # fmt: skip
    return made


@cache
def asset(name: str) -> bytes | None:
    """A file of ``static``; None when there is none of this name."""
    if name not in ("style.css", "outfitter.js", "live.js", "icon.svg", "selection.js"):
        return None
    return files("outfitter.dashboard").joinpath("static", name).read_bytes()


@cache
def asset_mark(name: str) -> str:
    """What changes when the content of a file does."""
    return hashlib.sha256(asset(name) or b"").hexdigest()[:12]


def static(name: str) -> str:
    """Where a file of ``static`` is, for a page."""
    return f"/ui/static/{name}?v={asset_mark(name)}"


def _read(text: str | float | None) -> datetime | None:
    if text is None or text == "":
        return None
    if isinstance(text, int | float):
        return datetime.fromtimestamp(text, UTC)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def ago(text: str | float | None, now: datetime | None = None) -> str:
    """How long ago a moment was."""
    found = _read(text)
    if found is None:
        return "–"
    seconds = max(0.0, ((now or datetime.now(UTC)) - found).total_seconds())
    for most, one, unit in _SPANS:
        if seconds < most:
            return f"{int(seconds // one)} {unit} ago"
    return "–"  # pragma: no cover - the last span has no end


def moment(text: str | float | None) -> str:
    """A moment to the second, in UTC."""
    found = _read(text)
    return "–" if found is None else found.strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(seconds: float) -> str:
    """The time of a day to the millisecond, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S.%f")[:-3]


def milliseconds(seconds: float | None) -> str:
    """A duration as people read it."""
    if seconds is None:
        return "–"
    value = seconds * _THOUSAND
    if value >= _THOUSAND:
        return f"{value / _THOUSAND:.2f} s"
    return f"{value:.0f} ms" if value >= _LONG else f"{value:.1f} ms"


def pretty(value: Any) -> str:  # noqa: ANN401 - JSON
    """A JSON value over several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False)


def tone(state: str) -> str:
    """Which colour a state has."""
    return _STATES.get(state, "quiet")


def path_part(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")


def web_link(text: str) -> str:
    """An address if it is one of the web, else nothing: other schemes may do more than show."""
    return text if urlsplit(text).scheme in {"http", "https"} else ""
