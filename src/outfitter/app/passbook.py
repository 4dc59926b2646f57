"""The registry's tokens as the gateway means them: for an agent, or for the admin. For commands of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from outfitter.app.registry_place import KEYS, registry_url
from outfitter.app.settings import Settings
from outfitter.basics import quote
from outfitter.errors import NotFound, UnknownAgent

if TYPE_CHECKING:
    from outfitter.coordinator import Access
    from outfitter.gateway import TokenRecord
    from outfitter.storage import Database


@dataclass(frozen=True, slots=True)
class Passbook:
    """Issues, lists and revokes them. Whoever can open the database is an admin."""

    database: Database
    access: Access

    async def issue(
        self, agent: str, *, server: str | None = None, label: str = "", expires_at: datetime | None = None
    ) -> tuple[str, TokenRecord]:
        """A new token, in clear for this once, and what is kept of it; UnknownAgent when there is no such agent."""
        from outfitter.coordinator import EVERYWHERE, Scope
        from outfitter.gateway import ADMIN

        is_admin = agent == ADMIN
        if not is_admin and await self.database.registry.entry("agents", agent) is None:
            raise UnknownAgent(f"no agent '{agent}'")
        scope = EVERYWHERE if is_admin else Scope(agent, server)
        role = "admin" if is_admin else "agent"
        token, record = await self.access.tokens.issue(
            role, by="local", scope=scope, label=label, expires_at=expires_at
        )
        return token, self._find(record.id)

    def records(self) -> tuple[TokenRecord, ...]:
        """Every token ever issued for the gateway, oldest first."""
        return self.access.gateway.records()

    async def revoke(self, ident: str) -> TokenRecord:
        """End a token now; NotFound when there is none of this id."""
        if all(record.id != ident for record in self.records()):
            raise NotFound(f"no token {quote(ident)} of the gateway", hint="outfitter token list shows them")
        await self.access.tokens.revoke(ident)
        return self._find(ident)

    def _find(self, ident: str) -> TokenRecord:
        return next(record for record in self.records() if record.id == ident)


@asynccontextmanager
async def open_passes(settings: Settings) -> AsyncGenerator[Passbook]:
    """The tokens of this machine's registry."""
    from outfitter.coordinator import open_access
    from outfitter.storage import KeyRing, open_database

    async with (
        open_database(registry_url(settings), KeyRing(settings.state / KEYS)) as database,
        open_access(database.tokens) as access,
    ):
        yield Passbook(database, access)
