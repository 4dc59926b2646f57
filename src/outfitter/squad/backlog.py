"""Who else can be asked what is to be done? The port of a live source of issues ``squad`` and ``squad:{member}``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from outfitter.squad.team import BacklogItem, Told


class BacklogSource(Protocol):
    """Whoever keeps the team's issues. Raises an ``OutfitterError`` when it cannot be asked."""

    @property
    def name(self) -> str:
        """What it is called in the answer: ``github``, ``azure-devops``."""
        ...

    async def items(self, members: Sequence[str]) -> Told[tuple[BacklogItem, ...]]:
        """The open issues of the team; ``members`` are the ids that may stand after ``squad:``."""
        ...
