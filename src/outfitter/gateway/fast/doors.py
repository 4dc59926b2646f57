"""What the headers of a request say, read once for all requests that have the same: where it goes, which era it speaks.

The gate judges them, as it does for every request. A door exists only for requests that the full lane would let as far
as their body.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.gateway import modern
from outfitter.gateway.front_legacy import SESSION, VERSIONS
from outfitter.gateway.gate import Arrival, Gate, Turned
from outfitter.gateway.streams import prefers_events
from outfitter.gateway.visitors import Principal
from outfitter.upstream import Era

Headers: TypeAlias = "Sequence[tuple[bytes, bytes]]"
_MOST_DOORS = 4096
_LONGEST_NAME = 512
_LONGEST = 8 * 1024
_ONCE = ("mcp-protocol-version", "mcp-method", SESSION, "authorization", "content-type", "accept", "host")
_UNUSUAL = frozenset({"expect", "upgrade", "transfer-encoding", "last-event-id", "traceparent"})


@dataclass(slots=True, eq=False)
class Door:
    """One way in. Whom its token stands for holds until the token ends or any token changes."""

    arrival: Arrival
    era: Era
    version: str
    visit_id: str = ""
    url: bytes = b""
    headers: Headers = ()
    """As they came, without the name of a tool and without the length."""
    _principal: Principal | None = None
    _generation: int = -1
    _until: float = float("-inf")

    def principal(self, gate: Gate, now: float) -> Principal | None:
        """Whom the token stands for; None when the full lane must turn it away. ``now`` is monotonic."""
        tokens = gate.tokens
        if now < self._until and (tokens is None or tokens.look(now) == self._generation):
            return self._principal
        self._generation = 0 if tokens is None else tokens.look(now)
        try:
            found = gate.recognise(self.arrival)
        except Turned:
            self._principal, self._until = None, float("-inf")
        else:
            self._principal, self._until = found, now + (found.ends - time.time())
        return self._principal


@dataclass(slots=True, eq=False)
class Doors:
    """The doors that were used lately."""

    gate: Gate
    _doors: dict[tuple[object, ...], Door | None] = field(default_factory=dict[tuple[object, ...], "Door | None"])

    def find(self, url: bytes, headers: Headers) -> tuple[Door, bytes | None] | None:
        """The door, and the header that names the tool; None when the full lane must look at it."""
        kept: list[tuple[bytes, bytes]] = []
        named: bytes | None = None
        for pair in headers:
            name = pair[0]
            if name == b"mcp-name":
                if named is not None or len(pair[1]) > _LONGEST_NAME:
                    return None
                named = pair[1]
            elif name != b"content-length":
                kept.append(pair)
        key = (url, *kept)
        door = self._doors.get(key)
        if door is None:
            if key in self._doors:
                return None
            door = self._open(key, url, headers)
            if door is None:
                return None
            door.url, door.headers = url, kept
        return door, named

    def _open(self, key: tuple[object, ...], url: bytes, headers: Headers) -> Door | None:
        if sum(len(name) + len(value) for name, value in headers) > _LONGEST:
            return None
        if len(self._doors) >= _MOST_DOORS:
            self._doors.clear()
        door = self._doors[key] = self._read(url, headers)
        return door

    def _read(self, url: bytes, headers: Headers) -> Door | None:
        decoded = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        names = [name for name, _ in decoded]
        if _UNUSUAL & set(names) or any(names.count(name) > 1 for name in _ONCE) or b"%" in url or b"?" in url:
            return None
        try:
            arrival = self.gate.arrive("POST", url.decode("ascii"), decoded)
        except (Turned, UnicodeDecodeError):
            return None
        kind = (arrival.header("content-type") or "").partition(";")[0].strip().lower()
        if prefers_events(arrival.header("accept")) or kind != "application/json":
            return None
        if not (arrival.accepts(kind) and arrival.accepts("text/event-stream")):
            return None
        return _door(arrival)


def _door(arrival: Arrival) -> Door | None:
    version, visit = arrival.header("mcp-protocol-version"), arrival.header(SESSION)
    if version in {None, *VERSIONS}:
        return None if visit is None else Door(arrival, Era.LEGACY, version or "", visit)
    if version not in modern.VERSIONS or arrival.header("mcp-method") != "tools/call":
        return None
    return Door(arrival, Era.MODERN, str(version))
