"""Which of many texts has these words? BM25 over words in memory, worked out when the index is built.

A text is a count of its words: whoever makes the counts decides what a word in a title is worth. A word of a query also
finds longer words that begin with it, for less. It knows nothing of what the texts are: decisions, or tools.
"""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

SHORTEST_STEM = 3
"""A word of a query that is shorter finds itself only."""
_MAX_LONGER = 50
_MANY = 1000
_MOST_FREQUENT = 100
_LONGER_COUNTS = 0.5
_K1, _B = 1.2, 0.75
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
WORD = re.compile(f"[{_WIDE}]|[^\\W_{_WIDE}]{{1,64}}")
"""Words of letters and digits; a character of a script without spaces is a word of its own."""
_ASCII_WORD = re.compile("[a-z0-9]{1,64}")


@dataclass(frozen=True, slots=True)
class _Postings:
    """Where a word stands: the numbers of the texts, and what it is worth in each; the best come first."""

    places: array[int]
    worths: array[float]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """The words of some texts, which are known by their number."""

    _postings: dict[str, _Postings] = field(repr=False)
    _vocabulary: list[str] = field(repr=False)
    _frequent: dict[str, dict[int, float]] = field(repr=False, default_factory=dict[str, dict[int, float]])
    """What the words that stand in very many texts are worth in each, once they were asked for."""

    @classmethod
    def of(cls, counts: Sequence[Counter[str]]) -> WordIndex:
        """The index of texts of which each has these words so often."""
        sizes = [sum(count.values()) for count in counts]
        mean = sum(sizes) / max(1, len(sizes)) or 1.0
        lengths = [_K1 * (1 - _B + _B * size / mean) for size in sizes]
        shares: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            length = lengths[number]
            for word, times in count.items():
                shares[word].append((-times / (times + length), number))
        postings = {word: _worths(found, len(counts)) for word, found in shares.items()}
        return cls(postings, sorted(postings))

    def with_all(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """The best texts that have every one of the words, each with its score; of equal ones the lower number."""
        if len(words) == 1:
            return self._first(self._matches(words[0]), limit)
        return best_of(_all_of([self._scores(word) for word in words]), limit)

    def with_some(self, words: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """The best texts that have any of the words."""
        return best_of(self.scores(words), limit)

    def scores(self, words: Sequence[str]) -> dict[int, float]:
        """What each text that has any of the words is worth, by its number."""
        total: dict[int, float] = {}
        for word in words:
            for number, worth in self._scores(word).items():
                total[number] = total.get(number, 0.0) + worth
        return total

    def _matches(self, word: str) -> list[tuple[_Postings, float]]:
        """The postings of the word itself, and of longer words that begin with it."""
        found = [(self._postings[word], 1.0)] if word in self._postings else []
        if len(word) < SHORTEST_STEM:
            return found
        at = bisect_left(self._vocabulary, word)
        near = islice(self._vocabulary, at, at + _MAX_LONGER + 1)
        longer = [other for other in near if other != word and other.startswith(word)]
        return found + [(self._postings[other], _LONGER_COUNTS) for other in longer]

    def _scores(self, word: str) -> Mapping[int, float]:
        """What a word is worth in each text that has it."""
        known = self._frequent.get(word)
        if known is None:
            known = _joined(self._matches(word))
            if len(known) >= _MANY and len(self._frequent) < _MOST_FREQUENT:
                self._frequent[word] = known
        return known

    @staticmethod
    def _first(match: list[tuple[_Postings, float]], limit: int) -> list[tuple[int, float]]:
        """The best of one word: only the first of each postings can be among them."""
        scores: dict[int, float] = {}
        for postings, share in match:
            for number, worth in zip(postings.places[:limit], postings.worths[:limit], strict=True):
                scores[number] = max(scores.get(number, 0.0), worth * share)
        return best_of(scores, limit)


def _worths(shares: list[tuple[float, int]], texts: int) -> _Postings:
    """What a word is worth where it stands: the rarer, and the larger its share there, the more."""
    rarity = math.log(1 + (texts - len(shares) + 0.5) / (len(shares) + 0.5)) * (_K1 + 1)
    shares.sort()
    return _Postings(array("l", [number for _, number in shares]), array("d", [-share * rarity for share, _ in shares]))


def _joined(match: list[tuple[_Postings, float]]) -> dict[int, float]:
    scores: dict[int, float] = {}
    for postings, share in match:
        if not scores and share == 1.0:
            scores = dict(zip(postings.places, postings.worths, strict=True))
            continue
        for number, worth in zip(postings.places, postings.worths, strict=True):
            if worth * share > scores.get(number, 0.0):
                scores[number] = worth * share
    return scores


def _all_of(scores: Sequence[Mapping[int, float]]) -> Mapping[int, float]:
    total, *others = sorted(scores, key=len)
    for other in others:
        total = {number: score + other[number] for number, score in total.items() if number in other}
    return total


def best_of(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The highest scores; of equal ones that with the lower number."""
    best = heapq.nlargest(limit, ((score, -number) for number, score in scores.items()))
    return [(-number, score) for score, number in best]


def words_of(text: str) -> list[str]:
    """The words of a text as they are compared, in order."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [folded(word) for word in WORD.findall(text)]


@lru_cache(maxsize=8192)
def folded(word: str) -> str:
    """The word without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part)) or word
