"""The lines of the journal as rows of an audit table: which columns there are, and what stands in them.

A row has a value for every column. Lines are read in small slices, so that no thread that shares the interpreter waits
long. A line that is no record is left out; how rows get into a table is ``sqlite_audit`` and ``postgres_audit``.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import islice
from typing import TypeAlias

import msgspec

_log = logging.getLogger(__name__)
_SLICE_BYTES = 64 * 1024
Row: TypeAlias = tuple[str | float | None, ...]


class _Line(msgspec.Struct, gc=False):
    """One line, in the order of the columns; what a line leaves out has its default."""

    call_id: str
    started_at: float = 0.0
    duration: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    agent: str = ""
    token_id: str = ""
    run_id: str = ""
    server: str = ""
    tool: str = ""
    shown: str = ""
    decision: str = ""
    rule: str = ""
    outcome: str = ""
    code: str = ""
    lane: str = ""
    digest: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_id: str = ""
    arguments: None = None
    result: None = None


class _Kept(_Line, gc=False):
    """One line of a call whose arguments or result are kept, with the JSON text of both; empty when they are not."""

    arguments: msgspec.Raw = msgspec.Raw()  # pyright: ignore[reportIncompatibleVariableOverride] - another reading
    result: msgspec.Raw = msgspec.Raw()  # pyright: ignore[reportIncompatibleVariableOverride]


COLUMNS = _Line.__struct_fields__
REALS, INTEGERS, KEPT = ("started_at", "duration"), ("bytes_in", "bytes_out"), ("arguments", "result")
TIMED = ("started_at", "duration", "outcome", "agent", "server")
"""What figures over many calls are made from."""
_decode = msgspec.json.Decoder(_Line)
_decode_kept = msgspec.json.Decoder(_Kept)
_as_row = msgspec.structs.astuple
_KEYS = tuple(f'"{name}"'.encode() for name in KEPT)


def place_of(last: int, *, newest_first: bool) -> tuple[str, str]:
    """How a page of rows goes on after the last one of the page before, in SQL; 0 was the last of no page."""
    if newest_first:
        return ("<" if last else ">", "DESC")
    return ">", "ASC"


def rows_of(lines: bytes) -> Iterator[Row]:
    """The row of every line that is a record, in order."""
    start = 0
    while start < len(lines):
        end = lines.rfind(b"\n", start, start + _SLICE_BYTES) + 1 or lines.find(b"\n", start) + 1 or len(lines)
        piece = lines[start:end]
        start = end
        try:
            yield from _rows_in(piece)
        except (msgspec.DecodeError, UnicodeDecodeError):
            yield from _readable(piece)


def _rows_in(piece: bytes) -> Iterator[Row]:
    if any(key in piece for key in _KEYS):
        return map(_with_kept, _decode_kept.decode_lines(piece))
    return map(_as_row, _decode.decode_lines(piece))


def batches(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Rows in lists of one size; what is left at the end comes in lists of half the size, a quarter, and so on."""
    while len(batch := list(islice(rows, size))) == size:
        yield batch
    while batch:
        size = 1 << (len(batch).bit_length() - 1)
        yield batch[:size]
        del batch[:size]


def _with_kept(line: _Kept) -> Row:
    *plain, arguments, result = _as_row(line)
    return (*plain, _text(arguments), _text(result))


def _text(kept: msgspec.Raw) -> str | None:
    text = bytes(kept).decode(errors="replace")
    return None if text in {"", "null"} else text


def _readable(piece: bytes) -> Iterator[Row]:
    """What can be read of lines of which at least one is not as it should be."""
    bad = 0
    for line in piece.split(b"\n"):
        if not line.strip(b"\0 "):
            continue
        try:
            yield _with_kept(_decode_kept.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            bad += 1
    if bad:
        _log.warning("%d lines of the journal are no records and are left out", bad)
