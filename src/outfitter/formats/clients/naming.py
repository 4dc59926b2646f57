"""Which name a foreign server gets here, and which variable stands for a value that has none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from outfitter.basics import check_server_name
from outfitter.errors import InvalidName

_MAX_NAME = 64
_ILLEGAL = re.compile(r"[^a-z0-9_-]+")
_GENERIC = frozenset({"mcp", "server", "mcp-server"})
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def legal_names(originals: Iterable[str]) -> dict[str, str]:
    """A legal name for each original, all different; a name that is legal already is kept."""
    names = {original: original for original in originals if is_legal(original)}
    taken = set(names)
    for original in originals:
        if original not in names:
            names[original] = _free(_made_legal(original), taken)
            taken.add(names[original])
    return names


def is_legal(name: str) -> bool:
    """Whether a server may have this name."""
    try:
        check_server_name(name)
    except InvalidName:
        return False
    return True


def _made_legal(original: str) -> str:
    """``My Server`` is my-server, ``io.github.user/weather`` is weather, ``com.acme/mcp`` is acme-mcp."""
    namespace, _, last = original.rpartition("/")
    if namespace and last.lower() in _GENERIC:
        last = f"{namespace.rpartition('.')[2]}-{last}"
    name = _ILLEGAL.sub("-", last.lower()).strip("-_")[:_MAX_NAME].rstrip("-_")
    if is_legal(name):
        return name
    return f"mcp-{name}" if name else "server"


def _free(name: str, taken: set[str]) -> str:
    count, free = 1, name
    while free in taken:
        count += 1
        tail = f"-{count}"
        free = name[: _MAX_NAME - len(tail)] + tail
    return free


def words_of(name: str) -> str:
    """The name as words joined by ``_``: ``exaApiKey`` and ``exa-api.key`` are exa_Api_Key and exa_api_key."""
    return _NOT_A_WORD.sub("_", _CAMEL.sub("_", name)).strip("_")


def variable_name(*words: str) -> str:
    """The words as the name of an environment variable, without saying the same thing twice at its start."""
    first, *rest = (words_of(word).upper() for word in words)
    joined = "_".join(word for word in rest if word)
    name = joined if joined == first or joined.startswith(f"{first}_") else "_".join(filter(None, (first, joined)))
    return f"_{name}" if not name or name[0].isdigit() else name


@dataclass(frozen=True, slots=True)
class Vault:
    """The variables that are spoken for, so that two values never share one by accident."""

    taken: set[str] = field(default_factory=set[str])
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def take(self, server: str, hint: str) -> str:
        """A variable that nobody uses yet, named after the server and what it holds."""
        name = variable_name(server, hint)
        count = self.counts.get(name, 1)
        free = name if count == 1 else f"{name}_{count}"
        while free in self.taken:
            count += 1
            free = f"{name}_{count}"
        self.counts[name] = count
        self.taken.add(free)
        return free
