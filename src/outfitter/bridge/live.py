"""Servers connected together, and their tools kept up to date: what a section or a proxy holds.

State changes on the loop where the connections live, one change at a time; readers see a whole state or the next. A
server that says that its tools changed, or that came back after it was lost, is asked again in the background; one
that could not be connected beside others is tried again after its rest.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import anyio
import anyio.to_thread

from outfitter.bridge.bridging import BridgeOptions, ServerTools, ToolSet, bridge_tools
from outfitter.bridge.connection import McpConnection, refused
from outfitter.bridge.events import ToolHeldBack, ToolListChanged
from outfitter.bridge.pool import Armed, McpConnectionPool
from outfitter.bridge.watch import Watch
from outfitter.catalog import MCPServer
from outfitter.errors import McpConnectionError, OutfitterError, UpstreamError
from outfitter.session import Session
from outfitter.upstream import Message, Pool, State

_log = logging.getLogger(__name__)
_METHOD_NOT_FOUND = -32601


@dataclass(frozen=True, slots=True)
class _State:
    """What is connected, what failed, and the tools of it all."""

    sources: Mapping[str, ServerTools] = field(default_factory=dict[str, ServerTools])
    failures: Mapping[str, McpConnectionError] = field(default_factory=dict[str, McpConnectionError])
    tools: ToolSet = field(default_factory=ToolSet)


class LiveServers:
    """Some servers, connected and disconnected together."""

    def __init__(
        self,
        servers: Sequence[MCPServer],
        *,
        session: Session | None = None,
        pool: McpConnectionPool | None = None,
        options: BridgeOptions | None = None,
    ) -> None:
        """Nothing is connected yet. Without a pool they have one of their own, which lives while they are connected."""
        self.servers = tuple(servers)
        self.session = session
        self.options = options or BridgeOptions()
        self.pool = pool or McpConnectionPool(pins=self.options.pins)
        self._owns_pool = pool is None
        self._state: _State | None = None
        self._watch: Watch | None = None

    # ── asking ──

    @property
    def is_connected(self) -> bool:
        """Whether every server is connected at this moment."""
        state = self._state
        if state is None or not self.pool.is_open or state.failures:
            return False
        return all(source.connection.state is State.READY for source in state.sources.values())

    @property
    def failures(self) -> Mapping[str, McpConnectionError]:
        """The servers that could not be connected, with the reason."""
        return {} if self._state is None else self._state.failures

    @property
    def tool_set(self) -> ToolSet:
        """The tools as they are now; McpConnectionError before anything is connected."""
        if self._state is None:
            names = ", ".join(server.name for server in self.servers)
            hint = "call connect(), or write 'with section:'"
            raise McpConnectionError(f"not connected yet: {names or 'no servers'}", hint=hint)
        return self._state.tools

    # ── connecting ──

    def connect(self) -> None:
        """Connect every server that is not connected yet; McpConnectionError when that is not enough to go on."""
        if self._owns_pool:
            self.pool.open()
        try:
            armed = self.pool.arm(self.servers)
            self.pool.home.call(partial(self._connect, armed))
        except BaseException:
            if self._state is None and self._owns_pool:
                self.pool.close()
            raise

    async def aconnect(self) -> None:
        """Connect every server that is not connected yet; McpConnectionError when that is not enough to go on."""
        if self._owns_pool:
            await self.pool.aopen()
        try:
            armed = await anyio.to_thread.run_sync(self.pool.arm, self.servers)
            await self.pool.home.acall(partial(self._connect, armed))
        except BaseException:
            if self._state is None and self._owns_pool:
                with anyio.CancelScope(shield=True):
                    await self.pool.aclose()
            raise

    def disconnect(self) -> None:
        """Let every server go; harmless when that was done."""
        if self._watch is not None and not self._watch.home.is_over:
            self._watch.home.call(self._disconnect)
        self._state = self._watch = None
        if self._owns_pool:
            self.pool.close()

    async def adisconnect(self) -> None:
        """Let every server go; harmless when that was done."""
        if self._watch is not None and not self._watch.home.is_over:
            await self._watch.home.acall(self._disconnect)
        self._state = self._watch = None
        if self._owns_pool:
            await self.pool.aclose()

    def refresh(self) -> None:
        """Ask every connected server for its tools again."""
        names = tuple(self._require().sources)
        self._tell(self.pool.home.call(partial(self._relist, names)))

    async def arefresh(self) -> None:
        """Ask every connected server for its tools again."""
        names = tuple(self._require().sources)
        self._tell(await self.pool.home.acall(partial(self._relist, names)))

    def _require(self) -> _State:
        _ = self.tool_set
        return self._state or _State()

    # ── on the loop where the connections live ──

    def _watch_here(self) -> Watch:
        """Who listens at this home; another home is another beginning."""
        home = self.pool.home
        if self._watch is None or self._watch.home is not home:
            self._state, self._watch = None, Watch(home)
            home.spawn(partial(self._watch.run, self._relist, self._reconnect))
        return self._watch

    async def _connect(self, armed: Armed, pool: Pool) -> None:
        watch = self._watch_here()
        async with watch.gate:
            if self._watch is watch:
                await self._connect_missing(armed, watch, pool)
                return
        await self._connect(armed, pool)  # it was all given up while this call waited for its turn

    async def _connect_missing(self, armed: Armed, watch: Watch, pool: Pool) -> None:
        before = self._state or _State()
        missing = [server for server in self.servers if server.name not in before.sources]
        if self._state is not None and not missing:
            return
        found = await self.pool.connect_here(missing, armed, pool)
        held = {name: connection for name, connection in found.items() if isinstance(connection, McpConnection)}
        try:
            listed = await self._list_all(found, watch)
            after = self._joined(before, listed)
            self._check(after)
        except BaseException:
            kept = [source.connection for source in before.sources.values()]
            with anyio.CancelScope(shield=True):
                await self._give_up([*held.values(), *kept], pool)
            raise
        await self._take(after, held, watch, pool)
        self._tell_held(before.tools, after.tools)

    async def _take(self, after: _State, held: Mapping[str, McpConnection], watch: Watch, pool: Pool) -> None:
        """Go on with a new state; let go of what was connected and does not say its tools."""
        self._state = after
        mute = [name for name in held if name in after.failures]
        watch.deafen(mute)
        watch.rest(pool.patience.cooldown if after.failures else None)
        await self.pool.release_here([held[name] for name in mute], pool)

    async def _list_all(
        self, found: Mapping[str, McpConnection | McpConnectionError], watch: Watch
    ) -> dict[str, ServerTools | McpConnectionError]:
        listed: dict[str, ServerTools | McpConnectionError] = {}
        servers = {server.name: server for server in self.servers}

        async def list_one(name: str, connection: McpConnection) -> None:
            watch.listen(name, connection)
            try:
                listed[name] = self._source(servers[name], connection, await _listed(connection))
            except OutfitterError as error:
                listed[name] = refused(error, servers[name])

        async with anyio.create_task_group() as group:
            for name, connection in found.items():
                if isinstance(connection, McpConnection):
                    group.start_soon(list_one, name, connection)
                else:
                    listed[name] = connection
        return listed

    def _source(self, server: MCPServer, connection: McpConnection, listed: list[Message]) -> ServerTools:
        """What a server offers, and what of it waits for a person; without pins nothing does."""
        pins = self.options.pins or self.pool.pins
        return ServerTools(server, connection, listed, {} if pins is None else pins.look(server, listed))

    def _joined(self, before: _State, listed: Mapping[str, ServerTools | McpConnectionError]) -> _State:
        known = {**before.sources, **listed}
        ordered = [known[server.name] for server in self.servers if server.name in known]
        sources = {source.server.name: source for source in ordered if isinstance(source, ServerTools)}
        failures = {name: error for name, error in listed.items() if isinstance(error, McpConnectionError)}
        return _State(sources, failures, bridge_tools(tuple(sources.values()), self.options, before.tools))

    def _check(self, state: _State) -> None:
        """Refuse to go on without any server, or without one that is required; otherwise tell what is missing."""
        required = [server.name for server in self.servers if server.required and server.name in state.failures]
        fatal = required[:1] or (list(state.failures)[:1] if not state.sources else [])
        for name, error in state.failures.items():
            if name not in fatal:
                _log.warning("not connected: %s", error)
        if fatal:
            raise state.failures[fatal[0]]

    async def _give_up(self, held: Iterable[McpConnection], pool: Pool) -> None:
        watch, self._watch, self._state = self._watch, None, None
        if watch is not None:
            watch.end()
        await self.pool.release_here(held, pool)

    async def _disconnect(self, pool: Pool) -> None:
        if self._watch is None:
            return
        self._watch.end()
        async with self._watch.gate:
            state = self._state or _State()
            await self._give_up([source.connection for source in state.sources.values()], pool)

    # ── keeping up ──

    async def _reconnect(self) -> None:
        """Try the servers again that could not be connected; what comes is bridged beside the rest."""
        missing = [server for server in self.servers if server.name in self.failures]
        armed = await anyio.to_thread.run_sync(self.pool.arm, missing)
        await self.pool.home.acall(partial(self._reconnect_here, missing, armed))

    async def _reconnect_here(self, missing: Sequence[MCPServer], armed: Armed, pool: Pool) -> None:
        watch = self._watch
        if watch is None:
            return
        async with watch.gate:
            before = self._state
            if before is None or self._watch is not watch:
                return
            # Somebody may have connected one of them meanwhile.
            found = await self.pool.connect_here([one for one in missing if one.name in before.failures], armed, pool)
            held = {name: connection for name, connection in found.items() if isinstance(connection, McpConnection)}
            try:
                listed = await self._list_all(found, watch)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await self.pool.release_here(held.values(), pool)
                raise
            after = self._joined(before, listed)
            await self._take(after, held, watch, pool)
        self._announce(before.tools, after.tools)

    async def _relist(self, names: Sequence[str], _pool: Pool | None = None) -> list[OutfitterError]:
        """Take the servers' lists as they are now; the errors of those that did not answer, whose tools stay."""
        watch = self._watch
        if watch is None:
            return []
        errors: list[OutfitterError] = []
        async with watch.gate:
            before = self._state
            if before is None:
                return []
            sources = dict(before.sources)
            for name in names:
                if name not in sources:
                    continue
                source = sources[name]
                try:
                    listed = await _listed(source.connection)
                    sources[name] = self._source(source.server, source.connection, listed)
                except OutfitterError as error:
                    errors.append(refused(error, source.server))
            after = bridge_tools(tuple(sources.values()), self.options, before.tools)
            self._state = _State(sources, before.failures, after)
        self._announce(before.tools, after)
        return errors

    def _announce(self, before: ToolSet, after: ToolSet) -> None:
        if self.session is None:
            return
        for server in self.servers:
            old, new = before.of_server(server.name), after.of_server(server.name)
            added, removed = new.keys() - old.keys(), old.keys() - new.keys()
            changed = {name for name in new.keys() & old.keys() if new[name] is not old[name]}
            if added or removed or changed:
                told = ToolListChanged(
                    server.name, _sorted(added), _sorted(removed), _sorted(changed), self.session.session_id,
                    datetime.now(UTC),
                )  # fmt: skip
                self.session.dispatch(told)
        self._tell_held(before, after)

    def _tell_held(self, before: ToolSet, after: ToolSet) -> None:
        for key, held in after.held.items():
            if self.session is not None and before.held.get(key) != held:
                told = ToolHeldBack(
                    key.server, key.tool, held.why.value, held.reason, self.session.session_id, datetime.now(UTC)
                )
                self.session.dispatch(told)

    def _tell(self, errors: Sequence[OutfitterError]) -> None:
        if errors:
            raise errors[0]


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


async def _listed(connection: McpConnection) -> list[Message]:
    """The tools of the server; none when it says that it has no tools at all."""
    try:
        return await connection.upstream.use(lambda link: link.list_tools())
    except UpstreamError as error:
        if error.rpc_code == _METHOD_NOT_FOUND:
            return []
        raise
