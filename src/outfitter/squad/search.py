"""In which decisions do these words stand? The ranked index of ``basics``, with snippets that show what matched.

A query is words and nothing else: quotes, wildcards and operators have no meaning, and what is too long is cut. A word
in the title counts more. It knows nothing of files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from outfitter.basics import SHORTEST_STEM, WORD, WordIndex, folded, words_of
from outfitter.squad.team import Decision, Found

MAX_QUERY = 2000
"""How many characters of a query are looked at."""
MAX_WORDS = 24
MAX_FOUND = 100
_TITLE_COUNTS = 3
_SNIPPETS = 3
_AROUND = 70
_MAX_SCANNED = 100_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and what is to be known about it."""

    found: tuple[Found, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """The words of some decisions."""

    decisions: Sequence[Decision] = field(repr=False)
    _words: WordIndex = field(repr=False)

    @classmethod
    def of(cls, decisions: Sequence[Decision]) -> Index:
        """The index of these decisions."""
        return cls(decisions, WordIndex.of([_counts(decision) for decision in decisions]))

    def search(self, query: str, limit: int = 10) -> Answer:
        """The best decisions that have every word of the query; those that have some when none has all."""
        words, notes = words_of_query(query)
        limit = max(1, min(limit, MAX_FOUND))
        if not words:
            return Answer((), (*notes, "the query has no words to look for"))
        best = self._words.with_all(words, limit)
        if not best and len(words) > 1:
            best = self._words.with_some(words, limit)
            if best:
                notes = (*notes, "no decision has all of the words; these have some of them")
        matcher = _Matcher(words)
        found = ((self.decisions[number], score) for number, score in best)
        return Answer(tuple(Found(of, round(score, 4), _snippets(of, matcher)) for of, score in found), notes)


def words_of_query(query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The different words of a query, and a note when it was cut."""
    found = words_of(query[:MAX_QUERY])
    is_torn = query[MAX_QUERY - 1 : MAX_QUERY + 1].isalnum() and len(query) > MAX_QUERY and len(found) > 1
    words = tuple(dict.fromkeys(found[:-1] if is_torn else found))
    if len(query) > MAX_QUERY or len(words) > MAX_WORDS:
        return words[:MAX_WORDS], (f"the query was cut: {MAX_QUERY} characters and {MAX_WORDS} words are looked at",)
    return words, ()


def _counts(decision: Decision) -> Counter[str]:
    counts: Counter[str] = Counter(words_of(decision.text[:_MAX_SCANNED]))
    for word in words_of(f"{decision.title} {decision.author}"):
        counts[word] += _TITLE_COUNTS
    return counts


@dataclass(frozen=True, slots=True)
class _Matcher:
    """Which words of a text a query finds; each different word is looked at once."""

    words: Sequence[str]
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    def finds(self, text: str) -> bool:
        known = self._known.get(text)
        if known is None:
            word = folded(text)
            stems = (asked for asked in self.words if len(asked) >= SHORTEST_STEM)
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
    for mark in WORD.finditer(text):
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
    shown = WORD.sub(lambda mark: f"**{mark[0]}**" if matcher.finds(mark[0]) else mark[0], text[start:end])
    return f"{'…' if start else ''}{' '.join(shown.split())}{'…' if end < len(text) else ''}"
