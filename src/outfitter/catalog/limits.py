"""How long things may take, in seconds. Milliseconds exist only in foreign files and are converted at their door."""

from __future__ import annotations

import math
from dataclasses import dataclass

from outfitter.errors import InvalidServer

DEFAULT_CALL = 30.0
DEFAULT_CONNECT = 30.0
DEFAULT_TOTAL = 300.0
_LONGEST = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Three distinct limits: to connect, to wait for a sign of life in a call, and for a call in all."""

    connect: float = DEFAULT_CONNECT
    call: float = DEFAULT_CALL
    total: float = DEFAULT_TOTAL

    def __post_init__(self) -> None:
        """Refuse limits that would mean never or forever."""
        for name, value in (("connect", self.connect), ("call", self.call), ("total", self.total)):
            if not math.isfinite(value) or not 0 < value <= _LONGEST:
                raise InvalidServer(f"the {name} time limit must be more than 0 and at most {_LONGEST:.0f} seconds")
        if self.total < self.call:
            raise InvalidServer("the total time limit is shorter than the limit for one call")

    @classmethod
    def of(cls, call: float | None = None, connect: float | None = None, total: float | None = None) -> TimeLimits:
        """The limits with defaults filled in; a long call limit raises the default total with it."""
        call = DEFAULT_CALL if call is None else float(call)
        total = max(DEFAULT_TOTAL, call) if total is None else float(total)
        return cls(DEFAULT_CONNECT if connect is None else float(connect), call, total)
