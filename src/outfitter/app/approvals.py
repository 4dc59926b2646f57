"""The approvals of this machine: where they are kept, and how a program of one's own waits for one.

Calls at the gateway wait by themselves. ``MachineApprover`` is for tools in your own process: whoever answers calls of
the gateway, at the command line or the dashboard, answers theirs too. The file is ``storage.approvals``.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from outfitter.app.settings import Settings
from outfitter.policy import Verdict, Wish

if TYPE_CHECKING:
    from outfitter.storage import Approval, ApprovalStore

_LOOK_SECONDS = 0.2


def approvals_of(settings: Settings) -> ApprovalStore:
    """The approvals of this state folder."""
    from outfitter.storage import ApprovalStore, ApprovalTimes

    times = ApprovalTimes(settings.approval_wait, settings.approval_valid)
    return ApprovalStore(settings.state / "approvals", times)


@asynccontextmanager
async def open_approvals(settings: Settings) -> AsyncGenerator[ApprovalStore]:
    """The same for as long as the block lasts."""
    store = approvals_of(settings)
    try:
        yield store
    finally:
        store.close()


@dataclass(frozen=True, slots=True)
class MachineApprover:
    """Asks whoever answers approvals on this machine; an ``Approver`` for ``ToolContext`` and ``Session``."""

    store: ApprovalStore

    @classmethod
    def here(cls, settings: Settings | None = None) -> MachineApprover:
        """Of the state folder that the environment names."""
        import os

        return cls(approvals_of(settings or Settings.read(os.environ)))

    def approve(self, wish: Wish, seconds: float) -> Verdict | None:
        """What a person says within so many seconds; what is said later counts for the next equal call."""
        found = self.store.ask(wish, seconds)
        if found is None or found.state != "waiting":
            return _said(found)
        ends = time.monotonic() + seconds
        try:
            while self.store.look(found.id) == "waiting" and time.monotonic() < ends:
                time.sleep(_LOOK_SECONDS)
            return _said(self.store.take(found.id))
        finally:
            self.store.leave(found.id)

    async def aapprove(self, wish: Wish, seconds: float) -> Verdict | None:
        """The same, awaited."""
        import anyio
        import anyio.to_thread

        found = await anyio.to_thread.run_sync(self.store.ask, wish, seconds)
        if found is None or found.state != "waiting":
            return _said(found)
        try:
            with anyio.move_on_after(seconds):
                while self.store.look(found.id) == "waiting":  # noqa: ASYNC110 - another process makes it so
                    await anyio.sleep(_LOOK_SECONDS)
            with anyio.CancelScope(shield=True):
                return _said(await anyio.to_thread.run_sync(self.store.take, found.id))
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self.store.leave, found.id)


def _said(found: Approval | None) -> Verdict | None:
    return found.verdict if found is not None and found.state in {"used", "denied"} else None
