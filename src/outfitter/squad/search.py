"""In which decisions do these words stand? A ranked index of words in memory, with snippets that show what matched.

A query is words and nothing else: quotes, wildcards and operators have no meaning, and what is too long is cut. Ranking
is BM25, worked out when the index is built, with a word in the title counting more. A word of a query also finds longer
words that begin with it, for less. It knows nothing of files.
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

from outfitter.squad.team import Decision, Found

MAX_QUERY = 2000
"""How many characters of a query are looked at."""
MAX_WORDS = 24
MAX_FOUND = 100
_MAX_LONGER = 50
_MANY = 1000
_MOST_FREQUENT = 100
_SHORTEST_STEM = 3
_TITLE_COUNTS = 3
_LONGER_COUNTS = 0.5
_K1, _B = 1.2, 0.75
_SNIPPETS = 3
_AROUND = 70
_MAX_SCANNED = 100_000
_WIDE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(f"[{_WIDE}]|[^\\W_{_WIDE}]{{1,64}}")
"""Words of letters and digits; a character of a script without spaces is a word of its own."""
_ASCII_WORD = re.compile("[a-z0-9]{1,64}")


@dataclass(frozen=True, slots=True)
class Postings:
    """Where a word stands: the numbers of the decisions, and what it is worth in each; the best come first."""

    places: array[int]
    worths: array[float]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and what is to be known about it."""

    found: tuple[Found, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """The words of some decisions."""

    decisions: Sequence[Decision] = field(repr=False)
    _postings: dict[str, Postings] = field(repr=False)
    _vocabulary: list[str] = field(repr=False)
    _frequent: dict[str, dict[int, float]] = field(repr=False, default_factory=dict[str, dict[int, float]])
    """What the words that stand in very many decisions are worth in each, once they were asked for."""

    @classmethod
    def of(cls, decisions: Sequence[Decision]) -> Index:
        """The index of these decisions."""
        counts = [_counts(decision) for decision in decisions]
        sizes = [sum(count.values()) for count in counts]
        mean = sum(sizes) / max(1, len(sizes)) or 1.0
        lengths = [_K1 * (1 - _B + _B * size / mean) for size in sizes]
        shares: defaultdict[str, list[tuple[float, int]]] = defaultdict(list)
        for number, count in enumerate(counts):
            length = lengths[number]
            for word, times in count.items():
                shares[word].append((-times / (times + length), number))
        postings = {word: _postings(found, len(decisions)) for word, found in shares.items()}
        return cls(decisions, postings, sorted(postings))

    def search(self, query: str, limit: int = 10) -> Answer:
        """The best decisions that have every word of the query; those that have some when none has all."""
        words, notes = words_of_query(query)
        limit = max(1, min(limit, MAX_FOUND))
        if not words:
            return Answer((), (*notes, "the query has no words to look for"))
        if len(words) == 1:
            best = self._first(self._matches(words[0]), limit)
        else:
            scores = [self._scores(word) for word in words]
            best = _best(_all_of(scores), limit)
            if not best:
                best = _best(_some_of(scores), limit)
                if best:
                    notes = (*notes, "no decision has all of the words; these have some of them")
        matcher = _Matcher(words)
        found = ((self.decisions[number], score) for number, score in best)
        return Answer(tuple(Found(of, round(score, 4), _snippets(of, matcher)) for of, score in found), notes)

    def _matches(self, word: str) -> list[tuple[Postings, float]]:
        """The postings of the word itself, and of longer words that begin with it."""
        found = [(self._postings[word], 1.0)] if word in self._postings else []
        if len(word) < _SHORTEST_STEM:
            return found
        at = bisect_left(self._vocabulary, word)
        near = islice(self._vocabulary, at, at + _MAX_LONGER + 1)
        longer = [other for other in near if other != word and other.startswith(word)]
        return found + [(self._postings[other], _LONGER_COUNTS) for other in longer]

    def _scores(self, word: str) -> Mapping[int, float]:
        """What a word is worth in each decision that has it."""
        known = self._frequent.get(word)
        if known is None:
            known = _joined(self._matches(word))
            if len(known) >= _MANY and len(self._frequent) < _MOST_FREQUENT:
                self._frequent[word] = known
        return known

    def _first(self, match: list[tuple[Postings, float]], limit: int) -> list[tuple[int, float]]:
        """The best of one word: only the first of each postings can be among them."""
        scores: dict[int, float] = {}
        for postings, share in match:
            for number, worth in zip(postings.places[:limit], postings.worths[:limit], strict=True):
                scores[number] = max(scores.get(number, 0.0), worth * share)
        return _best(scores, limit)


def _postings(shares: list[tuple[float, int]], decisions: int) -> Postings:
    """What a word is worth where it stands: the rarer, and the larger its share there, the more."""
    rarity = math.log(1 + (decisions - len(shares) + 0.5) / (len(shares) + 0.5)) * (_K1 + 1)
    shares.sort()
    return Postings(array("l", [number for _, number in shares]), array("d", [-share * rarity for share, _ in shares]))


def _joined(match: list[tuple[Postings, float]]) -> dict[int, float]:
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


def _some_of(scores: Sequence[Mapping[int, float]]) -> Mapping[int, float]:
    total: dict[int, float] = {}
    for score in scores:
        for number, worth in score.items():
            total[number] = total.get(number, 0.0) + worth
    return total


def _best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The highest scores; of equal ones the newer decision, which has the lower number."""
    best = heapq.nlargest(limit, ((score, -number) for number, score in scores.items()))
    return [(-number, score) for score, number in best]


def words_of_query(query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The different words of a query, and a note when it was cut."""
    found = _words(query[:MAX_QUERY])
    is_torn = query[MAX_QUERY - 1 : MAX_QUERY + 1].isalnum() and len(query) > MAX_QUERY and len(found) > 1
    words = tuple(dict.fromkeys(found[:-1] if is_torn else found))
    if len(query) > MAX_QUERY or len(words) > MAX_WORDS:
        return words[:MAX_WORDS], (f"the query was cut: {MAX_QUERY} characters and {MAX_WORDS} words are looked at",)
    return words, ()


def _counts(decision: Decision) -> Counter[str]:
    counts: Counter[str] = Counter(_words(decision.text[:_MAX_SCANNED]))
    for word in _words(f"{decision.title} {decision.author}"):
        counts[word] += _TITLE_COUNTS
    return counts


def _words(text: str) -> list[str]:
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    return [folded(word) for word in _WORD.findall(text)]


@lru_cache(maxsize=8192)
def folded(word: str) -> str:
    """The word without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part)) or word


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Which words of a text a query finds; each different word is looked at once."""

    words: Sequence[str]
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    def finds(self, text: str) -> bool:
        known = self._known.get(text)
        if known is None:
            word = folded(text)
            stems = (asked for asked in self.words if len(asked) >= _SHORTEST_STEM)
            known = self._known[text] = word in self.words or any(word.startswith(stem) for stem in stems)
        return known


def _snippets(decision: Decision, matcher: _Matcher) -> tuple[str, ...]:
    """Up to three places of a decision, with what matched between ** and **; of the title first."""
    found: list[str] = []
    for text in (decision.title, decision.text[:_MAX_SCANNED]):
        found.extend(_places(text.replace("**", ""), matcher, _SNIPPETS - len(found)))
    return tuple(found)


def _places(text: str, matcher: _Matcher, most: int) -> list[str]:
    """The first places of a text where a word matches; places that overlap are one."""
    places: list[tuple[int, int]] = []
    for mark in _WORD.finditer(text):
        if not matcher.finds(mark[0]) or (places and mark.start() < places[-1][1]):
            continue
        if len(places) >= most:
            break
        places.append((max(0, mark.start() - _AROUND), min(len(text), mark.end() + _AROUND)))
    return [_marked(text, start, end, matcher) for start, end in places]


def _marked(text: str, start: int, end: int, matcher: _Matcher) -> str:
    """The part of a text on one line; a word that begins or ends outside of it is left out."""
    while start and text[start - 1].isalnum() and text[start].isalnum():
        start += 1
    while end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end -= 1
    shown = _WORD.sub(lambda mark: f"**{mark[0]}**" if matcher.finds(mark[0]) else mark[0], text[start:end])
    return f"{'…' if start else ''}{' '.join(shown.split())}{'…' if end < len(text) else ''}"
