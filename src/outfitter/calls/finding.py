"""Which tool is meant by these words? Tool definitions ranked by their words, in memory.

The words of a name are taken apart: ``createIssue`` and ``create_issue`` are two words. Name, title, description and
arguments are searched as one text, and name and title once more by themselves: a short name that has the words of a
query is worth more than a long text that has them too. Ranking itself is ``basics``. It never says which tools somebody
has: it searches what it is given.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from outfitter.basics import WordIndex, best_of, words_of
from outfitter.catalog import JsonValue

ToolJson = Mapping[str, JsonValue]
"""A tool as a list of tools says it."""
MAX_QUERY = 2000
"""How many characters of a query are looked at."""
MAX_WORDS = 48
_NAME_COUNTS = 3
_TITLE_COUNTS = 2
_NAMES_COUNT = 0.6
_LONGEST_TEXT = 20_000
_DEEPEST = 4
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_MANY = re.compile(r"(?<=\w\w[^s\W])s$")


@dataclass(frozen=True, slots=True)
class ToolFinder:
    """Some tools, by their words."""

    tools: Sequence[ToolJson] = field(repr=False)
    _texts: WordIndex = field(repr=False)
    _names: WordIndex = field(repr=False)

    @classmethod
    def of(cls, tools: Sequence[ToolJson]) -> ToolFinder:
        """The finder of these tools; of equal ones the earlier comes first."""
        names = [Counter(_stems(f"{tool.get('name', '')} {title_of(tool)}")) for tool in tools]
        return cls(tools, WordIndex.of([_counts(tool) for tool in tools]), WordIndex.of(names))

    def find(self, query: str, limit: int) -> list[ToolJson]:
        """The tools that fit the query best."""
        words = list(dict.fromkeys(_stems(query[:MAX_QUERY])))[:MAX_WORDS]
        scores = self._texts.scores(words)
        for number, worth in self._names.scores(words).items():
            scores[number] = scores.get(number, 0.0) + worth * _NAMES_COUNT
        return [self.tools[number] for number, _ in best_of(scores, limit)]


def title_of(tool: ToolJson) -> str:
    """What people call a tool; empty when it has no name but its own."""
    annotations = tool.get("annotations")
    inside = annotations.get("title") if isinstance(annotations, dict) else None
    given = tool.get("title") or inside
    return given if isinstance(given, str) else ""


def description_of(tool: ToolJson) -> str:
    """What a tool says of itself."""
    given = tool.get("description")
    return given if isinstance(given, str) else ""


def arguments_of(tool: ToolJson) -> Mapping[str, JsonValue]:
    """The arguments of a tool by name, as its schema says them."""
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _counts(tool: ToolJson) -> Counter[str]:
    counts: Counter[str] = Counter(_stems(description_of(tool)[:_LONGEST_TEXT]))
    for text in _schema_texts(arguments_of(tool), _DEEPEST):
        counts.update(_stems(text))
    for word in _stems(title_of(tool)):
        counts[word] += _TITLE_COUNTS
    for word in _stems(str(tool.get("name", ""))):
        counts[word] += _NAME_COUNTS
    return counts


def _schema_texts(properties: Mapping[str, JsonValue], deepest: int) -> Iterator[str]:
    """The names and descriptions of arguments, and of what is in them."""
    for name, schema in properties.items():
        yield name
        items = schema.get("items") if isinstance(schema, dict) else None
        for one in (schema, items):
            if isinstance(one, dict):
                said, inner = one.get("description"), one.get("properties")
                yield said[:_LONGEST_TEXT] if isinstance(said, str) else ""
                if isinstance(inner, dict) and deepest > 1:
                    yield from _schema_texts(inner, deepest - 1)


def _stems(text: str) -> list[str]:
    """The words of a text, those of names taken apart; ``issues`` is ``issue``."""
    return [_MANY.sub("", word) for word in words_of(_HUMP.sub(" ", text))]
