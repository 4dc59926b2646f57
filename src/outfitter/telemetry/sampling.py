"""Which calls become spans: the samplers that ``OTEL_TRACES_SAMPLER`` names, as pure functions of a call.

A call in a caller's trace goes with it, if the sampler is based on parents. All others are chosen by a digest of their
id: call ids are unique, and not random in every bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outfitter.errors import Invalid
from outfitter.telemetry.ended import EndedCall
from outfitter.telemetry.spans import digest, ids_of

_PARENT_BASED = "parentbased_"
_DEFAULT = "parentbased_always_on"
_NOT_SAMPLED = frozenset("02468ace")
"""How flags end that do not say: sampled."""
_HALF = 1 << 64
"""Samplers everywhere look at the lower half of a trace id, so that all agree about one trace."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The share of calls that become spans, and whether a caller's decision comes first."""

    share: float = 1.0
    is_parent_based: bool = True

    def takes(self, call: EndedCall) -> bool:
        """Whether this call becomes a span."""
        ids = ids_of(call)
        if ids.parent_id is None:
            number = digest(call.call_id, 8)
        elif self.is_parent_based:
            return call.trace_flags[-1:] not in _NOT_SAMPLED
        else:
            number = ids.trace_id % _HALF
        return number < round(self.share * _HALF)


def read_sampling(environment: Mapping[str, str]) -> Sampling:
    """The sampler that the environment names; Invalid when there is none of that name."""
    name = environment.get("OTEL_TRACES_SAMPLER", "").strip().lower() or _DEFAULT
    share = {"always_on": 1.0, "always_off": 0.0, "traceidratio": None}.get(name.removeprefix(_PARENT_BASED), -1.0)
    if share == -1.0:
        raise Invalid(f"OTEL_TRACES_SAMPLER={name} is not known here", hint="for example parentbased_traceidratio")
    return Sampling(_share(environment) if share is None else share, name.startswith(_PARENT_BASED))


def _share(environment: Mapping[str, str]) -> float:
    given = environment.get("OTEL_TRACES_SAMPLER_ARG", "").strip() or "1"
    try:
        share = float(given)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise Invalid(f"OTEL_TRACES_SAMPLER_ARG is a number from 0 to 1, not '{given}'")
    return share
