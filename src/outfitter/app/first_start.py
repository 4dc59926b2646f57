"""What a start does once: take over the tokens of the time before the registry, and load what was left for later."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings
from outfitter.errors import AlreadyExists

if TYPE_CHECKING:
    from outfitter.coordinator import Access
    from outfitter.gateway import TokenBook


def load_http() -> None:
    """Load what servers are asked with, so that the first call need not; it takes a while, in any thread."""
    getattr(import_module("outfitter.upstream"), "GuardedResolver")  # noqa: B009 - a name that is loaded when it is read


def token_book(settings: Settings) -> TokenBook:
    """The tokens of this machine's gateway, where there is no registry."""
    from outfitter.gateway import TokenBook

    return TokenBook(settings.state / "tokens.json")


async def import_tokens(settings: Settings, access: Access) -> None:
    """Have the registry know every token of the file; what was revoked in either stays revoked.

    An admin token of the file showed the gateway's figures and no more. So it is a viewer here: it changes nothing.
    """
    import anyio.to_thread

    from outfitter.gateway import ADMIN
    from outfitter.storage import TokenRecord

    records = await anyio.to_thread.run_sync(token_book(settings).records)
    known = {record.id: record for record in access.copy.records()}
    for one in records:
        if one.id in known:
            if one.revoked_at is not None and known[one.id].revoked_at is None:
                await access.tokens.revoke(one.id)
            continue
        is_admin = one.agent == ADMIN
        record = TokenRecord(
            one.id, one.digest, "viewer" if is_admin else "agent", one.created_at, "tokens.json", one.label,
            None if is_admin else one.agent, one.server, one.run_id, one.expires_at, one.revoked_at,
        )  # fmt: skip
        with suppress(AlreadyExists):  # another process has just done it
            await access.copy.table.add(record)
    if records:
        await access.copy.refresh()
