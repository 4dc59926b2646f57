"""The seats of runs at the gateway: what a run was given when it was started, armed with this machine's secrets.

The plan is the one that is stored with the run's session: its headers, its credentials, what it inherited. It is known
once the registry is open; until then nobody who comes with a token of a run is served anything else instead.
"""

from __future__ import annotations

import hashlib
import logging
import socket
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from outfitter.app.live import arm_plan
from outfitter.app.local_api import App, Message
from outfitter.app.settings import Settings
from outfitter.app.sharing import ALONE, Share
from outfitter.errors import OutfitterError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from outfitter.coordinator import Access, Coordinator, RunOutfit
    from outfitter.gateway import Passed, Relay, Seat

_log = logging.getLogger(__name__)
_PARTS = "/"
_MOST_HOLDERS = 4096
_OPENING_SECONDS = 10.0
_GONE = (
    b'{"type":"urn:outfitter:problem:unavailable","title":"Service Unavailable","status":503,"code":"unavailable",'
    b'"detail":"the process that holds the credentials of the parent session does not answer"}'
)


def holder_name(relay: Relay | None) -> str | None:
    """What other workers know this process by; None when there are none."""
    if relay is None:
        return None
    home = f"{socket.gethostname()}\0{relay.folder.resolve()}"
    return f"{hashlib.sha256(home.encode()).hexdigest()[:16]}{_PARTS}{relay.mark}"


@dataclass(slots=True)
class ServedRuns:
    """Makes the seats of runs; see ``gateway.RunSeats``."""

    settings: Settings
    environment: Mapping[str, str]
    relay: Relay | None = None
    """The way to other workers, where there are any."""
    _coordinator: Coordinator | None = None
    _access: Access | None = None
    _opened: anyio.Event = field(default_factory=anyio.Event)
    _began: float = field(default_factory=time.monotonic)
    _holders: dict[str, str | None] = field(default_factory=dict[str, "str | None"])

    @property
    def me(self) -> str | None:
        """This process, where there are several."""
        return holder_name(self.relay)

    def use(self, coordinator: Coordinator | None, access: Access | None) -> None:
        """Ask this registry from now on; none when there is none."""
        self._coordinator, self._access = coordinator, access
        if coordinator is not None:
            self._opened.set()
        self._holders.clear()

    async def make(self, agent: str, run_id: str) -> Seat:
        """The seat of a run that goes on; UnknownRun for any other."""
        outfit = await self._open().runs.outfit_of(run_id)
        if outfit.plan.agent.name != agent:
            raise Unavailable("the run is another agent's")
        return await anyio.to_thread.run_sync(partial(self._arm, outfit))

    async def holder(self, run_id: str) -> str | None:
        """The mark of the worker of this group that holds the credentials of a run."""
        if run_id not in self._holders:
            if len(self._holders) >= _MOST_HOLDERS:
                self._holders.clear()
            self._holders[run_id] = await self._open().runs.holder_of(run_id=run_id)
        return self.mark_of(self._holders[run_id])

    def mark_of(self, holder: str | None) -> str | None:
        """The mark of a worker by its name; None for one of another group, who cannot be asked."""
        group, _, mark = (holder or "").partition(_PARTS)
        return mark if mark and (self.me or "").partition(_PARTS)[0] == group else None

    def pass_on(self, holder: str, method: str, path: str, headers: Mapping[bytes, bytes], body: bytes) -> App | None:
        """Who has the worker of this name answer a request of the API; None when it is to be answered here."""
        from outfitter.gateway import Passed

        mark = self.mark_of(holder)
        if self.relay is None or mark is None or self.relay.owner_of(mark) is None:
            return None
        named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers.items()]
        return partial(_forward, self.relay, mark, Passed(method, path, named, body))

    async def look_again(self) -> None:
        """Learn of tokens that another process has just made.

        A process that has just begun, and serves what is known of another day, waits for its registry.
        """
        with anyio.move_on_after(self._began + _OPENING_SECONDS - time.monotonic()):
            await self._opened.wait()
        if self._access is not None:
            await self._access.copy.catch_up()

    def _open(self) -> Coordinator:
        if self._coordinator is None:
            raise Unavailable("the registry is not open yet")
        return self._coordinator

    def _arm(self, outfit: RunOutfit) -> Seat:
        from outfitter.catalog import Catalog
        from outfitter.gateway import Seat

        share = ALONE if self.relay is None else Share(self.relay.number, self.relay.count)
        plan = replace(share.of_plan(outfit.plan), catalog=Catalog())
        armed = arm_plan(plan, self.environment, self.settings, outfit.runtime)
        servers = {**armed.servers, **outfit.faults}
        for alias, error in servers.items():
            if isinstance(error, OutfitterError):
                _log.warning("run '%s' goes without server '%s': %s", plan.run_id, alias, error)
        return Seat(plan, servers, above=outfit.above)


async def _forward(relay: Relay, mark: str, passed: Passed, scope: Message, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
    del scope
    if await relay.forward(mark, passed, receive, send):
        return
    headers = [(b"content-type", b"application/problem+json"), (b"retry-after", b"1"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _GONE})
