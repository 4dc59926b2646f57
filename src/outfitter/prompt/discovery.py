"""Which tools the servers of a prompt really have, asked at render time.

All servers are asked at once. One that does not answer is told with a warning and an empty bundle, unless it is
required. Nothing is called; calling is ``bridge``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from outfitter.catalog import JsonValue, MCPServer, ToolKey, build_name_map
from outfitter.errors import OutfitterError, Refused
from outfitter.prompt.external import ExternalToolBundle, ExternalToolSpec
from outfitter.resolution import ArmedServer
from outfitter.upstream import arm_servers

if TYPE_CHECKING:
    from outfitter.upstream import Pool, SyncPool

_log = logging.getLogger(__name__)
_FAILED = "prompt.render.discovery_failed"
_AT_ONCE = 32
Listing = Sequence[Mapping[str, Any]] | OutfitterError


def discover(servers: Sequence[MCPServer], pool: SyncPool | None = None) -> tuple[ExternalToolBundle, ...]:
    """What the servers offer, over a pool of our own or the one that is given."""
    if not servers:
        return ()
    if pool is not None:
        return _bundles(servers, _list_all(pool, arm_servers(servers)))
    from outfitter.upstream import SyncPool

    with SyncPool() as own:
        return _bundles(servers, _list_all(own, arm_servers(servers)))


async def adiscover(servers: Sequence[MCPServer], pool: Pool | None = None) -> tuple[ExternalToolBundle, ...]:
    """What the servers offer, awaited."""
    if not servers:
        return ()
    if pool is not None:
        return _bundles(servers, await _alist_all(pool, arm_servers(servers)))
    from outfitter.upstream import Pool

    async with Pool() as own:
        return _bundles(servers, await _alist_all(own, arm_servers(servers)))


def _list_all(pool: SyncPool, armed: Mapping[str, ArmedServer | OutfitterError]) -> dict[str, Listing]:
    from concurrent.futures import ThreadPoolExecutor

    def ask(server: ArmedServer | OutfitterError) -> Listing:
        try:
            return server if isinstance(server, OutfitterError) else pool.list_tools(server)
        except OutfitterError as error:
            return error

    with ThreadPoolExecutor(min(len(armed), _AT_ONCE)) as threads:
        return dict(zip(armed, threads.map(ask, armed.values()), strict=True))


async def _alist_all(pool: Pool, armed: Mapping[str, ArmedServer | OutfitterError]) -> dict[str, Listing]:
    from outfitter.upstream import connect_all

    listed: dict[str, Listing] = {}
    for name, connection in (await connect_all(pool, armed)).items():
        try:
            failed = isinstance(connection, OutfitterError)
            listed[name] = connection if failed else await connection.use(lambda link: link.list_tools())
        except OutfitterError as error:
            listed[name] = error
    return listed


def _bundles(servers: Sequence[MCPServer], listed: Mapping[str, Listing]) -> tuple[ExternalToolBundle, ...]:
    failed = {name: found for name, found in listed.items() if isinstance(found, OutfitterError)}
    missing = [failed[server.name] for server in servers if server.required and server.name in failed]
    if missing:
        raise Refused("a required server is not available", missing)
    for name, error in failed.items():
        context = {"mcp_name": name, "code": error.code}
        _log.warning("%s: server '%s': %s", _FAILED, name, error, extra={"event": _FAILED, "context": context})
    allowed = {server.name: _allowed(server, listed[server.name]) for server in servers}
    names = build_name_map(
        (ToolKey(server.name, tool), server.prefix) for server in servers for tool in allowed[server.name]
    ).shown
    return tuple(
        ExternalToolBundle(
            server.name,
            tuple(
                _spec(names[ToolKey(server.name, name)], server.name, tool)
                for name, tool in allowed[server.name].items()
            ),
            error=str(failed.get(server.name, "")),
        )
        for server in servers
    )


def _allowed(server: MCPServer, found: Listing) -> dict[str, Mapping[str, Any]]:
    if isinstance(found, OutfitterError):
        return {}
    named = ((tool.get("name"), tool) for tool in found)
    return {name: tool for name, tool in named if isinstance(name, str) and server.tools.allows(name)}


def _spec(name: str, server: str, tool: Mapping[str, Any]) -> ExternalToolSpec:
    return ExternalToolSpec(
        name,
        _text(tool.get("description")),
        _object(tool.get("inputSchema")) or {},
        output_schema=_object(tool.get("outputSchema")),
        server=server,
        tool=str(tool.get("name")),
        title=_text(tool.get("title")),
        annotations=_object(tool.get("annotations")) or {},
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Any) -> Mapping[str, JsonValue] | None:  # noqa: ANN401 - whatever the server sent
    return cast("Mapping[str, JsonValue]", value) if isinstance(value, dict) else None
