"""The tokens as they were last read, in memory: found by digest, read again whenever one was added or revoked.

When the database is away, the last known tokens go on; one that ends by itself ends all the same. Nothing here keeps a
token: only what ``storage`` keeps, which is digests.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from outfitter.coordinator.access.times import as_seconds
from outfitter.errors import StorageUnavailable
from outfitter.gateway import token_digest
from outfitter.storage import TokenRecord

_SHAPE = re.compile(r"oft_[a-z0-9]{1,32}_[A-Za-z0-9_-]{43}", re.ASCII)
_RETRY_SECONDS = 0.2
_LOOK_AGAIN_SECONDS = 0.5


class TokenTable(Protocol):
    """Where tokens are kept; ``storage.ApiTokens`` is one."""

    async def add(self, record: TokenRecord) -> None:
        """Keep a token; AlreadyExists when its id is taken."""
        ...

    async def all(self) -> tuple[TokenRecord, ...]:
        """Every token that holds or has ended lately, oldest first."""
        ...

    async def known(self) -> tuple[TokenRecord, ...]:
        """The same without those of runs that have ended."""
        ...

    async def revoke(self, token_id: str) -> bool:
        """Take a token back; False when there is none to take back."""
        ...

    async def touch(self, token_id: str, at: str) -> None:
        """Note when a token was last used."""
        ...

    def follow(self) -> AsyncGenerator[int]:
        """A number at once, then another whenever a token was added or revoked, by whichever process."""
        ...


def has_token_shape(text: str) -> bool:
    """Whether a text could be a token of ours."""
    return _SHAPE.fullmatch(text) is not None


def ends_of(record: TokenRecord) -> float:
    """When a token ends by itself, in seconds since 1970."""
    return as_seconds(record.expires_at)


def _is_valid(record: TokenRecord, now: float) -> bool:
    return record.revoked_at is None and now < ends_of(record)


@dataclass(slots=True, eq=False)
class TokenCopy:
    """What is known of the tokens. One task runs ``follow``; everyone else reads."""

    table: TokenTable
    generation: int = 0
    """Another number whenever what is known has changed."""
    is_current: bool = False
    """Whether the last reading succeeded."""
    _records: dict[str, TokenRecord] = field(default_factory=dict[str, TokenRecord], repr=False)
    _by_id: dict[str, TokenRecord] = field(default_factory=dict[str, TokenRecord], repr=False)
    _reading: anyio.Lock = field(default_factory=anyio.Lock, repr=False)
    _readings: int = 0
    _looked: float = float("-inf")

    def find(self, token: str, now: float) -> TokenRecord | None:
        """The record of a token that is valid at this moment; None for anything else."""
        if not has_token_shape(token):
            return None
        asked = token_digest(token)
        # Nobody chooses a digest, so the time a lookup takes says nothing about a token.
        record = self._records.get(asked)
        if record is None or not hmac.compare_digest(record.digest, asked):
            return None
        return record if _is_valid(record, now) else None

    def holds(self, token_id: str, now: float) -> bool:
        """Whether the token of this id is valid at this moment."""
        record = self._by_id.get(token_id)
        return record is not None and _is_valid(record, now)

    def records(self) -> tuple[TokenRecord, ...]:
        """Every token, oldest first."""
        return tuple(self._records.values())

    def put(self, record: TokenRecord) -> None:
        """Know at once what this process has just stored."""
        self._take({**self._records, record.digest: record})

    async def put_of_run(self, record: TokenRecord) -> None:
        """Know at once the only token of a run, which this process has just stored."""
        async with self._reading:  # a reading that began before it was stored does not overwrite it
            self._take(self._without(record.run_id) | {record.digest: record})

    async def drop_of_run(self, run_id: str) -> None:
        """Know at once that this process has ended the tokens of a run."""
        async with self._reading:  # a reading that began before they were ended does not bring them back
            self._take(self._without(run_id))

    def _without(self, run_id: str | None) -> dict[str, TokenRecord]:
        return {digest: record for digest, record in self._records.items() if record.run_id != run_id}

    async def refresh(self) -> None:
        """Read all tokens again; StorageUnavailable leaves what is known as it is.

        A reading of somebody else that began after this was asked will do.
        """
        asked = self._readings
        async with self._reading:  # readings in turn: an older one never overwrites a newer one
            if self._readings > asked and self.is_current:
                return
            self._readings += 1
            try:
                found = await self.table.known()
            except StorageUnavailable:
                self.is_current = False
                raise
            self.is_current = True
            self._take({record.digest: record for record in found})

    async def look_again(self, now: float) -> None:
        """Read again for a token that is not known: another process may just have issued it.

        Strangers cannot make it happen more than twice a second; ``now`` is monotonic.
        """
        if now - self._looked >= _LOOK_AGAIN_SECONDS:
            self._looked = now
            await self._refreshed()
        elif self._reading.locked():
            async with self._reading:  # somebody reads already: what is found is for everyone
                return

    async def catch_up(self) -> None:
        """Know what was stored before this was asked; it takes half a second when somebody has just looked again."""
        asked = time.monotonic()
        await anyio.sleep(max(0.0, self._looked + _LOOK_AGAIN_SECONDS - asked))
        if self._looked < asked:
            self._looked = time.monotonic()
            await self._refreshed()
        else:
            async with self._reading:  # somebody has begun to read since: what is found is for everyone
                return

    async def follow(self) -> None:
        """Read again after every change, until the database is closed."""
        async for _ in self.table.follow():
            while not await self._refreshed():  # noqa: ASYNC110 - a database that is away has no event
                await anyio.sleep(_RETRY_SECONDS)

    async def _refreshed(self) -> bool:
        try:
            await self.refresh()
        except StorageUnavailable:
            return False
        return True

    def _take(self, records: dict[str, TokenRecord]) -> None:
        if records != self._records:
            self._records, self._by_id = records, {record.id: record for record in records.values()}
            self.generation += 1
