"""How a ratio is measured: subject and yardstick take turns, and the best of many rounds counts for each."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

_ROUND_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Ratio:
    """One line of the table: what was measured, against what, and the limit it must keep."""

    what: str
    subject: float
    yardstick: float
    against: str
    limit: float
    unit: str = "ms"
    """Milliseconds are given in seconds, anything else as it is."""

    @property
    def value(self) -> float:
        """How many times the yardstick the subject costs."""
        return self.subject / self.yardstick

    def text(self, value: float) -> str:
        """A measured value with its unit."""
        return f"{value * 1e3 if self.unit == 'ms' else value:.2f} {self.unit}"

    @property
    def is_kept(self) -> bool:
        """Whether the limit holds."""
        return self.value <= self.limit


def compare(subject: Callable[[], object], yardstick: Callable[[], object], *, rounds: int = 15) -> tuple[float, float]:
    """Seconds of CPU per call of each, the best of interleaved rounds."""
    repeats = [_repeats(subject), _repeats(yardstick)]
    best = [float("inf"), float("inf")]
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for index, call in enumerate((subject, yardstick)):
                best[index] = min(best[index], _time(call, repeats[index]))
    finally:
        gc.enable()
    return best[0], best[1]


def _repeats(call: Callable[[], object]) -> int:
    return max(1, round(_ROUND_SECONDS / max(_time(call, 1), 1e-7)))


def _time(call: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        call()
    return (time.process_time() - start) / repeats
