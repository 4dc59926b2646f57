"""Who shares a connection with whom: one process or connection for all whose definition, headers and secrets are equal.

The pool is opened and closed by one task; its connections may be used from any task of the same loop. Nothing is
started before it is needed. From other threads use ``portal``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import anyio
from anyio.abc import TaskGroup

from outfitter.basics import Secret
from outfitter.errors import OutfitterError, Refused, UpstreamDown
from outfitter.resolution import ArmedCredentials, ArmedServer, ArmedStdio, PlannedServer
from outfitter.upstream.clock import loop_time
from outfitter.upstream.connection import Connection
from outfitter.upstream.eras import Era
from outfitter.upstream.lifecycle import Health, Patience
from outfitter.upstream.link import OnNotice, OpenWire
from outfitter.upstream.peers import Peer
from outfitter.upstream.uptime import Standing, Uptime
from outfitter.upstream.wire import Inbox, Wire

if TYPE_CHECKING:
    from outfitter.upstream.authorizer import Authorizer
    from outfitter.upstream.http_client import HttpClient
    from outfitter.upstream.journal import ProcessJournal
    from outfitter.upstream.launch import SpawnRules

SignIn = Callable[[ArmedServer], "Authorizer | None"]


_FEW = 64


def share_key(server: ArmedServer) -> Secret:
    """What must be equal for two servers to share: a digest of the transport with everything filled in."""
    transport = server.transport
    if isinstance(transport, ArmedStdio):
        parts: list[str | Secret] = ["stdio", transport.command, *transport.args, transport.cwd or ""]
        parts += _pairs(transport.env)
    else:
        parts = ["sse" if transport.is_sse else "http", transport.url, *_pairs(transport.headers)]
    if isinstance(server.auth, ArmedCredentials):
        auth = server.auth
        parts += [auth.token_url, auth.client_id, auth.client_secret, auth.scope, auth.audience]
    return Secret.compose(_digest, *parts)


def _pairs(values: Mapping[str, Secret]) -> list[str | Secret]:
    return [part for name in sorted(values) for part in (name, values[name])]


def _digest(parts: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()


@dataclass(slots=True)
class Pool:
    """The live connections of a process. ``sign_in`` finds who authorizes for a server without client credentials."""

    patience: Patience = field(default_factory=Patience)
    idle_seconds: float | None = 300.0
    journal: ProcessJournal | None = None
    rules: SpawnRules | None = None
    sign_in: SignIn | None = None
    open_wire: OpenWire | None = None
    """Opens wires in another way, for instance to a server inside this process."""
    _group: TaskGroup | None = None
    _http: HttpClient | None = None
    _shared: dict[Secret, Connection] = field(default_factory=dict[Secret, Connection])
    _authorizers: dict[ArmedCredentials, Authorizer] = field(default_factory=dict["ArmedCredentials", "Authorizer"])
    _all: list[Connection] = field(default_factory=list[Connection])
    _sweep_at: int = _FEW
    _uptimes: dict[str, Uptime] = field(default_factory=dict[str, Uptime])
    """By the name of the server, as long as the pool lives."""

    async def __aenter__(self) -> Self:
        """Open the pool; reap what a dead process of ours left behind."""
        if self.journal is not None:
            self.journal.reap_orphans()
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close every connection and wait until all are gone."""
        if self._group is not None:
            group, self._group = self._group, None
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)
        if self._http is not None:
            await self._http.close()

    def connect(
        self, server: ArmedServer, *, peer: Peer | None = None, on_notice: OnNotice | None = None,
        prefers: Era = Era.MODERN,
    ) -> Connection:  # fmt: skip
        """The connection for a server: shared when it may be, opened when it is first used."""
        if self._group is None:
            raise UpstreamDown("the pool is closed", retry_after=0.0)
        may_share = server.planned.definition.value.shareable and peer is None and prefers is Era.MODERN
        key = share_key(server) if may_share else None
        connection = self._shared.get(key) if key is not None else None
        if connection is None:
            connection = self._make(server, peer, prefers)
            if key is not None:
                self._shared[key] = connection
        if on_notice is not None:
            connection.listen_to(on_notice)
        return connection

    def _make(self, server: ArmedServer, peer: Peer | None, prefers: Era) -> Connection:
        uptime = self._uptimes.setdefault(server.planned.alias, Uptime())
        connection = Connection(
            server, self._open_wire, self._start, peer, self.patience, self.idle_seconds, prefers, uptime=uptime
        )
        self._forget_unused()
        self._all.append(connection)
        return connection

    async def close(self, connection: Connection) -> None:
        """End one connection for everyone who shares it; a new one is made when its server is connected again."""
        self.let_go(connection)
        await connection.close()

    def let_go(self, connection: Connection) -> None:
        """The same without waiting until it is gone."""
        self._all = [other for other in self._all if other is not connection]
        self._shared = {key: other for key, other in self._shared.items() if other is not connection}
        connection.give_up()

    def _start(self, connection: Connection) -> None:
        if self._group is None:
            raise UpstreamDown("the pool is closed", retry_after=0.0)
        self._group.start_soon(connection.run)

    def _forget_unused(self) -> None:
        """Let go of connections that nobody uses any more, each time their number has doubled."""
        if len(self._all) < self._sweep_at or self.idle_seconds is None:
            return
        now, idle = loop_time(), self.idle_seconds
        self._all = [connection for connection in self._all if not connection.is_forgettable(now, idle)]
        kept = set(map(id, self._all))
        self._shared = {key: connection for key, connection in self._shared.items() if id(connection) in kept}
        self._sweep_at = max(_FEW, 2 * len(self._all))

    def connections(self) -> tuple[Connection, ...]:
        """Every connection, open or not."""
        return tuple(self._all)

    def standings(self) -> dict[str, Standing]:
        """How each server has done since the pool was opened, those that nobody uses any more included."""
        now = loop_time()
        healths: dict[str, list[Health]] = {}
        for connection in self._all:
            healths.setdefault(connection.server.planned.alias, []).append(connection.health)
        return {name: uptime.standing(healths.get(name, ()), now) for name, uptime in self._uptimes.items()}

    def _open_wire(self, server: ArmedServer, inbox: Inbox) -> AbstractAsyncContextManager[Wire]:
        if self.open_wire is not None:
            return self.open_wire(server, inbox)
        if isinstance(server.transport, ArmedStdio):
            from outfitter.upstream.stdio import open_stdio_wire

            return open_stdio_wire(server, inbox, journal=self.journal, rules=self.rules)
        from outfitter.upstream.http import open_http_wire
        from outfitter.upstream.http_client import HttpClient
        from outfitter.upstream.sse import open_sse_wire

        if self._http is None:
            self._http = HttpClient()
        authorizer = self._authorizer(server, self._http)
        if server.transport.is_sse:
            return open_sse_wire(server, inbox, self._http, authorizer)
        return open_http_wire(server, inbox, self._http, authorizer)

    def _authorizer(self, server: ArmedServer, client: HttpClient) -> Authorizer | None:
        """Who gets the credentials; servers with the same client share its token."""
        if not isinstance(server.auth, ArmedCredentials):
            return None if self.sign_in is None else self.sign_in(server)
        from outfitter.upstream.oauth import ClientCredentialsAuthorizer

        if server.auth not in self._authorizers:
            self._authorizers[server.auth] = ClientCredentialsAuthorizer(server.auth, client)
        return self._authorizers[server.auth]


