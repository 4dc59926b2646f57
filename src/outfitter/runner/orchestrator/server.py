"""The orchestrator as an MCP server: loopback, a port of its own, streamable HTTP in both eras, by the ``mcp`` SDK.

Every request stands alone: who calls is what its X-Agent-Session-Id says, which the gateway arms. The path names a run
and holds a secret that was made for this run of this session, so that no other program of this machine can drive it;
it is good as long as that run is executed here. Host and Origin are checked by the SDK.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager, asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import Any

import msgspec
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from outfitter.errors import Invalid, OutfitterError
from outfitter.gateway import Listener, answering, bind_loopback
from outfitter.runner.orchestrator.agents import Agents
from outfitter.runner.orchestrator.client import Json
from outfitter.runner.orchestrator.runs import Waiter
from outfitter.runner.orchestrator.tools import TOOLS, told
from outfitter.runner.orders import Offer
from outfitter.runner.ports import Presence

_log = logging.getLogger("outfitter.runner")
NAME = "agent-orchestrator"
SESSION_HEADER = "x-agent-session-id"
_HOST = "127.0.0.1"
_PATH = "/mcp/"
_MOST_BYTES = 512 * 1024
_DRAIN_SECONDS = 1
Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]
MakeUrl = Callable[[str, str], str]
"""Makes the URL for a session and its run."""


@dataclass(frozen=True, slots=True)
class Door:
    """Lets in who knows the path of a run that is executed now. ``app`` answers them."""

    app: Application
    presence: Presence
    key: bytes = field(repr=False)

    def path(self, session_id: str, run_id: str) -> str:
        """The path for one run of one session."""
        made_for = f"{session_id}\0{run_id}".encode()
        return f"{_PATH}{run_id}/{hmac.digest(self.key, made_for, hashlib.sha256).hex()}"

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has them
        """Answer, or say that there is nothing here."""
        if self._opens(scope["path"], _session_ids(scope)):
            await self.app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"nothing is here"})

    def _opens(self, path: str, session_ids: list[str]) -> bool:
        """Whether the path was made for the one session that calls, and its run goes on."""
        if len(session_ids) != 1:
            return False
        run_id = _run_of(path)
        wanted = self.path(session_ids[0], run_id)
        is_ours = hmac.compare_digest(path.encode("utf-8", "replace"), wanted.encode("utf-8", "replace"))
        return is_ours and self.presence.is_active(run_id)


def _run_of(path: str) -> str:
    return path.removeprefix(_PATH).partition("/")[0]


def _session_ids(scope: Scope) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == SESSION_HEADER.encode()]


@dataclass(frozen=True, slots=True)
class Desk:
    """Answers requests of either era."""

    agents: Agents
    presence: Presence

    async def list_tools(
        self, _context: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """All tools; they are the same for everyone."""
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=tool.about,
                    input_schema=tool.schema,
                    annotations=types.ToolAnnotations(
                        read_only_hint=tool.only_looks, destructive_hint=name == "stop_agent", open_world_hint=False
                    ),
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call_tool(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """What the call came to; an error is an answer that the agent reads."""
        try:
            return _answered(await self._call(context, params))
        except OutfitterError as error:
            return types.CallToolResult(content=[types.TextContent(text=told(error))], is_error=True)
        except Exception as error:  # noqa: BLE001 - the SDK would answer without a word; the log says what is wrong
            _log.exception("tool %s failed", params.name if params.name in TOOLS else "?")
            text = f"[internal] the orchestrator failed: {type(error).__name__}"
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)

    async def _call(
        self, context: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> Mapping[str, Any]:
        tool = TOOLS.get(params.name)
        if tool is None:
            raise Invalid(f"no tool {params.name[:64]!a}", hint=f"there are {', '.join(TOOLS)}")
        given = None if context.request is None else context.request.headers.get(SESSION_HEADER)
        caller = await self.agents.family.caller(given)  # the door lets in no request that names several
        return await tool.call(self.agents, caller, params.arguments or {}, self._waiter(context))

    def _waiter(self, context: ServerRequestContext[Any, Any]) -> Waiter:
        run_id = "" if context.request is None else _run_of(context.request.url.path)

        async def tell(waited: float, seconds: float, state: str) -> None:
            await context.session.report_progress(waited, seconds, f"the agent is {state}")

        def rest(run: Json) -> AbstractContextManager[None]:
            other = Offer(run["id"], run["agent_name"], run["session_id"])
            return self.presence.waiting(run_id, other, is_pending=run["state"] == "pending")

        hears = bool(context.meta and context.meta.get("progress_token") is not None)
        return Waiter(hears, tell, rest)


def _answered(shown: Mapping[str, Any]) -> types.CallToolResult:
    text = msgspec.json.encode(shown).decode()
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=dict(shown))


@asynccontextmanager
async def serving(agents: Agents, presence: Presence) -> AsyncGenerator[MakeUrl]:
    """Answer on a free port as long as the block lasts; what is yielded makes the URL for a run of a session."""
    desk = Desk(agents, presence)
    server = Server(
        NAME,
        instructions="Start other agents on tasks of their own, and collect their results.",
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        get_tool_input_schema=lambda name: TOOLS[name].schema if name in TOOLS else None,
    )
    with closing(bind_loopback("the orchestrator")) as bound:
        place = f"{_HOST}:{bound.getsockname()[1]}"
        rules = TransportSecuritySettings(allowed_hosts=[place], allowed_origins=[f"http://{place}"])
        manager = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=rules, max_request_body_size=_MOST_BYTES
        )
        door = Door(manager.handle_request, presence, secrets.token_bytes(32))
        async with manager.run(), answering(Listener(door, bound, _DRAIN_SECONDS)):
            yield lambda session_id, run_id: f"http://{place}{door.path(session_id, run_id)}"
