"""Who a runner of this machine's own gateway is: a token of the role runner that it takes from the registry itself.

Whoever can open the registry's database may issue tokens, as the commands for tokens do; nobody has to carry one. It
ends with the runner. A private file holds it meanwhile: the coordinator lets one token speak for a runner, so the one
that comes after a kill needs the same. Neighbours: ``passbook`` issues, ``running`` signs in with it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from outfitter.app.passbook import open_passes
from outfitter.app.settings import Settings
from outfitter.basics import Secret
from outfitter.errors import OutfitterError
from outfitter.storage import write_private

_log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.6
LABEL = "runner of this machine"


@dataclass(slots=True)
class LocalPass:
    """Signs a runner in at the gateway of this machine; use it through ``local_pass``."""

    given: Secret
    id: str
    is_new: bool

    async def token(self) -> Secret:
        """The token."""
        return self.given

    async def renew(self, refused: Secret) -> bool:
        """True once, for a token that is too new to be known everywhere; there is no other."""
        del refused
        if not self.is_new:
            return False
        self.is_new = False
        await anyio.sleep(_LOOK_SECONDS)  # the gateway looks for tokens of other processes twice a second at most
        return True


@asynccontextmanager
async def local_pass(settings: Settings, file: Path) -> AsyncGenerator[LocalPass]:
    """A pass that is good as long as the block lasts; ``file`` holds it meanwhile."""
    made = await _take(settings, file)
    try:
        yield made
    finally:
        with anyio.CancelScope(shield=True):
            try:
                # A loop of its own: the runner's engine has ended the threads of this one.
                await anyio.to_thread.run_sync(anyio.run, _end, settings, made.id)
                await anyio.Path(file).unlink(missing_ok=True)
            except OutfitterError as error:
                _log.warning("the runner's token is not revoked: %s", error)


async def _take(settings: Settings, file: Path) -> LocalPass:
    """The token that a killed runner left, if it still holds; a new one otherwise."""
    async with open_passes(settings) as passes:
        left = _read(file)
        records = await passes.access.tokens.records()
        if left is not None and any(one.id == left.id and one.revoked_at is None for one in records):
            return left
        token, record = await passes.access.tokens.issue("runner", by="local", label=LABEL)
    write_private(file, json.dumps({"id": record.id, "token": token}))
    return LocalPass(Secret(token), record.id, is_new=True)


def _read(file: Path) -> LocalPass | None:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return LocalPass(Secret(str(found["token"])), str(found["id"]), is_new=False)
    except (OSError, ValueError, KeyError, TypeError):
        return None


async def _end(settings: Settings, token_id: str) -> None:
    async with open_passes(settings) as passes:
        await passes.access.tokens.revoke(token_id)
