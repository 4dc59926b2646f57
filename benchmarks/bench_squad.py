"""A team's folder with 10,000 decisions: a search against ``grep -i`` over the same files.

Times are of the processor, grep's as its process is charged for it; the best of many rounds counts for each. The index
is built before: it is built again when a decision changes.
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from benchmarks.measure import Ratio
from outfitter.squad import SquadFolder

_DECISIONS = 10_000
_LIMIT = 2.0
_ROUNDS = 25
_TOPICS = ("PostgreSQL", "SQLite", "caching", "tokens", "deployment", "streaming", "retries", "schemas", "logging")
_QUERIES = {
    "one word of many decisions": "postgresql",
    "two words": "sqlite streaming",
    "words of every decision": "slow nobody",
    "a rare word": "7421",
    "a word that is nowhere": "kerberos",
}


def _decision(number: int) -> str:
    one, two, three = (_TOPICS[(number * step) % len(_TOPICS)] for step in (1, 5, 7))
    return (
        f"### {2020 + number % 6}-{1 + number % 12:02}-{1 + number % 28:02}: Decision {number} about {one}\n\n"
        f"**By:** agent-{number % 20}\n**What:** Use {two} with {three} for part {number}.\n"
        f"**Why:** The {one} was slow, and nobody could say which of the {number % 97} ways was right.\n"
    )


def _one_file(root: Path) -> Path:
    squad = root / ".squad"
    squad.mkdir(parents=True)
    (squad / "decisions.md").write_text("# Decisions\n\n" + "\n".join(map(_decision, range(_DECISIONS))))
    return squad


def _many_files(root: Path) -> Path:
    inbox = root / ".squad" / "decisions" / "inbox"
    inbox.mkdir(parents=True)
    for number in range(_DECISIONS):
        (inbox / f"agent-{number}.md").write_text(_decision(number))
    return root / ".squad"


def _grep(squad: Path, query: str) -> float:
    """The seconds of processor that grep takes for the words of a query."""
    words = [part for word in query.split() for part in ("-e", word)]
    start = _charged()
    subprocess.run(["grep", "-r", "-i", *words, str(squad)], capture_output=True, check=False)  # noqa: S607 - the yardstick
    return _charged() - start


def _charged() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _search(team: SquadFolder, query: str) -> float:
    """The seconds of processor that our search takes, all threads together."""
    start = time.process_time()
    await team.search(query)
    return time.process_time() - start


async def _compare(squad: Path, query: str) -> tuple[float, float, int]:
    team = SquadFolder.at(squad)
    found = (await team.search(query)).value
    times = [(await _search(team, query), _grep(squad, query)) for _ in range(_ROUNDS)]
    return min(ours for ours, _ in times), min(theirs for _, theirs in times), len(found)


def measure() -> Iterator[Ratio]:
    """A search in one ledger with several kinds of queries, and in as many files."""
    with tempfile.TemporaryDirectory() as folder:
        ledger, inbox = _one_file(Path(folder) / "one"), _many_files(Path(folder) / "many")
        for kind, query in _QUERIES.items():
            subject, yardstick, found = anyio.run(_compare, ledger, query)
            assert found == (0 if query == "kerberos" else 1 if query.isdigit() else 10), (query, found)
            yield Ratio(f"search 10,000 decisions, one file: {kind}", subject, yardstick, "grep -i", _LIMIT)
        subject, yardstick, found = anyio.run(_compare, inbox, "sqlite streaming")
        assert found
        yield Ratio("search 10,000 decisions, a file each: two words", subject, yardstick, "grep -r -i", _LIMIT)
