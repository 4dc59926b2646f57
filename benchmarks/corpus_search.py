"""Score tool search against real tool definitions: ``python -m benchmarks.corpus_search DIR``.

Two questions: how many tokens of definitions a model is spared, at 500 tools; and whether a tool is among the first
five found by its own title, or by the first sentence of its description. A tool whose text others have word for word is
right when one of them is found; how often it was the tool itself is told beside it. Exit code 1 below 90 % and 95 %.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from outfitter.calls import (
    META_TOOLS,
    ToolFinder,
    ToolJson,
    definition_tokens,
    description_of,
    estimate_tokens,
    found_text,
    title_of,
    total_tokens,
)

_MANY = 500
_FIRST = 5
_LEAST_SPARED, _LEAST_FOUND = 90.0, 95.0
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)")


def main(folder: Path) -> int:
    """Score the corpus and print the table."""
    tools = list(_tools_in(folder))
    random.Random(5).shuffle(tools)
    groups = [tools[at : at + _MANY] for at in range(0, len(tools) - _MANY + 1, _MANY)] or [tools]
    print("| what | measured |\n|---|---|")
    spared = _tell_spared(groups)
    shares = [share for name, texts in (("title", title_of), ("first sentence", first_sentence))
              for share in (_tell_found(f"{name}, all {len(tools)} tools", [tools], texts),
                            _tell_found(f"{name}, {len(groups)} times {_MANY} tools", groups, texts))]  # fmt: skip
    return 0 if tools and spared >= _LEAST_SPARED and min(shares) >= _LEAST_FOUND else 1


def _tools_in(folder: Path) -> Iterator[ToolJson]:
    for file in sorted(folder.glob("*.json")):
        yield from json.loads(file.read_text(encoding="utf-8"))["tools"]


def first_sentence(tool: ToolJson) -> str:
    """The first sentence of a description; its first line when that has none."""
    line = next((line.strip() for line in description_of(tool).splitlines() if line.strip()), "")
    found = _SENTENCE.match(line)
    return found[1] if found else line


def _tell_spared(groups: Sequence[Sequence[ToolJson]]) -> float:
    """Print what is spared; the least share of any group."""
    three, shares, used = total_tokens(META_TOOLS), list[float](), list[float]()
    for group in groups:
        total, finder = total_tokens(group), ToolFinder.of(group)
        # One tool found and described, as a model would before its first call.
        one = group[0]
        looked = found_text(finder, {"query": title_of(one) or first_sentence(one)}) or ""
        shares.append(100 * (1 - three / total))
        used.append(100 * (1 - (three + estimate_tokens(looked) + definition_tokens(one)) / total))
    sizes = [total_tokens(group) for group in groups]
    print(f"| tokens of the definitions of {_MANY} tools | {min(sizes)} to {max(sizes)}; of the three tools {three} |")
    print(f"| fewer tokens of definitions | {min(shares):.2f} to {max(shares):.2f} % |")
    print(f"| the same after one search and one description | {min(used):.2f} to {max(used):.2f} % |")
    return min(shares)


def _tell_found(what: str, groups: Sequence[Sequence[ToolJson]], text_of: Callable[[ToolJson], str]) -> float:
    """Print how often a tool is found by a text of its own; the share with equal texts counted."""
    asked = itself = equal = 0
    for group in groups:
        finder = ToolFinder.of(group)
        for tool in group:
            text = text_of(tool).strip()
            if not text:
                continue
            found = finder.find(text, _FIRST)
            is_itself = any(one is tool for one in found)
            asked += 1
            itself += is_itself
            equal += is_itself or any(text_of(one).strip() == text for one in found)
    share = 100 * equal / max(1, asked)
    own = 100 * itself / max(1, asked)
    print(f"| found among the first {_FIRST} by its {what} | {equal} of {asked}: {share:.2f} % (itself {own:.2f} %) |")
    return share


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
