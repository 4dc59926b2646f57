"""API tokens: issued and shown once, kept as digests, narrowed, ended by themselves or taken back.

There is no default token: an empty database gets one first admin token, made of fresh randomness, whoever starts first.
Whether a token may do something is for ``access``.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from outfitter.basics import check_agent_name, check_server_name, quote
from outfitter.coordinator.access.copy import TokenCopy
from outfitter.coordinator.access.roles import ROLES, Role, is_role
from outfitter.coordinator.access.times import as_text
from outfitter.errors import AlreadyExists, Invalid, NotFound
from outfitter.gateway import new_token, token_digest
from outfitter.storage import TokenRecord

FIRST = "first"
"""The id of the first admin token. It can be taken once, which decides between coordinators that start together."""
_LONGEST_LABEL = 100
_LONGEST_RUN = 128
_WHOLE: frozenset[Role] = frozenset({"admin", "editor"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What narrows a token: one agent, one server of it, one run."""

    agent: str | None = None
    server: str | None = None
    run_id: str | None = None


EVERYWHERE = Scope()


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of the coordinator. What this process changes, it knows at once; others within a second."""

    copy: TokenCopy
    clock: Callable[[], float] = time.time

    async def issue(
        self, role: str, *, by: str, scope: Scope = EVERYWHERE, label: str = "", expires_at: datetime | None = None
    ) -> tuple[str, TokenRecord]:
        """A new token, in clear for this once, and what is kept of it; Invalid when it could never be used."""
        checked = _check_role(role, scope)
        _check_names(scope, label)
        ending = self._ending(expires_at)
        token, record = self._make(secrets.token_hex(6), checked, by, label)
        record = replace(record, agent=scope.agent, server=scope.server, run_id=scope.run_id, expires_at=ending)
        await self._add(record)
        return token, record

    def draft_of_run(self, agent: str, run_id: str, seconds: float, *, by: str) -> tuple[str, TokenRecord]:
        """A token for the endpoint of an agent in one run, and what to keep of it: whoever begins the run does."""
        token, record = self._make(secrets.token_hex(8), "agent", by, f"run {run_id}"[:_LONGEST_LABEL])
        return token, replace(record, agent=agent, run_id=run_id, expires_at=as_text(self.clock() + seconds))

    async def begun(self, record: TokenRecord) -> None:
        """Know at once the token of a run that this process has just begun; earlier ones of the run have ended."""
        await self.copy.put_of_run(record)

    async def ended(self, run_id: str) -> None:
        """Know at once that this process has just ended a run, and its tokens with it."""
        await self.copy.drop_of_run(run_id)

    async def look_again(self) -> None:
        """Know what another part of this process has just stored or ended."""
        await self.copy.refresh()

    async def records(self) -> tuple[TokenRecord, ...]:
        """Every token that holds or has ended in the last month, oldest first, with its last use."""
        return await self.copy.table.all()

    async def revoke(self, token_id: str) -> TokenRecord:
        """End a token now; NotFound when there is none of this id. A token that has ended already stays as it is."""
        done = await self.copy.table.revoke(token_id)
        record = next((record for record in await self.copy.table.all() if record.id == token_id), None)
        if record is None:
            raise NotFound(f"no token {quote(token_id)}", hint="outfitter tokens list shows them")
        if done:
            self.copy.put(record)
        return record

    async def end_run(self, run_id: str) -> None:
        """End every token of a run."""
        for record in await self.copy.table.all():
            if record.run_id == run_id and record.revoked_at is None:
                await self.revoke(record.id)

    async def first_admin(self) -> str | None:
        """An admin token, in clear for this once, if no token was ever issued; None otherwise.

        Of several coordinators that start together on one database, one gets it.
        """
        if await self.copy.table.all():
            return None
        token, record = self._make(FIRST, "admin", "first start", "first admin")
        try:
            await self._add(record)
        except AlreadyExists:
            return None
        return token

    def _make(self, token_id: str, role: Role, by: str, label: str) -> tuple[str, TokenRecord]:
        token = new_token(token_id)
        return token, TokenRecord(token_id, token_digest(token), role, as_text(self.clock()), by, label)

    async def _add(self, record: TokenRecord) -> None:
        await self.copy.table.add(record)
        self.copy.put(record)

    def _ending(self, expires_at: datetime | None) -> str | None:
        if expires_at is None:
            return None
        if expires_at.tzinfo is None or expires_at.timestamp() <= self.clock():
            raise Invalid("a token must end in the future", hint="give a time with its zone, such as 2030-01-31T12:00Z")
        return as_text(expires_at.timestamp())


def _check_role(role: str, scope: Scope) -> Role:
    if not is_role(role):
        raise Invalid(f"no role {quote(role)}", hint=f"one of {', '.join(ROLES)}")
    if role == "agent" and scope.agent is None:
        raise Invalid("an agent token needs the name of its agent")
    if role in _WHOLE and scope != EVERYWHERE:
        raise Invalid(f"a token of role '{role}' cannot be bound to an agent", hint="bind a viewer, runner or agent")
    if role != "agent" and (scope.server is not None or scope.run_id is not None):
        raise Invalid("only an agent token can be bound to a server or a run")
    return role


def _check_names(scope: Scope, label: str) -> None:
    if scope.agent is not None:
        check_agent_name(scope.agent)
    if scope.server is not None:
        check_server_name(scope.server)
    if scope.run_id is not None and not (scope.run_id.isprintable() and 0 < len(scope.run_id) <= _LONGEST_RUN):
        raise Invalid("this is no id of a run")
    if len(label) > _LONGEST_LABEL or not label.isprintable():
        raise Invalid(f"a label is a line of at most {_LONGEST_LABEL} characters")
