"""What the gateway does now: the numbers of ``outfitter status`` and the calls of ``outfitter tail``.

Read from the audit database and from the running gateway's own pages; nothing is asked of any server.
"""

from __future__ import annotations

import ssl
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from outfitter.app.news import read_news
from outfitter.app.settings import Settings
from outfitter.errors import StorageUnavailable
from outfitter.telemetry import UpstreamFigures, read_upstreams

_UNSEEN = UpstreamFigures()
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 3.0
_FINE = frozenset({"done", "tool_error"})
_REFUSED = frozenset({"denied", "unknown", "refused"})


@dataclass(frozen=True, slots=True)
class ServerNumbers:
    """One server in the time looked at; times are in milliseconds."""

    server: str
    states: dict[str, int]
    calls: int = 0
    errors: int = 0
    refused: int = 0
    per_second: float = 0.0
    p50: float | None = None
    p95: float | None = None
    uptime: float | None = None
    """The share of the time in which it was wanted, since the gateway began, that it could be used."""
    failures: int = 0
    """How often it went out of use since the gateway began."""
    down_since: float | None = None
    """Seconds since 1970; None when it is not out of use."""
    next_try: float | None = None
    """In how many seconds it is tried again; None when it does not rest."""


@dataclass(frozen=True, slots=True)
class GatewayStatus:
    """Whether a gateway runs here, what it says of itself, and each server's numbers."""

    url: str | None
    ready: str
    problem: str = ""
    servers: tuple[ServerNumbers, ...] = field(default=())
    records: str = ""
    """Why no calls could be counted."""


def read_status(settings: Settings, seconds: float) -> GatewayStatus:
    """The status over the last seconds."""
    news = read_news(settings)
    url, certificate = (None, None) if news is None else (news["url"], news["certificate"])
    ready = None if url is None else _fetch(f"{url}/ready", certificate)
    metrics = (_fetch(f"{url}/metrics", certificate) or "") if url is not None and ready is not None else ""
    upstreams = read_upstreams(metrics)
    problem = "" if news is None or ready is None else str(news.get("problem", ""))
    calls, records = _calls_since(settings, time.time() - seconds)
    numbers = tuple(_numbers(calls, seconds, upstreams))
    return GatewayStatus(url if ready is not None else None, ready or "not running", problem, numbers, records)


def _calls_since(settings: Settings, moment: float) -> tuple[list[tuple[str, str, float]], str]:
    """The calls since a moment, or none and the reason. Looking makes no database where there is none."""
    if settings.database is None and not (settings.state / "audit.sqlite").exists():
        return [], ""
    from outfitter.storage import open_audit

    audit = open_audit(settings.state, settings.database)
    try:
        return audit.since(moment), ""
    except StorageUnavailable as away:
        return [], str(away)
    finally:
        audit.close()


def _numbers(
    calls_since: list[tuple[str, str, float]], seconds: float, upstreams: Mapping[str, UpstreamFigures]
) -> Iterator[ServerNumbers]:
    found: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for server, outcome, duration in calls_since:
        found[server].append((outcome, duration))
    for server in sorted({*found, *upstreams}):
        calls, one = found.get(server, []), upstreams.get(server, _UNSEEN)
        took = sorted(duration * 1000 for outcome, duration in calls if outcome not in _REFUSED)
        yield ServerNumbers(
            server,
            dict(one.states),
            len(calls),
            sum(1 for outcome, _ in calls if outcome not in _FINE | _REFUSED),
            sum(1 for outcome, _ in calls if outcome in _REFUSED),
            len(calls) / seconds,
            _rank(took, 0.50),
            _rank(took, 0.95),
            one.uptime,
            one.failures,
            None if one.out_for is None else time.time() - one.out_for,
            one.next_try,
        )


def _rank(sorted_values: list[float], share: float) -> float | None:
    if not sorted_values:
        return None
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]


def _fetch(url: str, certificate: str | None) -> str | None:
    """The text of a page of our own; None when nobody answers. Over HTTPS the gateway's own certificate is trusted."""
    try:
        trusted = None if certificate is None else ssl.create_default_context(cafile=certificate)
        if trusted is not None:
            trusted.check_hostname = False  # it listens on an address, and its certificate names a host
        with urlopen(url, timeout=_PATIENCE_SECONDS, context=trusted) as answer:  # noqa: S310 - the gateway's own URL
            return answer.read().decode("utf-8", "replace")
    except URLError as error:
        told = getattr(error, "read", None)
        return None if told is None else told().decode("utf-8", "replace")
    except OSError:
        return None


def follow_calls(
    settings: Settings, wanted: dict[str, str], *, last: int, is_endless: bool
) -> Iterator[dict[str, Any]]:
    """The last calls, and then each new one as it is recorded."""
    from outfitter.storage import open_audit

    audit = open_audit(settings.state, settings.database)
    try:
        place = max(0, audit.last() - last)
        while True:
            for call in audit.calls(place, wanted=wanted):
                yield call
                place = int(call["seq"])
            if not is_endless:
                return
            time.sleep(_LOOK_SECONDS)
    finally:
        audit.close()
