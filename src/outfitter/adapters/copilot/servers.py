"""What Copilot is told of a server that it connects itself: where it is, which tools, and no secret.

The value of a header stands in a variable of Copilot's program, and ``${…}`` in its place. Programs that Copilot starts
inherit its variables; those that hold a secret are blank for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outfitter.adapters.forms import Json
from outfitter.catalog import MCPServer
from outfitter.errors import OutfitterError
from outfitter.resolution import ArmedRemote, ArmedServer
from outfitter.upstream import Launch, prepare_launch

_VARIABLE = "OUTFITTER_HEADER"
_PRIVATE = ("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY")
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Told:
    """The servers as the SDK writes them, and the variables that they need."""

    servers: Mapping[str, Json] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)


def tell(
    servers: Sequence[MCPServer], armed: Mapping[str, ArmedServer | OutfitterError], tools: Mapping[str, Sequence[str]]
) -> Told:
    """Every server with the tools that may be used; an OutfitterError when one cannot be told."""
    env: dict[str, str] = {}
    told = {server.name: _one(server, armed[server.name], list(tools[server.name]), env) for server in servers}
    blank = dict.fromkeys((*_PRIVATE, *env), "")
    for config in told.values():
        if "command" in config:
            config["env"] = {**blank, **config["env"]}
    return Told(told, env)


def _one(server: MCPServer, armed: ArmedServer | OutfitterError, tools: list[str], env: dict[str, str]) -> Json:
    if isinstance(armed, OutfitterError):
        raise armed
    common: Json = {"tools": tools, "timeout": int(server.timeout * _MILLISECONDS)}
    if not isinstance(armed.transport, ArmedRemote):
        return {**common, **_program(prepare_launch(armed))}
    headers: dict[str, str] = {}
    for name, value in armed.transport.headers.items():
        variable = f"{_VARIABLE}_{len(env)}"
        env[variable], headers[name] = value.reveal(), f"${{{variable}}}"
    kind = "sse" if armed.transport.is_sse else "http"
    return {**common, "type": kind, "url": armed.transport.url.reveal(), "headers": headers}


def _program(launch: Launch) -> Json:
    command, *args = launch.argv
    told: Json = {"type": "local", "command": command, "args": args, "env": dict(launch.env)}
    return told if launch.cwd is None else {**told, "working_directory": str(launch.cwd)}
