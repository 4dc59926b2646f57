"""Score the reading of schemas against real tool definitions: ``python -m benchmarks.corpus DIR``.

A corpus is a folder of JSON files, one per server, each with ``tools`` as the server lists them, and of samples:
``samples.jsonl`` with arguments, ``samples-output.jsonl`` with results. An invalid sample breaks one rule, at the path
``at``; a fault counts when it names that place, its parent, or something below it. Exit code 1 below 100 %.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outfitter.errors import InvalidSchema
from outfitter.schemas import Shape, read_schema

_MOST_EXAMPLES = 10
_SAMPLES = (("samples.jsonl", "arguments", False), ("samples-output.jsonl", "structuredContent", True))


@dataclass(slots=True)
class Score:
    """How many of the cases of one kind came out right."""

    what: str
    right: int = 0
    total: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def count(self, is_right: bool, case: str) -> None:
        """Count one case."""
        self.total += 1
        self.right += is_right
        if not is_right:
            self.wrong.append(case)

    def __str__(self) -> str:
        """One row of the table."""
        share = 100 * self.right / self.total if self.total else 100.0
        return f"| {self.what} | {self.right} of {self.total} | {share:.2f} % |"


def main(folder: Path) -> int:
    """Score the corpus and print the table."""
    converted, typed = Score("schemas converted"), Score("types made")
    accepted, rejected = Score("valid samples accepted"), Score("invalid samples rejected with their path")
    lossless = Score("round trips without loss")
    shapes = _read_all(folder, converted, typed)
    for shape, value, sample in _samples(folder, shapes):
        case = f"{sample['server']}/{sample['tool']}: {sample['rule']} at {sample['at']!r}"
        faults = shape.faults(value)
        if sample["valid"]:
            accepted.count(not faults, f"{case}: {[str(fault) for fault in faults]}")
            lossless.count(_is_lossless(shape, value), case)
        else:
            paths = [fault.path for fault in faults]
            rejected.count(any(_is_near(path, sample["at"]) for path in paths), f"{case}: {paths}")
    print("| what | right | share |\n|---|---|---|")
    scores = (converted, typed, accepted, rejected, lossless)
    for score in scores:
        print(score)
    for case in (case for score in scores for case in score.wrong[:_MOST_EXAMPLES]):
        print(f"  wrong: {case}", file=sys.stderr)
    return 0 if all(score.right == score.total for score in scores) and shapes else 1


def _read_all(folder: Path, converted: Score, typed: Score) -> dict[tuple[str, str, bool], Shape]:
    shapes: dict[tuple[str, str, bool], Shape] = {}
    for server, tool, schema, is_result in schemas_in(folder):
        text = json.dumps(schema)
        try:
            shape = read_schema(schema, tool, is_result=is_result)
            is_typed = shape.type is not None and json.dumps(schema) == text and shape.schema == schema
        except InvalidSchema as error:
            converted.count(False, f"{server}/{tool}: {error}")
            continue
        converted.count(True, "")
        typed.count(is_typed, f"{server}/{tool}")
        shapes[server, tool, is_result] = shape
    return shapes


def schemas_in(folder: Path) -> Iterator[tuple[str, str, Any, bool]]:
    """Server, tool, schema, and whether it is of the result, for every tool of a corpus."""
    for file in sorted(folder.glob("*.json")):
        for tool in json.loads(file.read_text(encoding="utf-8"))["tools"]:
            yield file.stem, tool["name"], tool.get("inputSchema"), False
            if tool.get("outputSchema") is not None:
                yield file.stem, tool["name"], tool["outputSchema"], True


def _samples(folder: Path, shapes: dict[tuple[str, str, bool], Shape]) -> Iterator[tuple[Shape, Any, dict[str, Any]]]:
    for name, key, is_result in _SAMPLES:
        file = folder / name
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
            sample = json.loads(line)
            shape = shapes.get((sample["server"], sample["tool"], is_result))
            if shape is not None:
                yield shape, sample[key], sample


def _is_lossless(shape: Shape, value: Any) -> bool:  # noqa: ANN401 - any JSON
    loaded = shape.load(value)
    dumped = shape.dump(loaded)
    is_same = json.dumps(dumped, sort_keys=True) == json.dumps(value, sort_keys=True)
    return is_same and shape.load(dumped) == loaded


def _is_near(path: str, at: str) -> bool:
    """Whether a path is the place, its parent, or below it; both spellings of a pointer occur."""
    place = f"/{at.lstrip('/')}" if at.strip("/") else ""
    unescaped = path.replace("~1", "/").replace("~0", "~")
    return any(f"{own}/".startswith(f"{place}/") or own == place.rpartition("/")[0] for own in (path, unescaped))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
