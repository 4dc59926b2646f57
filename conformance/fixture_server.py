"""A server that passes the suite's server scenarios by itself, in both eras on one endpoint.

``python -m conformance.fixture_server --port-file FILE``. The gateway is put in front of it: what the server alone
passes and the gateway does not is the gateway's fault. Its tools are ``fixture_tools`` and ``fixture_questions``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp_types as types
import uvicorn
from mcp.server import CacheHint, Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from conformance.fixture_questions import QUESTIONS, given, question, want
from conformance.fixture_tools import (
    PIXEL,
    TOOLS,
    Answer,
    Context,
    FixtureTool,
    Json,
    Params,
    Shop,
    by_name,
    embedded,
    image,
)

_RETRY_MILLISECONDS = 100
_WATCHED = "test://watched-resource"
_RESOURCES: Mapping[str, Json] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PIXEL},
    _WATCHED: {"mimeType": "text/plain", "text": "Watched resource content"},
}
_TEMPLATE = ("test://template/", "{id}", "/data")
_PROMPTS: Mapping[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}


class Memory(EventStore):
    """What was said on the streams of the handshake era, for clients that come back."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._numbers: Iterator[int] = itertools.count(1)
        self._said: dict[str, tuple[str, types.JSONRPCMessage | None]] = {}

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        """Keep an event and name it."""
        name = str(next(self._numbers))
        self._said[name] = (stream_id, message)
        return name

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Say again what the stream of this event said after it."""
        if last_event_id not in self._said:
            return None
        stream = self._said[last_event_id][0]
        for name, (whose, message) in tuple(self._said.items()):
            if whose == stream and message is not None and int(name) > int(last_event_id):
                await send_callback(EventMessage(message, name))
        return stream


@dataclass(slots=True)
class Fixture:
    """The answers of the server."""

    shop: Shop = field(default_factory=Shop)
    tools: Mapping[str, FixtureTool] = field(default_factory=lambda: by_name(TOOLS, QUESTIONS))

    async def list_tools(self, _context: Context, _params: object) -> types.ListToolsResult:
        """Every tool."""
        return types.ListToolsResult(tools=[tool.listed for tool in self.tools.values()])

    async def call_tool(self, context: Context, params: Params) -> Answer:
        """What a tool answers."""
        if params.name not in self.tools:
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {params.name}")
        return await self.tools[params.name].handle(self.shop, context, params)

    def schema(self, name: str) -> Json | None:
        """The input schema of a tool."""
        return self.tools[name].schema if name in self.tools else None


async def _list_resources(_context: Context, _params: object) -> types.ListResourcesResult:
    listed = [
        {"uri": uri, "name": uri.rpartition("/")[2], "description": uri, "mimeType": content["mimeType"]}
        for uri, content in _RESOURCES.items()
    ]
    return types.ListResourcesResult.model_validate({"resources": listed})


async def _list_templates(_context: Context, _params: object) -> types.ListResourceTemplatesResult:
    template = {"uriTemplate": "".join(_TEMPLATE), "name": "template", "mimeType": "application/json"}
    return types.ListResourceTemplatesResult.model_validate({"resourceTemplates": [template]})


async def _read(_context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    uri = str(params.uri)
    content = _RESOURCES.get(uri)
    first, _, last = _TEMPLATE
    if content is None and uri.startswith(first) and uri.endswith(last):
        ident = uri.removeprefix(first).removesuffix(last)
        text = json.dumps({"id": ident, "templateTest": True, "data": f"Data for ID: {ident}"})
        content = {"mimeType": "application/json", "text": text}
    if content is None:
        raise MCPError(code=types.INVALID_PARAMS, message=f"Resource not found: {uri}", data={"uri": uri})
    return types.ReadResourceResult.model_validate({"contents": [{"uri": uri, **content}]})


async def _list_prompts(_context: Context, _params: object) -> types.ListPromptsResult:
    listed = [
        {
            "name": name,
            "description": name,
            "arguments": [{"name": given, "description": given, "required": True} for given in arguments],
        }
        for name, arguments in _PROMPTS.items()
    ]
    return types.ListPromptsResult.model_validate({"prompts": listed})


async def _get_prompt(
    _context: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    arguments = params.arguments or {}
    context = given(params, "user_context", "context")
    if params.name == "test_input_required_result_prompt" and context is None:
        return want(user_context=question("In which context?", context={"type": "string"}))
    pieces: Mapping[str, Json] = {
        "test_simple_prompt": _text("This is a simple prompt for testing."),
        "test_prompt_with_arguments": _text(
            f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
        ),
        "test_prompt_with_embedded_resource": embedded(
            arguments.get("resourceUri", _WATCHED), "Embedded resource content for testing."
        ),
        "test_prompt_with_image": image(),
        "test_input_required_result_prompt": _text(f"Use the following context: {context}"),
    }
    if params.name not in pieces:
        raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown prompt: {params.name}")
    contents = [pieces[params.name], _text("Please process what is above.")]
    return types.GetPromptResult.model_validate(
        {"messages": [{"role": "user", "content": content} for content in contents]}
    )


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


async def _complete(_context: Context, _params: object) -> types.CompleteResult:
    return types.CompleteResult.model_validate({"completion": {"values": [], "total": 0, "hasMore": False}})


async def _accept(_context: Context, _params: object) -> types.EmptyResult:
    return types.EmptyResult()


def build() -> Server[Any]:
    """The server with everything the scenarios ask for."""
    fixture = Fixture()
    hint = CacheHint(ttl_ms=1000, scope="public")
    server: Server[Any] = Server(
        "conformance-fixture",
        version="1.0.0",
        cache_hints={
            "tools/list": hint,
            "prompts/list": hint,
            "resources/list": hint,
            "resources/templates/list": hint,
            "resources/read": hint,
            "server/discover": hint,
        },
        get_tool_input_schema=fixture.schema,
        on_list_tools=fixture.list_tools,
        on_call_tool=fixture.call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read,
        on_subscribe_resource=_accept,
        on_unsubscribe_resource=_accept,
        on_subscriptions_listen=ListenHandler(fixture.shop.news),
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _accept)
    return server


def main() -> None:
    """Serve on a free port of loopback until told to stop."""
    parser = argparse.ArgumentParser(description="A server that passes the conformance suite.")
    parser.add_argument("--port-file", type=Path, required=True, help="where to write the port that was taken")
    options = parser.parse_args()
    bound = socket.create_server(("127.0.0.1", 0))
    app = build().streamable_http_app(event_store=Memory(), retry_interval=_RETRY_MILLISECONDS)
    draft: Path = options.port_file.with_suffix(".draft")
    draft.write_text(str(bound.getsockname()[1]), encoding="utf-8")
    draft.replace(options.port_file)
    # The other parser keeps the blanks around a header's value, and the SDK then finds it different.
    config = uvicorn.Config(app, http="h11", log_level="warning", ws="none", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()
