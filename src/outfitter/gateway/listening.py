"""Which changes a client hears of: the news of all its servers, merged, and only what it asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

import anyio

from outfitter.errors import OutfitterError
from outfitter.gateway.lines import Line
from outfitter.gateway.searching import is_searched
from outfitter.gateway.subscribing import UPDATED
from outfitter.gateway.views import View, as_object
from outfitter.gateway.visitors import Visitor
from outfitter.upstream import Message

_FLAGS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client wants to hear of."""

    flags: frozenset[str]
    uris: frozenset[str] = frozenset()

    @classmethod
    def read(cls, notifications: object) -> Wanted:
        """The modern era's filter."""
        given = as_object(notifications)
        uris = given.get("resourceSubscriptions")
        listed = frozenset(map(str, cast("list[object]", uris))) if isinstance(uris, list) else frozenset[str]()
        return cls(frozenset(flag for flag in _FLAGS.values() if given.get(flag) is True), listed)

    def as_json(self) -> Message:
        """What is granted, as the acknowledgement says it."""
        granted: Message = dict.fromkeys(sorted(self.flags), True)
        return {**granted, "resourceSubscriptions": sorted(self.uris)} if self.uris else granted

    def fits(self, message: Message) -> bool:
        """Whether a notification was asked for."""
        method = str(message.get("method"))
        if method == UPDATED:
            return as_object(message.get("params")).get("uri") in self.uris
        return _FLAGS.get(method) in self.flags


EVERYTHING = Wanted(frozenset(_FLAGS.values()))


@dataclass(slots=True, eq=False)
class Ear:
    """Hears all lines of an endpoint and passes on what is wanted; goes along when the agent's plan changes."""

    find: Callable[[], Awaitable[View]]
    visitor: Visitor
    say: Callable[[Message], None]
    wants: Callable[[Message], bool]
    _view: View | None = None
    _lines: list[Line] = field(default_factory=list[Line])

    async def start(self) -> View:
        """Begin to hear, and the view that is heard; a server that cannot be reached by a line is not heard."""
        view = self._view = await self.find()
        self.stop()
        for alias in view.aliases:
            try:
                line = view.line(alias, self.visitor)
            except OutfitterError:
                continue
            line.listeners.add(self._hear)
            self._lines.append(line)
        return view

    def stop(self) -> None:
        """Hear nothing more."""
        for line in self._lines:
            line.listeners.discard(self._hear)
        self._lines.clear()

    async def follow(self) -> None:
        """Open what is listened to, and go on with the endpoint's next view whenever there is one."""
        while True:
            view = self._view
            if view is not None and not await is_searched(view, self.visitor):
                await view.gather(self.visitor, _open)
            while await self._is_same(view):  # noqa: ASYNC110 - a new plan is found when somebody asks for it
                await anyio.sleep(_LOOK_SECONDS)
            await self.start()
            for method in _FLAGS:
                self._hear({"jsonrpc": "2.0", "method": method})

    async def _is_same(self, view: View | None) -> bool:
        """Whether the endpoint is as before; one that is gone has no news."""
        try:
            return await self.find() is view
        except OutfitterError:
            return True

    def _hear(self, message: Message) -> None:
        if self.wants(message):
            self.say(message)


async def _open(line: Line) -> object:
    return await line.agreement()
