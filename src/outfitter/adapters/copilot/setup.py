"""How is a session of Copilot set up: only what the prompt brings, nothing that the machine happens to have."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import anyio
from copilot import CopilotSession
from copilot.rpc import PermissionDecisionReject

from outfitter.adapters.copilot.config import CopilotAgent, CopilotClientConfig
from outfitter.adapters.forms import Json
from outfitter.catalog import MCPServer
from outfitter.errors import McpConnectionError

TASK = "task"
"""The tool by which Copilot's main agent calls another."""
_log = logging.getLogger(__name__)
_LOOK_AGAIN = 0.05
_UNSETTLED = frozenset({"pending", "not_configured"})


def session_options(config: CopilotClientConfig, servers: Mapping[str, Json]) -> dict[str, Any]:
    """What every session is opened with."""
    builtin = [f"builtin:{TASK}"] if config.agents else []
    options: dict[str, Any] = {
        "available_tools": ["custom:*", "mcp:*", *builtin],
        "mcp_servers": servers,
        "on_permission_request": _refuse,
        "large_output": {"enabled": False},
        "streaming": False,
        "enable_session_telemetry": False,
        "enable_config_discovery": False,
        "skip_custom_instructions": True,
        "enable_skills": False,
        "agent": config.agent,
    }
    return options if config.provider is None else {**options, "provider": dict(config.provider)}


def _refuse(request: object, invocation: object) -> PermissionDecisionReject:  # noqa: ARG001 - the SDK's own signature
    """Whatever the hook before a call has not allowed."""
    return PermissionDecisionReject(feedback="only the tools of the prompt may be used")


def agents_of(
    agents: Iterable[CopilotAgent], tools: Sequence[str], servers: Mapping[str, Json]
) -> list[dict[str, Any]]:
    """The custom agents as the SDK writes them; ``tools`` are the names of all that there are."""
    return [_agent(agent, tools, servers) for agent in agents]


def _agent(agent: CopilotAgent, tools: Sequence[str], servers: Mapping[str, Json]) -> dict[str, Any]:
    own = {server.name: servers[server.name] for server in agent.mcp_servers if server.name in servers}
    told: dict[str, Any] = {
        "name": agent.name,
        "description": agent.description or agent.name,
        "prompt": agent.prompt,
        "tools": None if agent.tools.is_open else list(agent.tools.select(tools)),
        "mcp_servers": own,
        "infer": True,
    }
    return told if agent.model is None else {**told, "model": agent.model}


async def check_standing(session: CopilotSession, servers: Sequence[MCPServer], seconds: float) -> None:
    """Wait until Copilot has settled its servers; McpConnectionError when a required one is missing."""
    states: dict[str, tuple[str, str]] = {}
    with anyio.move_on_after(seconds):
        while True:
            listed = (await session.rpc.mcp.list()).servers
            states = {each.name: (str(each.status.value), each.error or "") for each in listed}
            if all(states.get(server.name, ("pending", ""))[0] not in _UNSETTLED for server in servers):
                break
            await anyio.sleep(_LOOK_AGAIN)
    missing = [server for server in servers if states.get(server.name, ("", ""))[0] != "connected"]
    for server in missing:
        state, why = states.get(server.name, ("not there", ""))
        if server.required:
            message = f"Copilot could not connect it ({state}{f': {why}' if why else ''})"
            raise McpConnectionError(message, server_name=server.name, hint="route='bridge' connects it from here")
        _log.warning("adapters.copilot_server_missing: server '%s' is %s", server.name, state)
