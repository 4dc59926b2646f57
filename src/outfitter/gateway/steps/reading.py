"""The gateway's own tool: reading more of a result that was kept aside. It is counted and recorded like any other.

It stands before the tools of servers: one of the same name cannot be called by an agent with a result limit.
"""

from __future__ import annotations

from dataclasses import dataclass

import anyio.to_thread

from outfitter.calls import READER, find_parts, read_part
from outfitter.gateway.asked import Asked, Next, told
from outfitter.gateway.kept import Shelf, ident_of, limit_of, owner_of
from outfitter.gateway.steps.spending import Spending
from outfitter.upstream import Message

_KNOWN = frozenset({"handle", "offset", "length", "find"})


@dataclass(frozen=True, slots=True)
class ReadingKept:
    """Answers calls of the tool that reads kept results."""

    shelf: Shelf
    spending: Spending

    async def __call__(self, asked: Asked, go_on: Next) -> Message:
        """What was asked for; any other call goes on."""
        limit = limit_of(asked.view.seat, self.shelf)
        if limit is None or asked.name != READER:
            return await go_on(asked)
        asked.own = READER
        return await self.spending(asked, self._read)

    async def _read(self, asked: Asked) -> Message:
        wanted = _wanted(asked.arguments)
        if isinstance(wanted, str):
            return told(f"'{asked.name}' was not called: {wanted}", code="invalid_arguments")
        limit = limit_of(asked.view.seat, self.shelf) or 0
        found = await anyio.to_thread.run_sync(self.shelf.read, owner_of(asked.view.seat), wanted.ident)
        if found is None:
            return told("there is no such result: it is too old, or of somebody else", code="not_found")
        length = min(wanted.length or limit, limit)
        if wanted.find:
            text = await anyio.to_thread.run_sync(find_parts, found[0], wanted.find, wanted.offset, length)
        else:
            text = read_part(found[0], wanted.offset, length)
        return {"content": [{"type": "text", "text": text}], "isError": False}


@dataclass(frozen=True, slots=True)
class _Wanted:
    ident: str
    offset: int
    length: int
    find: str


def _wanted(arguments: Message) -> _Wanted | str:
    """What is asked for; a text that says why it is nothing."""
    handle, find = arguments.get("handle"), arguments.get("find", "")
    offset, length = arguments.get("offset", 0), arguments.get("length", 0)
    unknown = [name for name in arguments if name not in _KNOWN]
    if unknown:
        return f"it has no argument '{unknown[0]}'"
    if not isinstance(handle, str) or not isinstance(find, str):
        return "'handle' and 'find' are texts"
    if not _is_count(offset) or not _is_count(length):
        return "'offset' and 'length' are numbers of bytes"
    return _Wanted(ident_of(handle), offset, length, find)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
