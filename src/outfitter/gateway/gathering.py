"""The numbers of several workers on one page. Every sample says whose it is.

They are not added up: a worker that starts again counts from zero, which Prometheus understands for one worker's
counter, while in a sum it would look like many calls at once.
"""

from __future__ import annotations

from collections.abc import Mapping

_HELP, _COMMENT = "# HELP ", "#"


def merge(texts: Mapping[int, str]) -> str:
    """One text of what the workers say, by their numbers: each family once, with the samples of all."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for number, text in sorted(texts.items()):
        about, samples = list[str](), list[str]()
        is_known = False
        for line in text.splitlines():
            if line.startswith(_HELP):
                name = line.split(" ", 3)[2]
                is_known = name in families
                about, samples = families.setdefault(name, ([], []))
            if not line.startswith(_COMMENT):
                samples.append(_labelled(line, number))
            elif not is_known:
                about.append(line)
    return "".join(f"{line}\n" for about, samples in families.values() for line in (*about, *samples))


def _labelled(sample: str, number: int) -> str:
    named, _, value = sample.rpartition(" ")
    if named.endswith("}"):
        return f'{named[:-1]},worker="{number}"}} {value}'
    return f'{named}{{worker="{number}"}} {value}'
