"""MCP servers as a section of a prompt: their tools as typed tools, and a text that tells of them.

The section says which servers and how they are shown; connecting and keeping up is ``live``. Every blocking method has
an asynchronous twin whose name starts with ``a``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, Unpack

import anyio

from outfitter.bridge.bridging import BridgeOptions, Overrides
from outfitter.bridge.connection import McpConnection
from outfitter.bridge.inventory import fill_template, tell_searched, write_inventory
from outfitter.bridge.live import LiveServers
from outfitter.bridge.pin_file import PinFile
from outfitter.bridge.pool import McpConnectionPool
from outfitter.bridge.prompts import write_prompt
from outfitter.bridge.resources import McpResources
from outfitter.bridge.results import DEFAULT_LIMITS, ResultLimits
from outfitter.bridge.shelf import ResultShelf
from outfitter.catalog import MCPServer, ToolKey
from outfitter.errors import McpConnectionError, McpSchemaError, PromptValidationError
from outfitter.policy import Held
from outfitter.prompt import MarkdownSection, Section, SectionOptions
from outfitter.session import Session
from outfitter.tools import Tool


@dataclass(frozen=True, slots=True)
class McpIntegrationParams:
    """The parameters of the section: none; a subclass may add fields for its template."""


class IntegrationOptions(SectionOptions, total=False):
    """What an integration section takes besides its servers, session, title and key."""

    template: str | None
    connect_on_init: bool
    pool: McpConnectionPool | None
    description_limit: int | None
    result_limits: ResultLimits
    overrides: Overrides
    """What is said otherwise about tools, by the name of their server and their own."""
    pins: PinFile | None
    """With one, tools and programs that are not what was approved are held back."""
    shelf: ResultShelf | None
    """With one, results that are too large for a model are kept there, and a tool reads them."""


class McpIntegrationSection(Section[McpIntegrationParams]):
    """Servers whose tools a prompt offers as its own. Connect it, or use it as a context manager, before rendering."""

    def __init__(
        self,
        *,
        servers: Sequence[MCPServer],
        session: Session,
        title: str = "MCP Integrations",
        key: str = "mcp.integrations",
        **options: Unpack[IntegrationOptions],
    ) -> None:
        """Nothing is connected unless ``connect_on_init`` says so. A pool that is given may be shared with others."""
        self.template = options.pop("template", None)
        connects = options.pop("connect_on_init", False)
        pool = options.pop("pool", None)
        how = BridgeOptions(
            options.pop("description_limit", None),
            options.pop("result_limits", DEFAULT_LIMITS),
            options.pop("overrides", {}),
            options.pop("pins", None),
            options.pop("shelf", None),
        )
        options.setdefault("default_params", McpIntegrationParams())
        options.setdefault("accepts_overrides", False)
        super().__init__(title=title, key=key, **options)
        self.live = LiveServers(_check(servers, key), session=session, pool=pool, options=how)
        self._shared_pool = pool
        if connects:
            self.connect()

    # ── connecting ──

    def connect(self) -> None:
        """Connect every server that is not connected yet.

        McpConnectionError when none can be, or one that is required; otherwise ``failures`` tells which are missing,
        and another ``connect()`` tries those again.
        """
        self.live.connect()

    async def aconnect(self) -> None:
        """Connect every server that is not connected yet, as ``connect`` does."""
        await self.live.aconnect()

    def disconnect(self) -> None:
        """Close every connection that nobody else holds; harmless when it was done."""
        self.live.disconnect()

    async def adisconnect(self) -> None:
        """Close every connection that nobody else holds; harmless when it was done."""
        await self.live.adisconnect()

    def refresh(self) -> None:
        """Ask every server for its tools again."""
        self.live.refresh()

    async def arefresh(self) -> None:
        """Ask every server for its tools again."""
        await self.live.arefresh()

    def __enter__(self) -> Self:
        """Connect."""
        self.connect()
        return self

    def __exit__(self, *exc: object) -> None:
        """Disconnect."""
        self.disconnect()

    async def __aenter__(self) -> Self:
        """Connect."""
        await self.aconnect()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Disconnect, also when the block was cancelled."""
        with anyio.CancelScope(shield=True):
            await self.adisconnect()

    # ── what there is ──

    @property
    def servers(self) -> tuple[MCPServer, ...]:
        """The servers it was given."""
        return self.live.servers

    @property
    def session(self) -> Session | None:
        """Who hears when tools change."""
        return self.live.session

    @property
    def pool(self) -> McpConnectionPool:
        """Where its connections are."""
        return self.live.pool

    @property
    def connected(self) -> bool:
        """Whether every server is connected."""
        return self.live.is_connected

    @property
    def failures(self) -> Mapping[str, McpConnectionError]:
        """The servers that could not be connected, with the reason."""
        return self.live.failures

    @property
    def rejected(self) -> tuple[McpSchemaError, ...]:
        """The tools that were left out because their schemas cannot be used."""
        return self.live.tool_set.rejected

    @property
    def held(self) -> Mapping[ToolKey, Held]:
        """The tools that are not offered because they are not what somebody approved."""
        return self.live.tool_set.held

    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """The bridged tools of connected servers as they are now; McpConnectionError before ``connect``."""
        shelf = self.live.options.shelf
        return (*self._tools, *self.live.tool_set.tools, *(() if shelf is None else (shelf.tool,)))

    def searched(self) -> tuple[Tool[Any, Any], ...]:
        """Those of servers, and its own; the tool that reads kept results stays listed."""
        return (*self._tools, *self.live.tool_set.tools) if self.tool_search else ()

    @property
    def tools_by_server(self) -> dict[str, tuple[Tool[Any, Any], ...]]:
        """The bridged tools under the names of their servers."""
        found = self.live.tool_set
        missing = self.live.failures
        return {
            server.name: tuple(found.of_server(server.name).values())
            for server in self.servers
            if server.name not in missing
        }

    def resources(self) -> Mapping[type, object]:
        """The pool and the servers' resources, for handlers."""
        return {McpConnectionPool: self.pool, McpResources: McpResources(self.pool)}

    def render_body(self, params: McpIntegrationParams | None) -> str:
        """The inventory of tools, or the template with what is known of them."""
        tools = self.tools_by_server
        if self.tool_search and self.template is None:
            return tell_searched(tools)
        return (
            write_inventory(tools) if self.template is None else fill_template(self.template, tools, params, self.key)
        )

    # ── prompts ──

    def prompt_section(
        self, server: str, prompt: str, arguments: Mapping[str, str] | None = None
    ) -> MarkdownSection[None]:
        """A prompt of a server as a section of its own."""
        return write_prompt(server, prompt, self._connection(server).get_prompt(prompt, arguments))

    async def aprompt_section(
        self, server: str, prompt: str, arguments: Mapping[str, str] | None = None
    ) -> MarkdownSection[None]:
        """A prompt of a server as a section of its own."""
        return write_prompt(server, prompt, await self._connection(server).aget_prompt(prompt, arguments))

    def _connection(self, server: str) -> McpConnection:
        found = self.pool.get(server)
        if found is None:
            raise McpConnectionError("not connected", server_name=server, hint="call connect() first")
        return found

    def clone(self, **changes: object) -> Self:
        """Another section like this one, not connected; a shared pool stays shared."""
        template = changes.pop("template", self.template)
        session, shelf = changes.pop("session", self.live.session), self.live.options.shelf
        fresh = super().clone(**changes)
        fresh.template = None if template is None else str(template)
        fresh.live = LiveServers(
            self.servers,
            session=session if isinstance(session, Session) else None,
            pool=self._shared_pool,
            options=replace(self.live.options, shelf=None if shelf is None else shelf.fresh()),
        )
        return fresh


def _check(servers: Sequence[MCPServer], key: str) -> tuple[MCPServer, ...]:
    names = [server.name for server in servers]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PromptValidationError(f"section '{key}' declares server '{twice[0]}' twice")
    return tuple(servers)
