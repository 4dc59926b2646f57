"""What is counted, as Prometheus reads it. Numbers only: no argument, no result, no name that a client made up."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Gauge = Callable[[], Mapping[tuple[str, ...], float]]
"""Values by labels, asked when somebody reads them."""


@dataclass(slots=True)
class _Histogram:
    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0


@dataclass(slots=True)
class Metrics:
    """The counters of one process."""

    calls: dict[tuple[str, str, str], int] = field(default_factory=dict[tuple[str, str, str], int])
    """By agent, server and outcome."""
    turned: dict[int, int] = field(default_factory=dict[int, int])
    """Requests that did not come in, by HTTP status."""
    gauges: dict[str, tuple[str, tuple[str, ...], Gauge]] = field(
        default_factory=dict[str, tuple[str, tuple[str, ...], Gauge]]
    )
    """Help, label names and source of everything that is looked up instead of counted."""
    counters: dict[str, tuple[str, tuple[str, ...], Gauge]] = field(
        default_factory=dict[str, tuple[str, tuple[str, ...], Gauge]]
    )
    """The same of what others count, and only grows."""
    _latency: dict[str, _Histogram] = field(default_factory=dict[str, _Histogram])

    def count(self, agent: str, server: str, outcome: str, duration: float) -> None:
        """Count one call."""
        key = (agent, server, outcome)
        self.calls[key] = self.calls.get(key, 0) + 1
        histogram = self._latency.get(server)
        if histogram is None:
            histogram = self._latency[server] = _Histogram()
        histogram.counts[bisect_left(BOUNDS, duration)] += 1
        histogram.total += duration

    def count_turned(self, status: int) -> None:
        """Count one request that was turned away at the gate."""
        self.turned[status] = self.turned.get(status, 0) + 1

    def text(self) -> str:
        """Everything in the text format of Prometheus."""
        lines = _family("outfitter_calls_total", "counter", "Tool calls by agent, server and outcome.")
        names = ("agent", "server", "outcome")
        lines += (_sample("outfitter_calls_total", names, labels, count) for labels, count in self.calls.items())
        lines += _family("outfitter_turned_total", "counter", "Requests turned away at the gate, by HTTP status.")
        lines += (_sample("outfitter_turned_total", ("status",), (str(s),), n) for s, n in self.turned.items())
        lines += self._latency_lines()
        for kind, families in (("counter", self.counters), ("gauge", self.gauges)):
            for name, (told, labels, source) in families.items():
                lines += _family(name, kind, told)
                lines += (_sample(name, labels, values, value) for values, value in source().items())
        return "\n".join(lines) + "\n"

    def _latency_lines(self) -> list[str]:
        name = "outfitter_call_seconds"
        lines = _family(name, "histogram", "Time from the request to the outcome, by server.")
        for server, histogram in self._latency.items():
            seen = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), histogram.counts, strict=True):
                seen += count
                lines.append(_sample(f"{name}_bucket", ("server", "le"), (server, bound), seen))
            lines.append(_sample(f"{name}_sum", ("server",), (server,), histogram.total))
            lines.append(_sample(f"{name}_count", ("server",), (server,), seen))
        return lines


def _family(name: str, kind: str, told: str) -> list[str]:
    return [f"# HELP {name} {told}", f"# TYPE {name} {kind}"]


def _sample(name: str, labels: Iterable[str], values: Iterable[str], value: float) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in zip(labels, values, strict=True))
    labelled = f"{name}{{{pairs}}}" if pairs else name
    return f"{labelled} {value:.9g}" if isinstance(value, float) else f"{labelled} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
