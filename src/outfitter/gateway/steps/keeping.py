"""A result that is larger than the agent's limit is kept aside; the model gets its beginning and its end.

What is not text passes as it is, and so does what the server says went wrong, cut like any other. Nothing is lost
silently: a result that cannot be kept is cut too, and says so.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio.to_thread
import msgspec

from outfitter.calls import SCHEME, Large, find_large, preview
from outfitter.errors import StorageUnavailable
from outfitter.gateway.asked import Asked, Next
from outfitter.gateway.kept import Shelf, limit_of, owner_of
from outfitter.gateway.views import as_object
from outfitter.upstream import Message

if TYPE_CHECKING:
    from outfitter.gateway.views import Item

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode
KEPT = "outfitter/kept"
"""Where a shortened result says what was kept."""
_LOST = "(it could not be kept: the rest is lost)"


@dataclass(frozen=True, slots=True)
class KeepingAside:
    """Keeps what is too large."""

    shelf: Shelf

    async def __call__(self, asked: Asked, go_on: Next) -> Message:
        """The result, or a preview of it."""
        result = await go_on(asked)
        limit = limit_of(asked.view.seat, self.shelf)
        if limit is None or asked.item is None or result.get("resultType", "complete") != "complete":
            return result
        large = await anyio.to_thread.run_sync(find_large, result, limit, _encode)
        if large is None:
            return result
        return await anyio.to_thread.run_sync(self._shorten, asked, result, large, limit)

    def _shorten(self, asked: Asked, result: Message, large: Large, limit: int) -> Message:
        kept: Message = {"bytes": len(large.text)}
        try:
            kept["uri"] = f"{SCHEME}{self._keep(asked, large)}"
        except StorageUnavailable as error:
            _log.warning("%s", error)
        text = preview(large.text, kept.get("uri", _LOST), limit)
        shortened = {key: value for key, value in result.items() if key != "structuredContent"}
        shortened["content"] = [{"type": "text", "text": text}, *large.others]
        shortened["_meta"] = {**as_object(result.get("_meta")), KEPT: kept}
        return shortened

    def _keep(self, asked: Asked, large: Large) -> str:
        item: Item | None = asked.item
        kind = "application/json" if large.is_json else "text/plain"
        about = {"server": "", "tool": asked.name} if item is None else {"server": item.alias, "tool": item.name}
        return self.shelf.put(owner_of(asked.view.seat), large.text, **about, type=kind)
