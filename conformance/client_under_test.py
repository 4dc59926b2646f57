"""What each scenario of the conformance suite starts: Outfitter's pool, connection and link, always used alike.

Connect, list the tools, call each with arguments made from its schema (or as the scenario says), and answer what the
server asks with the defaults of its form. The suite appends its URL and describes the scenario in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any, cast

import anyio

from outfitter.catalog import Agent, Catalog, MCPServer, ServerEntry, ServerRef, TimeLimits
from outfitter.errors import OutfitterError, UpstreamError
from outfitter.resolution import ArmedServer, Supply, arm, resolve
from outfitter.upstream import Authorizer, Connection, Link, Message, Patience, Pool

_SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
_VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
_CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
_STUBS: dict[str, object] = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
_LIMITS = TimeLimits.of(25.0)


def _stub(schema: object) -> object:
    """Some value of the schema's type, its default if it has one."""
    known = cast("Message", schema) if isinstance(schema, dict) else {}
    return known.get("default", _STUBS.get(str(known.get("type")), "x"))


def _arguments(tool: Message) -> Message:
    schema = cast("Message", tool.get("inputSchema") or {})
    properties = cast("Message", schema.get("properties") or {})
    return {name: _stub(properties.get(name)) for name in schema.get("required") or ()}


class Defaults:
    """Answers every question: forms with their defaults, a sampling request with two words, no roots."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """Everything a client can be asked."""
        return {"elicitation": {"form": {"applyDefaults": True}}, "sampling": {}, "roots": {"listChanged": False}}

    async def respond(self, method: str, params: Message) -> Message:
        """The answer."""
        if method == "elicitation/create":
            form = cast("Message", params.get("requestedSchema") or {})
            fields = cast("Message", form.get("properties") or {})
            return {"action": "accept", "content": {name: _stub(schema) for name, schema in fields.items()}}
        if method == "sampling/createMessage":
            return {"role": "assistant", "content": {"type": "text", "text": "all right"}, "model": "stub"}
        if method == "roots/list":
            return {"roots": []}
        raise UpstreamError(f"nobody here answers {method}", rpc_code=-32601)


def _armed(url: str) -> ArmedServer:
    agent = Agent("tester", servers={"mock": ServerRef("mock")})
    catalog = Catalog.of([ServerEntry(MCPServer.http("mock", url, limits=_LIMITS))])
    return arm(resolve(agent, catalog), Supply()).servers["mock"]


def _sign_in(_server: ArmedServer) -> Authorizer | None:
    if not _SCENARIO.startswith("auth/"):
        return None
    from conformance.sign_in import SdkAuthorizer, make_provider

    url = sys.argv[-1]
    return SdkAuthorizer(url, make_provider(url, _CONTEXT), _VERSION)


def _calls(tools: Mapping[str, Message]) -> list[tuple[str, Message]]:
    if _SCENARIO == "json-schema-2020-12-preservation":
        return [("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"]["inputSchema"]})]
    if "toolCalls" in _CONTEXT:
        wanted = cast("list[Message]", _CONTEXT["toolCalls"])
        return [(str(call["name"]), call.get("arguments") or {}) for call in wanted if call["name"] in tools]
    return [(name, _arguments(tool)) for name, tool in tools.items()]


async def _call(connection: Connection, name: str, arguments: Message) -> None:
    async def call(link: Link) -> Message:
        return await link.call_tool(name, arguments)

    try:
        await connection.use(call)
    except OutfitterError as error:  # whether a call may be refused is the scenario's business
        print(f"{name}: {error!r} {error}", file=sys.stderr)


async def _look_around(link: Link) -> None:
    """Read every resource and prompt of a server that offers some, as a curious client would."""
    offered = link.agreement.capabilities
    if "resources" in offered:
        for resource in await link.list_all("resources/list", "resources"):
            await link.converse("resources/read", {"uri": resource["uri"]})
    if "prompts" in offered:
        for prompt in await link.list_all("prompts/list", "prompts"):
            await link.converse("prompts/get", {"name": prompt["name"]})


async def main(url: str) -> None:
    """Everything the suite wants to see."""
    async with Pool(patience=Patience(tries=1), sign_in=_sign_in) as pool:
        connection = pool.connect(_armed(url), peer=Defaults())
        tools = {str(tool["name"]): tool for tool in await connection.use(Link.list_tools)}
        for name, arguments in _calls(tools):
            await _call(connection, name, arguments)
        await connection.use(_look_around)


if __name__ == "__main__":
    try:
        anyio.run(main, sys.argv[-1])
    except OutfitterError as error:
        sys.exit(f"{type(error).__name__}: {error}")
