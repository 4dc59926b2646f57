"""Who comes in at the API, and may they do this? Every refusal is the same for everyone.

A token of ours is looked up in memory; any other is for the identity provider's verifier, if there is one. A refusal
does not say whether a token was unknown, ended, revoked or ill made, and is given before anything is looked up.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from outfitter.basics import the_one_in
from outfitter.coordinator.access.copy import TokenCopy, TokenTable, ends_of, has_token_shape
from outfitter.coordinator.access.gateway import GatewayTokens
from outfitter.coordinator.access.identity import LOCAL, Identity
from outfitter.coordinator.access.last_used import LastUsed
from outfitter.coordinator.access.roles import ACTIONS, Action, is_role
from outfitter.coordinator.access.tokens import Tokens
from outfitter.coordinator.access.verifier import JwtVerifier
from outfitter.errors import Forbidden, NeedsToken
from outfitter.storage import TokenRecord

_LONGEST = 16 * 1024


@dataclass(frozen=True, slots=True)
class Access:
    """The rules at the API's door. ``is_open`` lets those in who bring no token at all, for loopback only."""

    copy: TokenCopy
    tokens: Tokens
    gateway: GatewayTokens
    last_used: LastUsed
    verifier: JwtVerifier | None = None
    is_open: bool = False

    async def identify(self, authorization: str | None) -> Identity:
        """Whom the Authorization header stands for; NeedsToken otherwise, Forbidden for somebody without a role.

        Unavailable when the identity provider's keys cannot be had.
        """
        if authorization is None and self.is_open:
            return LOCAL
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip(" ")
        found = None
        if scheme.lower() == "bearer" and len(token) <= _LONGEST:
            found = await self._recognise(token)
        if found is None:
            raise NeedsToken("a valid token is needed", hint="send it as Authorization: Bearer TOKEN")
        return found

    def need(self, identity: Identity, action: Action, *, agent: str | None = None) -> None:
        """Refuse what the role, or the agent that the token is bound to, does not cover: Forbidden.

        ``agent`` is the agent it is about; somebody bound to one may not ask about all.
        """
        rule = ACTIONS[action]
        if identity.role not in rule.roles:
            raise Forbidden(f"the role '{identity.role}' may not {rule.about}", hint=_who_may(action))
        if identity.agent is not None and (not rule.concerns_one_agent or agent != identity.agent):
            raise Forbidden("this token is bound to an agent and may not do this")

    def holds(self, identity: Identity) -> bool:
        """Whether an identity still stands, for answers that take long: its token has not ended and is not revoked."""
        now = time.time()
        return now < identity.ends and (not identity.token_id or self.copy.holds(identity.token_id, now))

    async def _recognise(self, token: str) -> Identity | None:
        if has_token_shape(token):
            return await self._of_ours(token)
        return None if self.verifier is None else await self.verifier.verify(token)

    async def _of_ours(self, token: str) -> Identity | None:
        record = self.copy.find(token, time.time())
        if record is None:
            await self.copy.look_again(time.monotonic())
            record = self.copy.find(token, time.time())
        identity = None if record is None else identity_of(record)
        if identity is not None:
            self.last_used.note(identity.token_id, time.time())
        return identity


def identity_of(record: TokenRecord) -> Identity | None:
    """Whom a token stands for; None when it has a role that this program does not know."""
    if not is_role(record.role):
        return None
    name = f"{record.label or 'token'}#{record.id}"
    return Identity(name, record.role, record.agent, record.server, record.run_id, record.id, ends_of(record))


def _who_may(action: Action) -> str:
    return f"roles that may: {', '.join(sorted(ACTIONS[action].roles))}"


@asynccontextmanager
async def open_access(
    table: TokenTable, *, verifier: JwtVerifier | None = None, is_open: bool = False
) -> AsyncGenerator[Access]:
    """Access that follows the table of tokens as long as the block lasts; StorageUnavailable when it cannot be read.

    A gateway without an API opens it too, for its ``gateway``.
    """
    copy, last_used = TokenCopy(table), LastUsed(table)
    await copy.refresh()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(copy.follow)
            tasks.start_soon(last_used.run)
            try:
                yield Access(copy, Tokens(copy), GatewayTokens(copy, last_used), last_used, verifier, is_open)
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        # An error of the block itself leaves it as it was raised.
        raise the_one_in(several) from None
