"""Texts that are too large for a model, kept in memory as long as a session needs them, and the tool that reads them.

The gateway keeps them in files (``storage``); what a model sees of them is the same (``calls``). Only the text for the
model is cut: the value and the answer of a call stay whole for the program.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from outfitter.bridge.results import block_text
from outfitter.calls import READER, READER_TOOL, SCHEME, ToolResult, find_large, find_parts, preview, read_part
from outfitter.errors import Invalid
from outfitter.tools import Tool

_MOST_BYTES = 64 * 1024 * 1024
_LEAST = 1024


@dataclass(frozen=True, slots=True)
class ReadKept:
    """What of a kept result is wanted."""

    handle: str
    offset: int = 0
    length: int | None = None
    find: str = ""


@dataclass(slots=True, eq=False)
class ResultShelf:
    """Keeps the texts of large results; give each session one of its own. The oldest go when there are too many.

    ``limit`` is how many bytes of a result a model gets at a time, ``reader`` the name of the tool that reads more.
    """

    limit: int = 65_536
    reader: str = READER
    most_bytes: int = _MOST_BYTES
    tool: Tool[ReadKept, None] = field(init=False, repr=False)
    """The tool that reads what was kept."""
    _texts: dict[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        """Refuse a limit that leaves no room for a preview."""
        if self.limit < _LEAST:
            raise Invalid(f"a limit of {self.limit} bytes is too small", hint=f"give at least {_LEAST}")
        self.tool = Tool[ReadKept, None](
            self.reader,
            str(READER_TOOL["description"]),
            self._handle,
            title=str(READER_TOOL["title"]),
            annotations=READER_TOOL["annotations"],
            reads_only=True,
        )

    def fresh(self) -> ResultShelf:
        """Another one like this, with nothing on it."""
        return ResultShelf(self.limit, self.reader, self.most_bytes)

    def keep(self, text: bytes) -> str:
        """Keep a text; the handle under which it is read."""
        handle = f"{SCHEME}{secrets.token_urlsafe(16)}"
        with self._lock:
            self._texts[handle] = text
            total = sum(map(len, self._texts.values()))
            while total > self.most_bytes and len(self._texts) > 1:
                total -= len(self._texts.pop(next(iter(self._texts))))
        return handle

    def shorten(self, answer: Mapping[str, Any], result: ToolResult[Any]) -> ToolResult[Any]:
        """The result, with a preview in the place of a text that is too large."""
        if len(result.message) <= self.limit // 4 or result.code == "schema_mismatch":
            return result
        large = find_large({"content": answer.get("content")}, self.limit, _nothing)
        if large is None:
            return result
        others = (block_text(cast("Mapping[str, Any]", block)) for block in large.others if isinstance(block, Mapping))
        told = (preview(large.text, self.keep(large.text), self.limit, self.reader), *others)
        return replace(result, message="\n".join(told))

    def read(self, handle: str, offset: int = 0, length: int | None = None, find: str = "") -> ToolResult[None]:
        """A part of a kept text, or where something stands in it."""
        text = self._texts.get(handle)
        if text is None:
            return ToolResult.error("there is no such result: it is too old, or of somebody else", code="not_found")
        most = min(self.limit, length or self.limit)
        return ToolResult(find_parts(text, find, offset, most) if find else read_part(text, offset, most))

    def _handle(self, params: ReadKept, *, context: object) -> ToolResult[None]:
        del context
        return self.read(params.handle, params.offset, params.length, params.find)


def _nothing(value: object) -> bytes:
    """There is no structured content to write."""
    raise TypeError(f"{type(value)} was not expected")
