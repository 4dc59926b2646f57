"""API tokens at rest: their digests and what they may do. Whether one is valid now is decided where it is used.

``generation`` moves when a token was added or revoked, so that whoever keeps tokens in memory knows when to read again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, bindparam, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from outfitter.errors import AlreadyExists
from outfitter.storage.registry.store import Store, Turn
from outfitter.storage.registry.tables import api_tokens, counters, runners
from outfitter.storage.registry.values import TokenRecord
from outfitter.storage.registry.watching import Watch

_SHOWN = timedelta(days=30)
TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
"""How moments are written: texts that sort."""
_HOLDS = api_tokens.c.revoked_at.is_(None)
_RECENT = (or_(end.is_(None), end > bindparam("old")) for end in (api_tokens.c.revoked_at, api_tokens.c.expires_at))
_FIELDS = [api_tokens.c[one.name] for one in fields(TokenRecord)]
_ALL = select(*_FIELDS).where(*_RECENT).order_by(api_tokens.c.created_at, api_tokens.c.id)
_KNOWN = _ALL.where(or_(api_tokens.c.run_id.is_(None), _HOLDS))
_ADD = insert(api_tokens)
_END = update(api_tokens).where(api_tokens.c.run_id == bindparam("run"), _HOLDS).values(revoked_at=bindparam("now"))
_GENERATION = select(counters.c.value).where(counters.c.name == "tokens")


def subject_of(token_id: str) -> str:
    """How the holder of a token is called; nobody whom an identity provider knows is called so."""
    return f"token:{token_id}"


@dataclass(frozen=True, slots=True)
class ApiTokens:
    """The tokens that were given out."""

    _store: Store
    _watch: Watch

    async def add(self, record: TokenRecord) -> None:
        """Keep a token; AlreadyExists when its id or digest is taken."""
        async with self._store.writing("tokens") as turn:
            turn.moved = True
            await _add(turn, record)

    async def add_in(self, turn: Turn, record: TokenRecord) -> None:
        """Keep a token in the turn of another writer; AlreadyExists as in ``add``."""
        await self._store.move(turn, "tokens")
        await _add(turn, record)

    async def end_in(self, turn: Turn, run_id: str) -> None:
        """Take every token of a run back, in the turn of another writer."""
        if (await turn.connection.execute(_END, {"run": run_id, "now": self._store.now()})).rowcount:
            await self._store.move(turn, "tokens")

    async def all(self) -> tuple[TokenRecord, ...]:
        """Every token that holds or has ended in the last month, oldest first."""
        return await self._found(_ALL)

    async def known(self) -> tuple[TokenRecord, ...]:
        """The same without those of runs that have ended: there is one for every run, and this is read often."""
        return await self._found(_KNOWN)

    async def _found(self, asked: Select[Any]) -> tuple[TokenRecord, ...]:
        old = (datetime.fromisoformat(self._store.now()) - _SHOWN).strftime(TIME)
        async with self._store.reading() as connection:
            return tuple(TokenRecord(*row) for row in (await connection.execute(asked, {"old": old})).all())

    async def revoke(self, token_id: str) -> bool:
        """Take a token back from now on; False when there is none of this id that is not revoked yet."""
        mine = update(api_tokens).where(api_tokens.c.id == token_id, _HOLDS)
        async with self._store.writing("tokens") as turn:
            done = await turn.connection.execute(mine.values(revoked_at=self._store.now()))
            # A runner for whom it spoke is free for whoever comes with another.
            free = update(runners).where(runners.c.subject == subject_of(token_id))
            await turn.connection.execute(free.values(subject=None))
            turn.moved = bool(done.rowcount)
        return turn.moved

    async def touch(self, token_id: str, at: str) -> None:
        """Note when a token was last used; an earlier time than the known one is ignored."""
        known = api_tokens.c.last_used_at
        mine = update(api_tokens).where(api_tokens.c.id == token_id, or_(known.is_(None), known < at))
        async with self._store.writing("tokens") as turn:
            await turn.connection.execute(mine.values(last_used_at=at))

    async def generation(self) -> int:
        """A number that moves with every token that is added or revoked."""
        async with self._store.reading() as connection:
            return int((await connection.execute(_GENERATION)).scalar_one())

    def follow(self) -> AsyncGenerator[int]:
        """The present generation at once, then the newest one whenever it has moved, by whichever process."""
        return self._watch.follow("tokens")


async def _add(turn: Turn, record: TokenRecord) -> None:
    try:
        await turn.connection.execute(_ADD, asdict(record))
    except IntegrityError:
        raise AlreadyExists("a token of this id exists", where=f"tokens/{record.id}") from None
