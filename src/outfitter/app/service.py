"""The registry beside the gateway, in one process and on one port: opened, seeded, followed, served.

The gateway does not wait for the database when there is a snapshot of it that can be trusted: it starts from that, and
goes on with it when the database is away. One of another day is used only when the database does not answer for a
while: tokens may have been revoked since. What is asked of the API meanwhile hears 503. A database that is damaged ends
the whole process, with the name of its copy; one that cannot be reached is tried again as long as there is a snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from outfitter.app.approvals import approvals_of
from outfitter.app.budgets import book_of
from outfitter.app.first_start import import_tokens, load_http
from outfitter.app.following import Applied, follow_folder, state_of
from outfitter.app.last_seen import last_seen_of
from outfitter.app.news import News
from outfitter.app.options import GatewayOptions, Started
from outfitter.app.pages import Pages
from outfitter.app.passes import KnownTokens, Passes
from outfitter.app.pins import pin_desk
from outfitter.app.probing import lone_probe
from outfitter.app.registry_place import DATABASE, KEYS, registry_url
from outfitter.app.run_seats import ServedRuns
from outfitter.app.settings import Settings
from outfitter.app.snapshot import Snapshot, read_snapshot, snapshot_age, write_snapshot
from outfitter.basics import the_one_in
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError, StorageUnavailable
from outfitter.storage import CatalogFolder, glance
from outfitter.upstream import fetch_supply, make_providers

if TYPE_CHECKING:
    from outfitter.coordinator import Access, Coordinator, JwtVerifier
    from outfitter.gateway import Address, Desk, Relay
    from outfitter.resolution import Supply, Want
    from outfitter.storage import Database

_log = logging.getLogger(__name__)
_FIRST_WAIT, _MOST_WAIT = 0.5, 10.0
_GATHER_SECONDS = 0.2
_OLD_SECONDS, _PATIENCE_SECONDS = 24 * 3600.0, 5.0
"""When a snapshot is old, and how long the database is waited for before an old one is used."""
_ROOM_SECONDS = 0.25
"""How long the first calls of a gateway that can serve already have the processor to themselves: loading takes it.
Nobody waits for it: who asks for the API meanwhile has it loaded at once."""
_BUSY = b'{"title":"Service Unavailable","status":503,"code":"unavailable","detail":"the registry is not open yet"}'
Application = Callable[[Any, Any, Any], Any]


@dataclass(slots=True)
class Service:
    """The registry of a gateway. ``run`` opens it and keeps it; ``aside`` answers what is not the gateway's."""

    settings: Settings
    environment: Mapping[str, str]
    options: GatewayOptions
    news: News
    is_first: bool = True
    """Whether this process is the one that seeds, follows the folder and keeps the snapshot."""
    tokens: Passes = field(default_factory=Passes)
    snapshot: Snapshot | None = None
    """What the gateway serves: the last good configuration."""
    admin_token: str | None = None
    relay: Relay | None = None
    """The way to other workers, where there are any."""
    runs: ServedRuns = field(init=False)
    opened: anyio.Event = field(default_factory=anyio.Event)
    """Set when the registry is open, or cannot be and there is an old snapshot to serve."""
    _old: Snapshot | None = None
    """A snapshot that is used only when the database does not answer."""
    _desk: Desk | None = None
    _swap: Callable[[Catalog], None] = lambda _catalog: None
    _coordinator: Coordinator | None = None
    _api: Application | None = None
    _pages: Application | None = None
    """The dashboard."""
    _wanted: anyio.Event = field(default_factory=anyio.Event)
    """Set when somebody asks for the API."""
    _changed: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        """Runs are served from the registry, once it is open."""
        self.runs = ServedRuns(self.settings, self.environment, self.relay)

    def first(self) -> Catalog | None:
        """The catalog of the snapshot, if there is one that can be trusted."""
        found = read_snapshot(self.settings)
        if found is None or not (self.settings.database is not None or self._is_exact(found)):
            return None
        if self.settings.database is not None and snapshot_age(self.settings) > _OLD_SECONDS:
            self._old = found
            return None
        self._use(found)
        return found.catalog

    def _use(self, found: Snapshot) -> None:
        self.snapshot, self._old = found, None
        self.tokens.use(KnownTokens.of(found.tokens))

    async def wait(self) -> None:
        """Return when there is a catalog to serve."""
        if self.snapshot is None:
            await self.opened.wait()

    def told(self, address: Address) -> Started:
        """The agents of the registry, and the first admin token of a new one."""
        found = self.snapshot
        return Started(address) if found is None else snapshot_told(found, address, self.admin_token)

    def _is_exact(self, found: Snapshot) -> bool:
        """Whether the file of the registry and the folder are what they were; a damaged file never is."""
        numbers = glance(self.settings.state / DATABASE)
        if numbers is None or (numbers.get("revision"), numbers.get("tokens")) != (found.revision, found.generation):
            return False
        return not self.is_first or Applied(self.settings).seen == state_of(self.settings.catalog)

    # ── what is asked on the port ──

    def aside(self, scope: Mapping[str, Any], pages: frozenset[str]) -> Application | None:
        """Who answers in the place of the gateway; None when it is the gateway's own."""
        if scope["method"] == "GET" and scope["path"] in pages:
            return None
        if scope["path"].startswith("/mcp/"):
            return None if self.snapshot is not None else _not_yet
        self._wanted.set()
        if scope["path"] == "/" or scope["path"].startswith("/ui"):
            return self._pages or _not_yet
        return self._api or _not_yet

    def ready(self) -> tuple[int, str]:
        """Whether calls can be taken, and what is wrong with the registry if anything is."""
        if self.snapshot is None:
            return 503, "the registry is not open yet"
        if self._coordinator is None:
            return 200, f"ready; the registry is not open, revision {self.snapshot.revision} is served"
        fault = self._coordinator.live.fault
        return 200, "ready" if fault is None else f"ready; the newest revision is not in use [{fault.code}]"

    # ── the registry ──

    async def run(self, desk: Desk, swap: Callable[[Catalog], None]) -> None:
        """Open the registry and keep it until the gateway ends; StorageUnavailable when it must not be used."""
        self._desk, self._swap = desk, swap
        with anyio.move_on_after(0.0 if self.snapshot is None else _ROOM_SECONDS):
            await self._wanted.wait()
        wait, told, patience = _FIRST_WAIT, "", anyio.current_time() + _PATIENCE_SECONDS
        while not desk.closing.is_set():
            try:
                await self._serve()
            except StorageUnavailable as error:
                if self._old is None or anyio.current_time() >= patience:
                    told = self._go_on(error, told)
            with anyio.move_on_after(wait):
                await desk.closing.wait()
            wait = min(wait * 2, _MOST_WAIT)

    def _go_on(self, error: StorageUnavailable, told: str) -> str:
        """Serve what is known, if anything is; the error is said once."""
        if self._old is not None:
            self._use(self._old)
        found = self.snapshot
        if self.settings.database is None or found is None:
            raise error
        if not self.opened.is_set():
            self._swap(found.catalog)
            self.opened.set()
        if str(error) != told:
            _log.warning("the registry cannot be opened, revision %d stays: %s", found.revision, error)
        return str(error)

    async def _serve(self) -> None:
        await anyio.to_thread.run_sync(_load_libraries)
        from outfitter.coordinator import LeaseTimes, open_access, open_coordinator
        from outfitter.storage import KeyRing, open_audit, open_database

        url, keys = registry_url(self.settings), KeyRing(self.settings.state / KEYS)
        audit = open_audit(self.settings.state, self.settings.database)
        try:
            async with (
                _verifying(self.options) as verifier,
                open_database(url, keys) as database,
                open_coordinator(
                    database,
                    fetch=self._fetch,
                    audit=audit,
                    holder=self.runs.me,
                    times=LeaseTimes.of(self.settings.runner_silence, self.settings.keep_days),
                ) as coordinator,
                open_access(database.tokens, verifier=verifier, is_open=self.options.is_open) as access,
            ):
                await self._keep(database, coordinator, access)  # then the database is closed, and not cut off
        except BaseExceptionGroup as several:
            raise the_one_in(several) from None
        finally:
            self._coordinator = self._api = self._pages = None
            self.runs.use(None, None)
            audit.close()

    async def _keep(self, database: Database, coordinator: Coordinator, access: Access) -> None:
        """Serve the registry until the gateway ends."""
        from outfitter.coordinator import Files

        applied, folder = Applied(self.settings), CatalogFolder(self.settings.catalog)
        take = partial(applied.take, Files(coordinator.entries, coordinator.live))
        seen = await anyio.to_thread.run_sync(state_of, folder.path)
        if self.is_first:
            self.admin_token = await access.tokens.first_admin()
            await import_tokens(self.settings, access)
            if folder.exists() and applied.is_due(seen, coordinator.live.revision):
                is_new = not coordinator.live.revision
                if not await self._take_folder(folder, partial(take, seen=seen), is_new=is_new):
                    seen = None  # it is tried again
        await self._take_over(database, coordinator, access)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_load_http_soon)
            tasks.start_soon(self._keep_snapshot, database, coordinator, access)
            if self.is_first:
                tasks.start_soon(follow_folder, folder, take, self.news, seen)
            if self._desk is not None:
                await self._desk.closing.wait()
            tasks.cancel_scope.cancel()
        if self._changed.is_set():
            with anyio.move_on_after(_FIRST_WAIT):
                await self._keep_one(database, coordinator, access)

    async def _take_folder(
        self, folder: CatalogFolder, take: Callable[[Catalog], Awaitable[None]], *, is_new: bool
    ) -> bool:
        """Bring in what was changed in the folder meanwhile; False when the database has kept it from being judged.

        A bad folder keeps an empty registry from starting.
        """
        try:
            await take(await anyio.to_thread.run_sync(folder.load))
        except OutfitterError as error:
            if is_new:
                raise
            _log.warning("the changed catalog is not used: %s", error)
            self.news.tell(str(error))
            return not isinstance(error, StorageUnavailable)
        return True

    async def _take_over(self, database: Database, coordinator: Coordinator, access: Access) -> None:
        """From now on the registry is what is served."""
        from outfitter.coordinator import Office, make_api

        self._coordinator, self._old = coordinator, None
        self.tokens.use(access.gateway)
        self.runs.use(coordinator, access)
        self.snapshot = await self._shoot(database, coordinator, access)
        coordinator.live.on_change(self._hear)
        self._swap(coordinator.live.catalog)  # equal numbers prove nothing: the database may be another one's copy
        if self.is_first:
            await self._save()
        if self._desk is not None:
            office = Office(
                coordinator, access,
                metrics=self._desk.recorder.metrics.text, ready=self.ready, closing=self._desk.closing,
                pass_on=self.runs.pass_on, approvals=approvals_of(self.settings),
                pins=pin_desk(self.settings), budgets=book_of(self._desk),
                recall=last_seen_of(self.settings).recall,
                probe=lone_probe(self.settings, self.environment, lambda: coordinator.live.catalog),
            )  # fmt: skip
            hosts, origins = self.options.hosts, self.options.origins
            self._api = make_api(office, hosts=hosts, origins=origins)
            self._pages = Pages(office, self._api, hosts, origins, self.relay)
        self.opened.set()

    def _hear(self, catalog: Catalog, revision: int) -> None:
        _log.warning("revision %d of the registry is in use", revision)
        self._swap(catalog)
        self._changed.set()

    async def _shoot(self, database: Database, coordinator: Coordinator, access: Access) -> Snapshot:
        """What is in force now. The numbers are never newer than what they stand for."""
        generation = await database.tokens.generation()
        await access.copy.refresh()
        view = coordinator.live.view
        return Snapshot(view.catalog, view.revision, access.gateway.records(), generation)

    async def _keep_snapshot(self, database: Database, coordinator: Coordinator, access: Access) -> None:
        """Take another snapshot after every change, until cancelled."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._hear_tokens, database, access)
            while True:
                await self._changed.wait()
                await anyio.sleep(_GATHER_SECONDS)
                if not await self._keep_one(database, coordinator, access):
                    await anyio.sleep(_MOST_WAIT)

    async def _keep_one(self, database: Database, coordinator: Coordinator, access: Access) -> bool:
        """Whether what has changed is in the snapshot now; what is not stays to be done."""
        self._changed, is_kept = anyio.Event(), False
        try:
            self.snapshot = await self._shoot(database, coordinator, access)
            if self.is_first:
                await self._save()
            is_kept = True
        except StorageUnavailable as error:
            _log.warning("the snapshot of the registry is not kept: %s", error)
        finally:
            if not is_kept:
                self._changed.set()
        return is_kept

    async def _hear_tokens(self, database: Database, access: Access) -> None:
        async for generation in database.tokens.follow():
            if self.snapshot is None or generation != self.snapshot.generation:
                self._changed.set()
            await self._let_runs_go(access)

    async def _let_runs_go(self, access: Access) -> None:
        """What ended runs had is not kept: neither their seats nor the connections that only they used."""
        with suppress(StorageUnavailable):  # then nothing is known to have ended
            await access.copy.refresh()
        if self._desk is not None:
            now = time.time()
            self._desk.forget_runs(lambda token_id: access.copy.holds(token_id, now))

    async def _save(self) -> None:
        if self.snapshot is not None:
            await anyio.to_thread.run_sync(write_snapshot, self.settings, self.snapshot)

    async def _fetch(self, wants: Sequence[Want]) -> Supply:
        """What this machine has of variables and secrets, as for the gateway's own servers."""
        providers = make_providers(self.environment, self.settings.secrets)
        return await anyio.to_thread.run_sync(fetch_supply, wants, self.environment, providers)


