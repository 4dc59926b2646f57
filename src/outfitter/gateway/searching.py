"""How an agent that searches its tools finds them: three tools instead of its list, over exactly its own.

Nothing is started to search: what a server last said of itself is enough, and only one that was never seen is asked,
once. A tool that is described or called is looked up at its server first, by the same names, filters and pins as in a
list. ``naming`` makes a call of it; the words are ``calls.meta_tools``.
"""

from __future__ import annotations

from typing import Any, TypeVar

import anyio.to_thread

from outfitter.calls import META_TOOLS, ToolFinder, described_text, found_text, total_tokens
from outfitter.catalog import SearchMode
from outfitter.errors import OutfitterError
from outfitter.gateway.asked import Asked, told
from outfitter.gateway.lines import Line
from outfitter.gateway.views import Item, Listing, View
from outfitter.gateway.visitors import Visitor
from outfitter.upstream import Message

T = TypeVar("T")
META_LIST: list[Message] = [dict(tool) for tool in META_TOOLS]
_MOST_KEPT = 4


async def is_searched(view: View, visitor: Visitor) -> bool:
    """Whether this endpoint offers the three tools instead of its list."""
    search = view.seat.plan.agent.tool_search
    if search.mode is not SearchMode.AUTO:
        return search.mode is SearchMode.ALWAYS
    return await _weigh(view, visitor) > search.threshold


async def recall(view: View, visitor: Visitor) -> Listing:
    """The merged list of tools as each server last showed them; only one that never did is asked."""
    return _merged(view, visitor, await _lists(view, visitor))


async def look_up(view: View, visitor: Visitor, name: str) -> tuple[Listing, tuple[str, OutfitterError] | None]:
    """The list in which a tool is to be found, its own server asked for it; and the server that could not be asked."""
    listing = await recall(view, visitor)
    item = _named(listing, name)
    if item is None:
        return listing, None
    try:
        view.remember({item.alias: await item.line.items("tools/list", is_fresh=False)}, visitor)
    except OutfitterError as error:
        return listing, (item.alias, error)
    return await recall(view, visitor), None


async def search(asked: Asked) -> Message:
    """The tools of the agent that fit the query."""
    text = found_text(await _finder(asked.view, asked.visitor), asked.arguments)
    return _answer(text) if text is not None else invalid("the query must be a text")


def describe(item: Item) -> Message:
    """The whole definition of a tool."""
    return _answer(described_text(item.shown))


def invalid(why: str) -> Message:
    """What a model is told whose arguments for one of the three tools are wrong."""
    return told(why, code="invalid_arguments")


def _answer(text: str) -> Message:
    return {"content": [{"type": "text", "text": text}]}


def _named(listing: Listing, name: str) -> Item | None:
    return listing.items.get(name) or (listing.held[name][0] if name in listing.held else None)


async def _lists(view: View, visitor: Visitor) -> dict[str, Any]:
    """The tools of each server, or the error why they are not known."""
    lists: dict[str, Any] = {alias: _remembered(view, visitor, alias) for alias in view.aliases}
    unseen = [alias for alias, items in lists.items() if items is None]
    if unseen:
        found = await view.gather(visitor, _fetch, unseen)
        view.remember(found, visitor)
        lists |= found
    return lists


def _remembered(view: View, visitor: Visitor, alias: str) -> tuple[Message, ...] | None:
    """The tools of one server as far as they are known; None when it must be asked."""
    try:
        line = view.line(alias, visitor)
    except OutfitterError:
        return None
    is_open = line.connection.agreement is not None
    if is_open and line.is_due("tools/list"):
        return None
    if line.knows("tools/list"):
        return line.last_known("tools/list")
    seen = view.seen(alias)
    return None if seen is None else seen.tools


async def _fetch(line: Line) -> tuple[Message, ...]:
    return await line.items("tools/list", is_fresh=False)


def _merged(view: View, visitor: Visitor, lists: dict[str, Any]) -> Listing:
    failures = {alias: error for alias, error in lists.items() if isinstance(error, OutfitterError)}
    return view.put_together("tools/list", {**lists, **dict.fromkeys(failures, ())}, failures, visitor)


async def _weigh(view: View, visitor: Visitor) -> int:
    """What the definitions cost together; worked out again when a server's own list is another."""
    lists = await _lists(view, visitor)
    known = view.weights.get(visitor.declares)
    if known is None or any(known[0].get(alias) is not items for alias, items in lists.items()):
        shown = [item.shown for item in _merged(view, visitor, lists).items.values()]
        tokens = await anyio.to_thread.run_sync(total_tokens, shown)
        known = lists, tokens
        _keep(view.weights, visitor, known)
    return known[1]


async def _finder(view: View, visitor: Visitor) -> ToolFinder:
    """The finder over the tools that the agent has now."""
    shown = [item.shown for item in (await recall(view, visitor)).items.values()]
    known = view.finders.get(visitor.declares)
    if known is None or known.tools != shown:
        # Hundreds of tools take a moment, in which others are answered.
        known = await anyio.to_thread.run_sync(ToolFinder.of, shown)
        _keep(view.finders, visitor, known)
    return known


def _keep(kept: dict[str, T], visitor: Visitor, value: T) -> None:
    """Keep what was worked out for a client, and for a few others."""
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[visitor.declares] = value
