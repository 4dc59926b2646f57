"""The connections that sections, sessions and handlers share, found by the name of their server.

``with McpConnectionPool()`` keeps them on a background loop, for code without one; ``async with`` keeps them on the
caller's loop. Either way they can be used from any thread and any loop. A server is held by everyone who connected it
and ends when the last lets it go. One name means one server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Self

import anyio
import anyio.to_thread

from outfitter.bridge.connection import McpConnection, refused
from outfitter.bridge.home import Home, MakePool
from outfitter.bridge.pin_file import PinFile
from outfitter.catalog import MCPServer
from outfitter.errors import McpConnectionError, OutfitterError, UpstreamDown
from outfitter.resolution import ArmedServer
from outfitter.upstream import Link, Pool, SpawnRules, arm_servers, share_key

Armed = Mapping[str, ArmedServer | OutfitterError]
Connected = dict[str, McpConnection | McpConnectionError]


class McpConnectionPool:
    """Live connections by name. Handlers find it with ``context.resources.get(McpConnectionPool)``."""

    def __init__(
        self,
        *,
        make_pool: MakePool | None = None,
        environment: Mapping[str, str] | None = None,
        pins: PinFile | None = None,
    ) -> None:
        """Nothing is opened yet. ``environment`` fills placeholders; without one it is this process's own.

        With ``pins``, tools and programs that are not what was approved are held back, for everyone who shares it.
        """
        self.pins = pins
        self._make_pool = make_pool or partial(_make_pool, pins)
        self._environment = environment
        self._home: Home | None = None
        self._held: tuple[McpConnection, ...] = ()
        self._opening = threading.Lock()

    # ── opening and closing ──

    def open(self) -> None:
        """Open it on a background loop, unless it is open."""
        with self._opening:
            if self._home is None or self._home.is_over:
                home = Home(self._make_pool)
                home.start()
                self._home, self._held = home, ()

    async def aopen(self) -> None:
        """Open it on this loop, unless it is open."""
        if self._home is None or self._home.is_over:
            self._home, self._held = Home(self._make_pool), ()
        await self._home.astart()

    def close(self) -> None:
        """Close every connection; harmless when it is closed."""
        if self._home is not None:
            self._home.stop()
        self._held, self._home = (), None

    async def aclose(self) -> None:
        """Close every connection; harmless when it is closed."""
        if self._home is not None:
            await self._home.astop()
        self._held, self._home = (), None

    def __enter__(self) -> Self:
        """Open it on a background loop."""
        self.open()
        return self

    def __exit__(self, *exc: object) -> None:
        """Close every connection."""
        self.close()

    async def __aenter__(self) -> Self:
        """Open it on this loop."""
        await self.aopen()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close every connection."""
        with anyio.CancelScope(shield=True):
            await self.aclose()

    @property
    def is_open(self) -> bool:
        """Whether servers can be connected."""
        return self._home is not None and self._home.is_open

    @property
    def home(self) -> Home:
        """Where the connections live."""
        if self._home is None:
            raise McpConnectionError("the connection pool is not open", hint="write 'with McpConnectionPool() as pool'")
        return self._home

    # ── finding ──

    def get(self, name: str) -> McpConnection | None:
        """The connection of this server; None when nobody connected it."""
        return next((held for held in self._held if held.name == name), None)

    def connections(self) -> tuple[McpConnection, ...]:
        """Every connection, in the order they came."""
        return self._held

    # ── connecting ──

    def connect(self, servers: Iterable[MCPServer]) -> Connected:
        """Each server connected, all at once, or the error why it is not; what came is held until ``release``."""
        wanted = tuple(servers)
        return self.home.call(partial(self.connect_here, wanted, self.arm(wanted)))

    async def aconnect(self, servers: Iterable[MCPServer]) -> Connected:
        """Each server connected, all at once, or the error why it is not; what came is held until ``arelease``."""
        wanted = tuple(servers)
        armed = await anyio.to_thread.run_sync(self.arm, wanted)
        return await self.home.acall(partial(self.connect_here, wanted, armed))

    def arm(self, servers: Iterable[MCPServer]) -> Armed:
        """The servers with placeholders and secrets filled in; may ask files, keyrings and vaults."""
        return arm_servers(servers, self._environment)

    def release(self, connections: Iterable[McpConnection]) -> None:
        """Let go of connections; one that nobody holds any more is closed."""
        if self.is_open:
            self.home.call(partial(self.release_here, tuple(connections)))

    async def arelease(self, connections: Iterable[McpConnection]) -> None:
        """Let go of connections; one that nobody holds any more is closed."""
        if self.is_open:
            await self.home.acall(partial(self.release_here, tuple(connections)))

    # ── on the loop where they live ──

    async def connect_here(self, servers: Iterable[MCPServer], armed: Armed, pool: Pool) -> Connected:
        """What ``connect`` does, on the home's loop."""
        wanted = {server.name: server for server in servers}
        found: Connected = {}

        async def connect_one(server: MCPServer) -> None:
            found[server.name] = await self._connect_one(server, armed[server.name], pool)

        try:
            async with anyio.create_task_group() as group:
                for server in wanted.values():
                    group.start_soon(connect_one, server)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.release_here([held for held in found.values() if isinstance(held, McpConnection)], pool)
            raise
        return {name: found[name] for name in wanted}

    async def _connect_one(
        self, server: MCPServer, armed: ArmedServer | OutfitterError, pool: Pool
    ) -> McpConnection | McpConnectionError:
        if isinstance(armed, OutfitterError):
            return refused(armed, server)
        try:
            held = self._hold(server, armed, pool)
        except McpConnectionError as conflict:
            return conflict
        try:
            await held.upstream.use(_nothing)
        except OutfitterError as error:
            await self.release_here((held,), pool)
            return refused(_cause(error, held), server)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.release_here((held,), pool)
            raise
        return held

    def _hold(self, server: MCPServer, armed: ArmedServer, pool: Pool) -> McpConnection:
        key = share_key(armed)
        for held in self._held:
            if held.name == server.name and held.key != key:
                message = "the pool has another server of this name: the definition or its credentials differ"
                raise McpConnectionError(message, server_name=server.name, hint="rename one, or use another pool")
            if held.name == server.name and server.shareable:
                held.holders += 1
                return held
        made = McpConnection(server, pool.connect(armed), self.home, key)
        self._held = (*self._held, made)
        return made

    async def release_here(self, connections: Iterable[McpConnection], pool: Pool) -> None:
        """What ``release`` does, on the home's loop."""
        for released in connections:
            released.holders -= 1
            if released.holders > 0 or released not in self._held:
                continue
            self._held = tuple(held for held in self._held if held is not released)
            if all(held.upstream is not released.upstream for held in self._held):
                await pool.close(released.upstream)


def _make_pool(pins: PinFile | None) -> Pool:
    return Pool() if pins is None else Pool(rules=SpawnRules(programs=pins.programs))


def _cause(error: OutfitterError, held: McpConnection) -> OutfitterError:
    """What really happened, where the error only says that the server is resting."""
    last = held.upstream.health.last_error
    return last if isinstance(error, UpstreamDown) and last is not None else error


async def _nothing(_link: Link) -> None:
    """Only being connected is asked for."""