OnConnected = Callable[[str, "Connection | OutfitterError"], None]


async def connect_all(
    pool: Pool, servers: Mapping[str, ArmedServer | OutfitterError], on_connected: OnConnected | None = None
) -> dict[str, Connection | OutfitterError]:
    """Every server tried at once; a failing one is told as its error and disturbs no other."""
    found: dict[str, Connection | OutfitterError] = {}

    async def try_one(alias: str, server: ArmedServer | OutfitterError) -> None:
        found[alias] = server if isinstance(server, OutfitterError) else await _try(pool.connect(server))
        if on_connected is not None:
            on_connected(alias, found[alias])

    async with anyio.create_task_group() as group:
        for alias, server in servers.items():
            group.start_soon(try_one, alias, server)
    return {alias: found[alias] for alias in servers}


async def _try(connection: Connection) -> Connection | OutfitterError:
    try:
        await connection.use(_nothing)
    except OutfitterError as error:
        return error
    return connection


def require(found: Mapping[str, Connection | OutfitterError], servers: Mapping[str, PlannedServer]) -> None:
    """Refuse to go on when a server that is marked ``required`` could not be connected."""
    missing = [
        error
        for alias, error in found.items()
        if isinstance(error, OutfitterError) and servers[alias].definition.value.required
    ]
    if missing:
        raise Refused("a required server is not available", missing)


async def _nothing(_link: object) -> None:
    """Only being connected is asked for."""