def snapshot_told(snapshot: Snapshot, address: Address, admin_token: str | None = None) -> Started:
    """What is told of a gateway that serves a registry."""
    from outfitter.gateway import ADMIN

    has_tokens = any(record.agent != ADMIN for record in snapshot.tokens)
    return Started(address, snapshot.agents, has_tokens=has_tokens, admin_token=admin_token)


async def _load_http_soon() -> None:
    """Load what is left, off the loop, when the first who asked have had their answer."""
    await anyio.sleep(_ROOM_SECONDS)
    await anyio.to_thread.run_sync(load_http)


def _load_libraries() -> None:
    """What takes longest of a start, off the loop."""
    for room, name in (("outfitter.storage", "open_database"), ("outfitter.coordinator", "make_api")):
        getattr(import_module(room), name)


@asynccontextmanager
async def _verifying(options: GatewayOptions) -> AsyncGenerator[JwtVerifier | None]:
    """Who judges the tokens of an identity provider, if one was named."""
    if options.jwt_issuer is None:
        yield None
        return
    from outfitter.coordinator import JwtRules, JwtVerifier
    from outfitter.upstream import HttpClient

    rules = JwtRules(options.jwt_issuer, options.jwt_audience or "", options.jwt_keys or "")
    async with HttpClient() as client:
        yield JwtVerifier.make(rules, client)


async def _not_yet(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
    """The answer as long as there is nothing to answer from."""
    del scope, receive
    headers = [(b"content-type", b"application/problem+json"), (b"retry-after", b"1"), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BUSY})
