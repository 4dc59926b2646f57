"""Which recorded answer belongs to a request? One to the same method and parameters, in the order of the recording.

``_meta``, ids and progress tokens do not count, and no arguments are as good as empty ones. Where the cassette has a
mask, any value fits. The last answer is given again when a request comes more often than it was recorded.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from outfitter.basics import MASK
from outfitter.formats import Cassette, CassetteEntry, Exchange

_NEAREST = 3
_OPENING = frozenset({"initialize", "server/discover"})
_SHOWN = 160
Json: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class Played:
    """A recorded answer, and whether it was given before for want of another."""

    exchange: Exchange
    is_repeated: bool = False


@dataclass(slots=True)
class Playback:
    """A cassette that is being played; it knows which of its answers were given."""

    cassette: Cassette
    _given: set[int] = field(default_factory=set[int])
    _added: list[Exchange] = field(default_factory=list[Exchange])

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Every answer there is."""
        return (*self.cassette.exchanges, *self._added)

    def find(self, method: str, params: Mapping[str, Any]) -> Played | None:
        """The answer that comes next for this request; None when it was never recorded."""
        asked = canonical(params)
        found = [
            (place, one)
            for place, one in enumerate(self.exchanges)
            if one.method == method and _fits(canonical(one.params), asked, _masks(one), "/params")
        ]
        for place, one in found:
            if place not in self._given:
                self._given.add(place)
                return Played(one)
        return Played(found[-1][1], is_repeated=True) if found else None

    def resume(self, lines: Iterable[int]) -> None:
        """Take the answers that stand in these lines of the file as given: they were, before this one was started."""
        given = set(lines)
        self._given |= {place for place, one in enumerate(self.exchanges) if one.line in given}

    def add(self, exchange: Exchange) -> None:
        """Take in an answer that was just heard; it counts as given."""
        self._given.add(len(self.exchanges))
        self._added.append(exchange)

    def after(self, exchange: Exchange) -> list[Json]:
        """The notices that stand behind an exchange, before the next one."""
        following: list[Json] = []
        is_behind = False
        for entry in self.cassette.entries:
            if is_behind:
                if isinstance(entry, Exchange):
                    break
                following.append(entry.notice)
            is_behind = is_behind or entry is exchange
        return following

    def unused(self) -> int:
        """How many answers nobody has asked for, those to opening requests left out."""
        places = {place for place, one in enumerate(self.exchanges) if one.method not in _OPENING}
        return len(places - self._given)

    def nearest(self, method: str, params: Mapping[str, Any]) -> list[str]:
        """What was recorded and is most like this request, each once, the likest first."""
        wanted = in_words(method, params)
        same = [one for one in self.exchanges if one.method == method]
        others = same or [one for one in self.exchanges if one.method not in _OPENING]
        texts = list(dict.fromkeys(in_words(one.method, one.params) for one in others))
        scored = sorted(texts, key=lambda text: -difflib.SequenceMatcher(None, wanted, text).ratio())
        return scored[:_NEAREST]


def canonical(params: Mapping[str, Any]) -> Json:
    """The parameters as they are compared."""
    kept = {key: value for key, value in params.items() if key != "_meta" and value is not None}
    if kept.get("arguments") == {}:
        del kept["arguments"]
    return kept


def in_words(method: str, params: Mapping[str, Any]) -> str:
    """A request on one line, cut when it is long."""
    told = canonical(params)
    name = str(told.pop("name", told.pop("uri", "")))
    rest = told.pop("arguments", None)
    given = {**told, **cast("Json", rest)} if isinstance(rest, dict) else told
    written = json.dumps(given, ensure_ascii=False, sort_keys=True) if given else ""
    text = " ".join(part for part in (method, name, written) if part)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def entry_in_words(entry: CassetteEntry) -> str:
    """A line of a cassette for a person."""
    return in_words(entry.method, entry.params) if isinstance(entry, Exchange) else str(entry.notice["method"])


def _masks(exchange: Exchange) -> frozenset[str]:
    return frozenset(place for place in exchange.masked if place.startswith("/params"))


def _fits(recorded: object, asked: object, masks: frozenset[str], place: str) -> bool:
    if place in masks:
        return _fits_mask(recorded, asked)
    if isinstance(recorded, dict) and isinstance(asked, dict):
        return _fits_members(cast("Json", recorded), cast("Json", asked), masks, place)
    if isinstance(recorded, list) and isinstance(asked, list):
        return _fits_items(cast("list[object]", recorded), cast("list[object]", asked), masks, place)
    return recorded == asked and isinstance(recorded, bool) == isinstance(asked, bool)


def _fits_members(recorded: Json, asked: Json, masks: frozenset[str], place: str) -> bool:
    if recorded.keys() != asked.keys():
        return False
    return all(
        _fits(value, asked[key], masks, f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
        for key, value in recorded.items()
    )


def _fits_items(recorded: Sequence[object], asked: Sequence[object], masks: frozenset[str], place: str) -> bool:
    if len(recorded) != len(asked):
        return False
    pairs = enumerate(zip(recorded, asked, strict=True))
    return all(_fits(one, other, masks, f"{place}/{index}") for index, (one, other) in pairs)


def _fits_mask(recorded: object, asked: object) -> bool:
    """Whether what is asked has anything where the masks stand, and the same between them."""
    if not isinstance(recorded, str) or recorded == MASK or not isinstance(asked, str):
        return asked is not None
    return re.fullmatch(".*".join(map(re.escape, recorded.split(MASK))), asked, re.DOTALL) is not None
