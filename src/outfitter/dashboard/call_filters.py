"""Which calls somebody wants to see: what stands in the filters of a page, as the API and as a command take it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from outfitter.errors import Invalid

OUTCOMES = ("done", "tool_error", "failed", "denied", "unknown", "refused", "unavailable", "cancelled")
DECISIONS = ("allow", "deny", "ask")
RANGES = {"15m": timedelta(minutes=15), "1h": timedelta(hours=1), "24h": timedelta(days=1), "7d": timedelta(days=7)}
NAMES = ("agent", "server", "tool", "decision", "outcome", "run", "range", "from", "to")
_PLAIN = ("agent", "server", "tool", "decision", "outcome", "run")
_OPTIONS = {"server": "server-alias"}
_LONG = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CallFilter:
    """The filters of a page, as they were filled in."""

    given: Mapping[str, str]
    now: datetime

    @classmethod
    def read(cls, query: Mapping[str, str], now: datetime | None = None) -> CallFilter:
        """What a query says; Invalid for a time that is none."""
        given = {name: query[name].strip() for name in NAMES if query.get(name, "").strip()}
        if given.get("range", "1h") not in RANGES:
            raise Invalid("this is no range of time", hint=f"one of {', '.join(RANGES)}")
        made = cls(given, now or datetime.now(UTC))
        made.for_api()
        return made

    def for_api(self) -> dict[str, str]:
        """The same as ``/calls`` takes it. A range counts back from now; a moment is in UTC."""
        asked = {name: self.given[name] for name in _PLAIN if name in self.given}
        since = self.now - RANGES[self.given["range"]] if "range" in self.given else self._moment("from")
        until = self._moment("to")
        asked |= {} if since is None else {"since": since.isoformat()}
        return asked | ({} if until is None else {"until": until.isoformat()})

    def for_figures(self) -> dict[str, str]:
        """The same for ``/call-figures``, which is about some time: the last hour unless another is asked for."""
        asked = self.for_api()
        if "since" not in asked:
            until = datetime.fromisoformat(asked["until"]) if "until" in asked else self.now
            asked["since"] = (until - _LONG).isoformat()
        return asked

    def _moment(self, name: str) -> datetime | None:
        text = self.given.get(name)
        if text is None:
            return None
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            raise Invalid(f"'{name}' is no moment", hint="such as 2030-01-31T12:00") from None
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    @property
    def query(self) -> str:
        """The same as the query of a page."""
        return urlencode(dict(self.given))

    @property
    def command(self) -> str:
        """What one would type."""
        words = ["outfitter", "audit", "calls"]
        for name in _PLAIN:
            if name in self.given:
                words += [f"--{_OPTIONS.get(name, name)}", self.given[name]]
        if "range" in self.given:
            words += ["--since", self.given["range"]]
        elif "from" in self.given:
            words += ["--since", f"{self.given['from']}Z"]
        if "to" in self.given:
            words += ["--until", f"{self.given['to']}Z"]
        return shlex.join(words)
