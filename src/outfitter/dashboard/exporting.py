"""Recorded calls as files: CSV for a spreadsheet, which must not take any of it for a formula, and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

COLUMNS = (
    "seq", "started_at", "agent", "server", "tool", "shown", "decision", "rule", "outcome", "code", "duration",
    "bytes_in", "bytes_out", "run_id", "token_id", "trace_id", "call_id", "digest", "arguments", "result",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Also as East Asian spreadsheets write them."""


def as_csv(calls: Iterable[Mapping[str, Any]]) -> str:
    """One line for each call. A text that a spreadsheet would carry out begins with an apostrophe."""
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for call in calls:
        writer.writerow([_cell(name, call[name]) for name in COLUMNS])
    return out.getvalue()


def as_json(calls: Iterable[Mapping[str, Any]]) -> str:
    """A list of all that is recorded of each."""
    return json.dumps(list(calls), indent=1, ensure_ascii=False) + "\n"


def _cell(name: str, value: Any) -> str:  # noqa: ANN401 - JSON
    if value is None:
        return ""
    if name == "started_at":
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="milliseconds")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) else text
