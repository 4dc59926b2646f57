"""What comes of connecting a server to see whether it answers. Who connects is the application; here nobody does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Probed:
    """How a server answered: its state, how it is spoken to, its tools as it tells them; or why it did not."""

    state: str
    era: str = ""
    version: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    milliseconds: float = 0.0
    error: str = ""


Probe: TypeAlias = Callable[[str], Awaitable[Probed]]
"""Connects the server of this id."""


async def nobody_probes(server: str) -> Probed:
    """The answer where no gateway stands beside the registry."""
    return Probed("configured", error=f"nobody here connects to server '{server}': ask where the gateway runs")
