"""What ``import outfitter`` costs a fresh interpreter, against ``import dataclasses, json, re``."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Ratio

_ROUNDS = 15
_ALLOWANCE = 0.060
_LIMITS = {"import outfitter": 1.0, "import outfitter, every name used": 2.0}


def _cpu_of(statement: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def measure() -> Iterator[Ratio]:
    """Import alone, and import with every name of the front door used; the bare interpreter is taken off both."""
    statements = {
        "nothing": "pass",
        "yardstick": "import dataclasses, json, re",
        "import outfitter": "import outfitter",
        "import outfitter, every name used": "import outfitter; [getattr(outfitter, n) for n in outfitter.__all__]",
    }
    best = dict.fromkeys(statements, float("inf"))
    for _ in range(_ROUNDS):
        for name, statement in statements.items():
            best[name] = min(best[name], _cpu_of(statement))
    yardstick = 2 * max(best["yardstick"] - best["nothing"], 0.001) + _ALLOWANCE
    for name in list(statements)[2:]:
        cost = max(best[name] - best["nothing"], 0.0)
        yield Ratio(name, cost, yardstick, "2 × import dataclasses, json, re + 60 ms", _LIMITS[name])
