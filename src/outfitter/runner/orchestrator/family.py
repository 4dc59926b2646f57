"""Who stands above and below a session: facts that never change, asked of the coordinator once and remembered.

A session may see, read, resume and stop those below it. Any other is answered like one that does not exist.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from urllib.parse import quote as quote_path

from outfitter.basics import quote
from outfitter.errors import Forbidden, NotFound, UnknownSession
from outfitter.runner.orchestrator.client import CoordinatorClient, Json

_IDENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}", re.ASCII)
_REMEMBERED = 4096
_HIGHEST = 32
"""No row is longer: the coordinator allows less."""


@dataclass(frozen=True, slots=True)
class Member:
    """A session, whose it is, and the one that started it."""

    id: str
    agent: str
    parent_id: str | None


@dataclass(slots=True)
class Family:
    """Sessions by what they descend from."""

    client: CoordinatorClient
    _known: OrderedDict[str, Member] = field(default_factory=OrderedDict[str, Member])

    async def caller(self, session_id: str | None) -> Member:
        """The session that calls; Forbidden when it is not said or not known."""
        if not session_id:
            hint = "the gateway sends X-Agent-Session-Id; it is armed in a run only"
            raise Forbidden("the call does not say which session it comes from", hint=hint)
        try:
            return await self.member(session_id)
        except NotFound:
            raise Forbidden("the session that the call comes from is not known") from None

    async def member(self, session_id: str) -> Member:
        """A session by its id; UnknownSession when there is none."""
        found = self._known.get(session_id)
        if found is None:
            shown = await self.session(session_id)
            found = Member(shown["id"], shown["agent"], shown["parent_id"])
            self._known[session_id] = found
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found

    async def session(self, session_id: str) -> Json:
        """What the coordinator knows of a session now; UnknownSession when nothing."""
        if _IDENT.fullmatch(session_id) is None:
            raise unknown(session_id)
        try:
            return await self.client.get(f"/sessions/{quote_path(session_id)}")
        except NotFound:
            raise unknown(session_id) from None

    async def chain(self, member: Member) -> list[str]:
        """The agents from the topmost one down to this session's."""
        agents = [member.agent]
        while member.parent_id is not None and len(agents) < _HIGHEST:
            member = await self.member(member.parent_id)
            agents.append(member.agent)
        return agents[::-1]

    async def below(self, caller: Member, session_id: str) -> Json:
        """A session that descends from the caller; UnknownSession for any other, whether there is one or not."""
        shown = await self.session(session_id)
        parent: str | None = shown["parent_id"]
        for _ in range(_HIGHEST):
            if parent == caller.id:
                return shown
            if parent is None:
                break
            parent = (await self.member(parent)).parent_id
        raise unknown(session_id)


def unknown(session_id: str) -> UnknownSession:
    """The answer about a session that is not there for the caller."""
    return UnknownSession(f"no session {quote(session_id)}", hint="use a session_id that start_agent gave you")
