"""The tokens of the registry as the gateway's gate asks for them, from memory: no call waits for the database.

An ``agent`` token opens the endpoint of its agent; an ``admin`` token opens the private pages, and so does a ``viewer``
token that is bound to no agent. No other role has business at the gateway. A revoked token ends within a second at
every gateway; with the database away the last known ones go on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from outfitter.coordinator.access.copy import TokenCopy
from outfitter.coordinator.access.last_used import EVERY_SECONDS, LastUsed
from outfitter.gateway import ADMIN
from outfitter.gateway import TokenRecord as Pass
from outfitter.storage import TokenRecord


@dataclass(frozen=True, slots=True)
class GatewayTokens:
    """A source of tokens for ``gateway.Gate``."""

    copy: TokenCopy
    last_used: LastUsed

    def look(self, now: float) -> int:
        """A number that grows whenever a token has changed, and once a minute, so that uses are seen; see ``Gate``."""
        return self.copy.generation + int(now // EVERY_SECONDS)

    def find(self, token: str) -> Pass | None:
        """The valid record of a token that has business at the gateway; None for anything else."""
        now = time.time()
        record = self.copy.find(token, now)
        found = None if record is None else _pass(record)
        if found is not None:
            self.last_used.note(found.id, now)
        return found

    def records(self) -> tuple[Pass, ...]:
        """Every token that has business at the gateway, revoked ones too, oldest first."""
        return tuple(found for record in self.copy.records() if (found := _pass(record)) is not None)


def _pass(record: TokenRecord) -> Pass | None:
    is_watcher = record.role == "admin" or (record.role == "viewer" and record.agent is None)
    agent = ADMIN if is_watcher else record.agent if record.role == "agent" else None
    if agent is None:
        return None
    return Pass(
        record.id,
        record.digest,
        agent,
        record.created_at,
        server=record.server,
        run_id=record.run_id,
        label=record.label,
        expires_at=record.expires_at,
        revoked_at=record.revoked_at,
    )
