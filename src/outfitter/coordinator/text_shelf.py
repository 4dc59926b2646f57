"""Many texts as one: a search is one pass over it, and a match tells which text it is in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

_BREAK = "\x1f"


@dataclass(frozen=True, slots=True)
class TextShelf:
    """The texts without regard to case, and where each begins."""

    text: str
    starts: tuple[int, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> TextShelf:
        """The shelf of these texts, in their order."""
        plain = [text.casefold().replace(_BREAK, " ") for text in texts]
        starts = accumulate((len(text) + len(_BREAK) for text in plain), initial=0)
        return cls(_BREAK.join(plain), tuple(starts)[:-1])

    def find(self, wanted: str, first: int = 0) -> Iterator[int]:
        """The places of the texts with this one in them, in order, from a place on."""
        wanted, place = wanted.casefold(), first
        while place < len(self.starts):
            at = self.text.find(wanted, self.starts[place])
            if at < 0:
                return
            place = bisect_right(self.starts, at) - 1
            yield place
            place += 1
