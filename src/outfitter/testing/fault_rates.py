"""How often does a connection misbehave, and which request is struck? Decided by a seed, the same on every run. Pure.

    delay=50ms..200ms,drop=5%,lose=1%,error=10%,fail=5%,disconnect=1%,seed=7,method=tools/call

A decision depends on the seed, on what is asked and on how often it was asked before, and not on when: requests that
overtake each other change nothing. Opening requests are spared. ``cassettes/spoiling`` carries the decisions out.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from outfitter.basics import suggest
from outfitter.errors import Invalid
from outfitter.testing.cassettes.matching import canonical

SPARED = frozenset({"initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen"})
STRIKES = ("disconnect", "drop", "lose", "error", "fail")
"""In this order: the first that strikes is the only one."""
_UNITS = {"ms": 0.001, "s": 1.0}
_TIME = re.compile(r"(?P<amount>\d+(?:\.\d+)?)(?P<unit>ms|s)")
_HINT = "such as delay=200ms,drop=5%,error=10%,seed=7"


@dataclass(frozen=True, slots=True)
class FaultRates:
    """What goes wrong how often: shares of the requests from 0 to 1, and the shortest and longest delay in seconds."""

    delay: tuple[float, float] = (0.0, 0.0)
    drop: float = 0.0
    """The request never reaches the server, and nothing is answered."""
    lose: float = 0.0
    """The server does its work, and its answer is lost."""
    error: float = 0.0
    """A JSON-RPC error instead of asking the server."""
    fail: float = 0.0
    """A tool result that says it failed; other requests get an error."""
    disconnect: float = 0.0
    """The connection ends."""
    seed: int = 0
    method: str = ""
    """Only requests of this method; empty for all but those that open a connection."""

    def __post_init__(self) -> None:
        """Refuse what is no share and no span of time."""
        for name in STRIKES:
            if not 0 <= getattr(self, name) <= 1:
                raise Invalid(f"{name} must be a share from 0 to 1 (0% to 100%)", hint=_HINT)
        if sum(getattr(self, name) for name in STRIKES) > 1:
            raise Invalid(f"the shares of {', '.join(STRIKES)} are more than 100% together", hint=_HINT)
        if not 0 <= self.delay[0] <= self.delay[1]:
            raise Invalid("delay must be a time, or a span from a shorter to a longer one", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> FaultRates:
        """Read what is typed on a command line."""
        known = [item.name for item in fields(cls)]
        values: dict[str, Any] = {}
        for part in filter(None, text.split(",")):
            name, equals, value = part.strip().partition("=")
            if not equals or name not in known:
                raise Invalid(f"there is no fault {name!r}", hint=f"{suggest(name, known)}; {_HINT}")
            values[name] = _read(name, value)
        return cls(**values)

    def __str__(self) -> str:
        """As it is typed."""
        low, high = (f"{seconds * 1000:g}ms" for seconds in self.delay)
        delay = [] if self.delay == (0.0, 0.0) else [f"delay={low}" if low == high else f"delay={low}..{high}"]
        shares = [f"{name}={getattr(self, name) * 100:g}%" for name in STRIKES if getattr(self, name)]
        method = [f"method={self.method}"] if self.method else []
        return ",".join([*delay, *shares, f"seed={self.seed}", *method])


def _read(name: str, value: str) -> object:
    try:
        if name == "delay":
            first, dots, last = value.partition("..")
            return _seconds(first), _seconds(last if dots else first)
        if name == "seed":
            return int(value)
        if name == "method":
            return value
        return float(value[:-1]) / 100 if value.endswith("%") else float(value)
    except ValueError:
        raise Invalid(f"{name}={value} cannot be read", hint=_HINT) from None


def _seconds(text: str) -> float:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match["amount"]) * _UNITS[match["unit"]]


@dataclass(frozen=True, slots=True)
class Strike:
    """What happens to one request: how long it is held up, and the fault, if any."""

    number: int
    request: str
    seconds: float = 0.0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What a proxy did from its start to its end."""

    rates: str
    requests: int
    strikes: tuple[Strike, ...] = ()
    seen: Mapping[str, int] = field(default_factory=dict[str, int], repr=False)
    """How often each request was asked, by a digest of it: with it a proxy that is started again goes on."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many requests each fault struck."""
        return Counter(strike.fault for strike in self.strikes if strike.fault)

    @property
    def delayed(self) -> int:
        """How many requests were held up."""
        return sum(strike.seconds > 0 for strike in self.strikes)

    def in_words(self) -> str:
        """One line for a person."""
        counts = ", ".join(f"{name} {self.counts[name]}" for name in STRIKES if self.counts[name]) or "no fault"
        return f"{self.requests} requests, {self.delayed} delayed; {counts} ({self.rates})"

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps({**asdict(self), "counts": dict(self.counts)}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> FaultReport:
        """The report that ``to_json`` wrote."""
        told = json.loads(text)
        return cls(told["rates"], told["requests"], tuple(Strike(**strike) for strike in told["strikes"]), told["seen"])


class Dice:
    """Decides for one request after the other, and remembers what it decided."""

    def __init__(self, rates: FaultRates, before: FaultReport | None = None) -> None:
        """Begin, or go on where a proxy that ended left off."""
        self.rates = rates
        self._seen = Counter({} if before is None else before.seen)
        self._strikes = [] if before is None else list(before.strikes)
        self._requests = 0 if before is None else before.requests

    def throw(self, method: str, params: Mapping[str, Any]) -> Strike:
        """What happens to this request."""
        self._requests += 1
        if method in SPARED or self.rates.method not in {"", method}:
            return Strike(self._requests, method)
        written = json.dumps([method, canonical(params)], sort_keys=True)
        asked = hashlib.sha256(written.encode("utf-8", "backslashreplace")).hexdigest()
        self._seen[asked] += 1
        chance = random.Random(f"{self.rates.seed} {self._seen[asked]} {asked}")  # noqa: S311 - faults, not keys
        seconds, share = chance.uniform(*self.rates.delay), chance.random()
        named = str(params.get("uri" if method.startswith("resources/") else "name") or "")
        strike = Strike(self._requests, f"{method} {named}".strip(), seconds, self._fault(share))
        if strike.fault or strike.seconds:
            self._strikes.append(strike)
        return strike

    def _fault(self, share: float) -> str:
        for name in STRIKES:
            share -= getattr(self.rates, name)
            if share < 0:
                return name
        return ""

    def report(self) -> FaultReport:
        """What was decided so far."""
        return FaultReport(str(self.rates), self._requests, tuple(self._strikes), dict(self._seen))
