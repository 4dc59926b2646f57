"""Under which name a model sees a tool, and which tool a shown name means.

Built once per tool list; nothing ever parses a name. A name that two tools would share, that is too long or that
has characters a model API refuses gets a hash tail, which depends on server and tool alone.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

MAX_SHOWN = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_TAIL = 8


@dataclass(frozen=True, slots=True)
class ToolKey:
    """One tool of one server, by the server's alias and the tool's own name."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True)
class NameMap:
    """Both directions between tools and the names a model sees."""

    shown: Mapping[ToolKey, str]
    keys: Mapping[str, ToolKey]


def build_name_map(tools: Iterable[tuple[ToolKey, str]]) -> NameMap:
    """The map for these tools, each given with its server's prefix."""
    plain = {key: f"{prefix}_{key.tool}" if prefix else key.tool for key, prefix in tools}
    shared = Counter(plain.values())
    keys = {name: key for key, name in plain.items() if _is_safe(name) and shared[name] == 1}
    for key in sorted(plain.keys() - keys.values(), key=lambda key: (key.server, key.tool)):
        keys[next(name for name in _tailed_names(key, plain[key]) if name not in keys)] = key
    names = {key: name for name, key in keys.items()}
    return NameMap({key: names[key] for key in plain}, keys)


def _is_safe(name: str) -> bool:
    return len(name) <= MAX_SHOWN and _UNSAFE.search(name) is None


def _tailed_names(key: ToolKey, name: str) -> Iterator[str]:
    """The name with a hash tail, and with others in case a server has taken that very name for a tool."""
    start = _UNSAFE.sub("_", name)[: MAX_SHOWN - _TAIL - 1]
    for number in count():
        seed = f"{key.server}\0{key.tool}" + f"\0{number}" * (number > 0)
        yield f"{start}_{hashlib.sha256(seed.encode('utf-8', 'surrogatepass')).hexdigest()[:_TAIL]}"
