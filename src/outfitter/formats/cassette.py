"""What does a cassette say? One recorded stay at an MCP server: JSON Lines, a header first, then what was exchanged.

    {"outfitter_cassette": 1, "recorded": "2026-11-16T12:00:00Z", "server": "mcp-server-time", "era": "modern"}
    {"method": "tools/call", "params": {"name": "now", "arguments": {}}, "result": {"content": []}}
    {"notice": {"method": "notifications/tools/list_changed"}}

One line is one answered request, with what the server said meanwhile, or one notice that belongs to no request. A last
line that was cut off by a kill is left out and said. Text in, values out: no file is opened, nothing is masked here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from outfitter.errors import InvalidDocument

CASSETTE_VERSION = 1
ERAS = ("legacy", "modern")
_MARK = "outfitter_cassette"
Json: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True, slots=True)
class CassetteHeader:
    """When, from which server and in which protocol era something was recorded."""

    recorded: str
    server: str
    era: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer: a result, or an error. ``line`` says where it stands in its file."""

    method: str
    params: Json
    result: Json | None = None
    error: Json | None = None
    notices: tuple[Json, ...] = ()
    """What the server said before it answered."""
    questions: tuple[Json, ...] = ()
    """What it asked its client before it answered, in the handshake era. What the client said is not kept."""
    masked: tuple[str, ...] = ()
    """JSON pointers into the line: where a mask stands in the place of what was said."""
    line: int = field(default=0, compare=False)

    @property
    def target(self) -> str:
        """The tool, prompt or resource it names; empty when it names none."""
        name = self.params.get("uri" if self.method.startswith("resources/") else "name")
        return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class Announced:
    """A notice that belongs to no request, where it stood between them."""

    notice: Json
    line: int = field(default=0, compare=False)


CassetteEntry: TypeAlias = Exchange | Announced


@dataclass(frozen=True, slots=True)
class Cassette:
    """A whole recording."""

    header: CassetteHeader
    entries: tuple[CassetteEntry, ...] = ()
    is_cut: bool = False
    """Whether the last line was incomplete and is left out."""

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The answered requests in the order of their answers."""
        return tuple(entry for entry in self.entries if isinstance(entry, Exchange))


def write_cassette_line(entry: CassetteHeader | CassetteEntry) -> str:
    """The entry as one line, line break included."""
    return json.dumps(_plain(entry), ensure_ascii=False, separators=(",", ":")) + "\n"


def _plain(entry: CassetteHeader | CassetteEntry) -> Json:
    if isinstance(entry, CassetteHeader):
        return {_MARK: CASSETTE_VERSION, "recorded": entry.recorded, "server": entry.server, "era": entry.era}
    if isinstance(entry, Announced):
        return {"notice": entry.notice}
    answer = {"error": entry.error} if entry.error is not None else {"result": entry.result or {}}
    told = {"notices": entry.notices, "questions": entry.questions, "masked": entry.masked}
    kept = {key: list(value) for key, value in told.items() if value}
    return {"method": entry.method, "params": entry.params, **answer, **kept}


def read_cassette(text: str, source: str) -> Cassette:
    """The recording that this text holds; InvalidDocument names the first line that is not one of a cassette."""
    lines = text.split("\n")
    is_cut = bool(lines.pop())
    if not lines:
        raise InvalidDocument("this is no cassette: its first line is not complete", source=source, line=1)
    header = _read_header(_object(lines[0], source, 1), source)
    entries: list[CassetteEntry] = []
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            entries.append(_read_entry(_object(line, source, number), source, number))
    return Cassette(header, tuple(entries), is_cut)


def _object(line: str, source: str, number: int) -> Json:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        hint = "each line is one JSON object; record it again, or take the line out"
        raise InvalidDocument("this line of the cassette is not a JSON object", source=source, line=number, hint=hint)
    return cast("Json", value)


def _read_header(value: Json, source: str) -> CassetteHeader:
    if _MARK not in value:
        hint = "make one with 'outfitter record'"
        raise InvalidDocument("this is no cassette", source=source, line=1, path=f"/{_MARK}", hint=hint)
    if value[_MARK] != CASSETTE_VERSION:
        message = f"this cassette has a format that is not known here; known is {CASSETTE_VERSION}"
        raise InvalidDocument(message, source=source, line=1, path=f"/{_MARK}", hint="record it again")
    for key in ("recorded", "server"):
        _check(isinstance(value.get(key), str), "expected a text", source, 1, key)
    _check(value.get("era") in ERAS, f"expected one of {', '.join(ERAS)}", source, 1, "era")
    return CassetteHeader(value["recorded"], value["server"], value["era"])


def _read_entry(value: Json, source: str, line: int) -> CassetteEntry:
    if "notice" in value:
        _check(_is_notice(value["notice"]), "expected an object with a method", source, line, "notice")
        return Announced(value["notice"], line)
    _check(isinstance(value.get("method"), str), "expected the name of a method", source, line, "method")
    _check(isinstance(value.get("params", {}), dict), "expected an object", source, line, "params")
    key = "error" if "error" in value else "result"
    _check(isinstance(value.get(key), dict), "expected an object: what the server answered", source, line, key)
    for name in ("notices", "questions"):
        _check(all(_is_notice(item) for item in _items(value, name)), "expected messages", source, line, name)
    masked = _items(value, "masked")
    _check(all(isinstance(item, str) for item in masked), "expected JSON pointers", source, line, "masked")
    notices, questions = tuple(_items(value, "notices")), tuple(_items(value, "questions"))
    return Exchange(
        value["method"], value.get("params", {}), value.get("result"), value.get("error"),
        notices, questions, tuple(masked), line,
    )  # fmt: skip


def _items(value: Mapping[str, Any], key: str) -> list[Any]:
    items = value.get(key, [])
    return cast("list[Any]", items) if isinstance(items, list) else [None]


def _is_notice(value: object) -> bool:
    return isinstance(value, dict) and isinstance(cast("Json", value).get("method"), str)


def _check(holds: bool, message: str, source: str, line: int, key: str) -> None:
    if not holds:
        raise InvalidDocument(message, source=source, line=line, path=f"/{key}")
