"""The servers that Claude Code connects itself: which they are, how they stand, and what their tools are called here.

They are set by a request over the client's control channel, at the beginning and again when a section was opened. A
server that cannot be connected is told like a bridged one; one that fails in calls rests after a few of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Iterable, Mapping
from itertools import permutations
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import anyio.to_thread

from outfitter.adapters.claude.config import ClaudeAgentSDKClientConfig
from outfitter.adapters.claude.definitions import Definition, define_servers
from outfitter.adapters.claude.faults import is_foreign
from outfitter.adapters.claude.guests import Guests
from outfitter.adapters.claude.place import Place
from outfitter.adapters.claude.wink import WINK
from outfitter.adapters.reading import items, text
from outfitter.adapters.rests import Rests
from outfitter.basics import quote
from outfitter.calls import tell_missing, tell_outage
from outfitter.catalog import MCPServer, ToolKey, build_name_map
from outfitter.errors import Conflict, McpConnectionError, OutfitterError, Unavailable, UpstreamDown, UpstreamLost

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeSDKClient

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
_log = logging.getLogger(__name__)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def cli_name(server: str, tool: str) -> str:
    """Under which name Claude Code shows a tool to the model."""
    return f"mcp__{_UNSAFE.sub('_', server)}__{_UNSAFE.sub('_', tool)}"


async def understood(answer: Awaitable[T]) -> T:
    """What Claude Code answers to a request of the client; Unavailable when it refuses."""
    try:
        return await answer
    except Exception as error:
        if not is_foreign(error):
            raise
        raise Unavailable(f"Claude Code refuses: {quote(str(error))}", where="claude") from None


async def control(client: ClaudeSDKClient, request: Json) -> Json:
    """What Claude Code answers to a request for which the SDK has no method; Unavailable when it refuses."""
    query: Any = getattr(client, "_query", None)
    send = getattr(query, "_send_control_request", None)
    if send is None:
        hint = "use route='bridge', or the version of claude-agent-sdk that 'outfitter[claude]' asks for"
        raise Unavailable("this version of the Claude Agent SDK cannot set servers", where="claude", hint=hint)
    return await understood(cast("Awaitable[Json]", send(request)))


class Abroad:
    """The servers of one evaluation that Outfitter does not connect; none with the routes that connect none so."""

    def __init__(self, config: ClaudeAgentSDKClientConfig, place: Place, guests: Guests) -> None:
        """Nothing is connected yet."""
        self._config = config
        self._place = place
        self._guests = guests
        self._servers: dict[str, MCPServer] = {}
        self._definitions: dict[str, Definition] = {}
        self._names: dict[str, str] = {}
        self._rests = Rests()

    # ── connecting ──

    async def connect(self, client: ClaudeSDKClient, servers: Iterable[MCPServer]) -> str:
        """Have these servers connected; what the model is told of those that are not.

        McpConnectionError when one of them is required.
        """
        if self._config.route not in {"native", "gateway"}:
            return ""
        route = self._config.gateway
        wanted = {server.name: server for server in (servers if route is None else route.through(servers))}
        if wanted.keys() == self._servers.keys():
            return ""
        _check_names(wanted)
        self._servers = wanted
        defined = await self._define(wanted)
        self._definitions = {name: one for name, one in defined.items() if isinstance(one, Definition)}
        failures = {name: one for name, one in defined.items() if isinstance(one, McpConnectionError)}
        configs = {name: one.config for name, one in self._definitions.items()}
        # Without a word about it, the server of this process would be taken out.
        asked = {WINK: {"type": "sdk", "name": WINK}, **configs}
        await control(client, {"subtype": "mcp_set_servers", "servers": asked})
        status = items((await understood(client.get_mcp_status())).get("mcpServers"))
        failures |= self._failed(status)
        self._check(failures)
        await self._welcome(client, status)
        return tell_missing(sorted(failures), {name: wanted[name].fallback for name in failures})

    async def _define(self, servers: Mapping[str, MCPServer]) -> Mapping[str, Definition | McpConnectionError]:
        home, cwd = self._place.home, self._place.cwd
        return await anyio.to_thread.run_sync(lambda: define_servers(servers.values(), home, cwd))

    def _failed(self, status: Iterable[Json]) -> dict[str, McpConnectionError]:
        stands = {text(one.get("name")): one for one in status}
        found: dict[str, McpConnectionError] = {}
        for name, definition in self._definitions.items():
            one = stands.get(name, {})
            if one.get("status") == "connected":
                continue
            said = definition.mask(text(one.get("error")) or text(one.get("status")) or "it is not there")
            found[name] = McpConnectionError(f"Claude Code cannot connect it: {said}", server_name=name)
        return found

    def _check(self, failures: Mapping[str, McpConnectionError]) -> None:
        for name in failures:
            if self._servers[name].required:
                raise failures[name]
        for error in failures.values():
            _log.warning("not connected: %s", error)

    async def _welcome(self, client: ClaudeSDKClient, status: Iterable[Json]) -> None:
        """Have a guest for every tool that passes the filters, and the others hidden from the model."""
        listed = {
            ToolKey(text(one.get("name")), text(tool.get("name"))): text(tool.get("description"))
            for one in status
            if text(one.get("name")) in self._servers
            for tool in items(one.get("tools"))
        }
        passed = {key: said for key, said in listed.items() if self._servers[key.server].tools.allows(key.tool)}
        shown = build_name_map((key, self._servers[key.server].prefix) for key in passed).shown
        for key, said in passed.items():
            name = cli_name(key.server, key.tool)
            if self._names.setdefault(name, shown[key]) != shown[key]:
                raise Conflict(f"two tools become '{name}' in Claude Code", hint="give one of the servers another name")
            self._guests.invite(shown[key], server=self._servers[key.server], tool=key.tool, description=said)
        hidden = [cli_name(key.server, key.tool) for key in listed.keys() - passed.keys()]
        if hidden:
            deny = {"permissions": {"deny": sorted(hidden)}}
            await control(client, {"subtype": "apply_flag_settings", "settings": deny})

    # ── calls ──

    def server_of(self, hooked: Mapping[str, Any]) -> str:
        """The server that a hook speaks of; empty when it is none of these."""
        named: Mapping[str, Any] = hooked.get("mcp_server") or {}
        name = text(named.get("name"))
        return name if name in self._servers else ""

    def guest_of(self, hooked: Mapping[str, Any]) -> str:
        """What the tool that a hook speaks of is called here; one that came after the list was read is added."""
        called, name = text(hooked.get("tool_name")), self.server_of(hooked)
        if not name or called in self._names:
            return self._names.get(called, called)
        server, tool = self._servers[name], called.removeprefix(cli_name(name, ""))
        if not server.tools.allows(tool):
            return called
        key = ToolKey(name, tool)
        self._names[called] = build_name_map([(key, server.prefix)]).shown[key]
        self._guests.invite(self._names[called], server=server, tool=tool)
        return self._names[called]

    def rest(self, name: str) -> UpstreamDown | None:
        """Why this server is not asked now, if it is not."""
        return self._rests.refusal(name)

    def note(self, name: str, said: str | None) -> UpstreamLost | None:
        """Note how a call of this server ended; the error when it was the server that failed, and not the tool."""
        is_masked = said is not None and name in self._definitions
        return self._rests.note(name, self._definitions[name].mask(said or "") if is_masked else said)

    def tell(self, name: str, fault: OutfitterError) -> str:
        """What the model is told of a server that failed its call."""
        return tell_outage(name, fault, fallback=self._servers[name].fallback)


def _check_names(servers: Iterable[str]) -> None:
    """Refuse names that Claude Code cannot tell apart: it would merge their tools without a word."""
    known = {name: cli_name(name, "") for name in sorted(servers)}
    for first, second in permutations(known, 2):
        if known[second].startswith(known[first]):
            message = f"Claude Code cannot tell the tools of the servers '{first}' and '{second}' apart"
            raise Conflict(message, hint="give one of them another name, or bridge them")
