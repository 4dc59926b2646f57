"""The tools that the suite's server scenarios call: what they answer, say and ask on the way, in both eras.

Results are written as the JSON they are on the wire. Tools that want input first (modern era) are
``fixture_questions``; what else the fixture offers is ``fixture_server``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged

Json: TypeAlias = dict[str, Any]
Context: TypeAlias = "ServerRequestContext[Any]"
Params: TypeAlias = types.CallToolRequestParams
Answer: TypeAlias = types.CallToolResult | types.InputRequiredResult
Handle: TypeAlias = Callable[["Shop", Context, Params], Awaitable[Answer]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="  # one PNG
SILENCE = base64.b64encode(
    b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
).decode()
_PAUSE = 0.05
_TEXT: Json = {"type": "string"}
_CHOICES = ["option1", "option2", "option3"]
_TITLED: list[Json] = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]


@dataclass(slots=True)
class Shop:
    """What the tools of one server share."""

    news: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)


@dataclass(frozen=True, slots=True)
class FixtureTool:
    """One tool: how it is listed and what it does."""

    name: str
    description: str
    handle: Handle
    schema: Json = field(default_factory=lambda: {"type": "object", "properties": {}})

    @property
    def listed(self) -> types.Tool:
        """The tool as it stands in a list."""
        return types.Tool(name=self.name, description=self.description, input_schema=self.schema)


def shape(required: tuple[str, ...] = (), **properties: Json) -> Json:
    """An object schema."""
    schema: Json = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def say(text: str, **more: object) -> types.CallToolResult:
    """A result of one text."""
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}], **more})


def embedded(uri: str, text: str, mime: str = "text/plain") -> Json:
    """A piece of content that carries a resource."""
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}}


def image() -> Json:
    """A piece of content that is one pixel."""
    return {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def _always(*content: Json, **more: object) -> Handle:
    result = types.CallToolResult.model_validate({"content": list(content), **more})

    async def handle(_shop: Shop, _context: Context, _params: Params) -> Answer:
        return result

    return handle


async def _progress(_shop: Shop, context: Context, _params: Params) -> Answer:
    for done in (0, 50, 100):
        await context.session.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(_PAUSE)
    return say("finished")


async def _log(_shop: Shop, context: Context, _params: Params) -> Answer:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        tell = context.session.send_log_message  # pyright: ignore[reportDeprecated] - clients of today still hear it
        await tell(level="info", data=text, related_request_id=context.request_id)
        await anyio.sleep(_PAUSE)
    return say("logged three times")


async def _hang_up(_shop: Shop, context: Context, _params: Params) -> Answer:
    """Close the stream in the middle of the call; the client comes back for the answer."""
    if context.close_sse_stream is not None:
        await context.close_sse_stream()
        await anyio.sleep(4 * _PAUSE)
    return say("Reconnection test completed")


async def _sample(_shop: Shop, context: Context, params: Params) -> Answer:
    content = types.TextContent(type="text", text=str((params.arguments or {}).get("prompt")))
    message = types.SamplingMessage(role="user", content=content)
    ask = context.session.create_message  # pyright: ignore[reportDeprecated] - clients of today are still asked
    found = await ask(messages=[message], max_tokens=100, related_request_id=context.request_id)
    return say(f"LLM response: {getattr(found.content, 'text', '')}")


async def _elicit(context: Context, message: str, schema: Json) -> Answer:
    found = await context.session.elicit_form(message, schema, related_request_id=context.request_id)
    return say(f"User response: action={found.action}, content={json.dumps(found.content)}")


async def _ask(_shop: Shop, context: Context, params: Params) -> Answer:
    return await _elicit(context, str((params.arguments or {}).get("message")), shape(("response",), response=_TEXT))


async def _ask_with_defaults(_shop: Shop, context: Context, _params: Params) -> Answer:
    states = ["active", "inactive", "pending"]
    schema = shape(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": states, "default": states[0]},
        verified={"type": "boolean", "default": True},
    )
    return await _elicit(context, "Is this right?", schema)


async def _ask_with_choices(_shop: Shop, context: Context, _params: Params) -> Answer:
    schema = shape(
        untitledSingle={"type": "string", "enum": _CHOICES},
        titledSingle={"type": "string", "oneOf": _TITLED},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": _CHOICES}},
        titledMulti={"type": "array", "items": {"anyOf": _TITLED}},
    )
    return await _elicit(context, "Which one?", schema)


async def _need_sampling(_shop: Shop, context: Context, _params: Params) -> Answer:
    capabilities = context.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        data: Json = {"requiredCapabilities": {"sampling": {}}}
        code = types.MISSING_REQUIRED_CLIENT_CAPABILITY
        raise MCPError(code=code, message="this tool needs a client that samples", data=data)
    return say("the client samples")


async def _change_tools(shop: Shop, context: Context, _params: Params) -> Answer:
    await shop.news.publish(ToolsListChanged())
    await context.session.send_tool_list_changed()
    return say("the tools have changed")


async def _change_prompts(shop: Shop, context: Context, _params: Params) -> Answer:
    await shop.news.publish(PromptsListChanged())
    await context.session.send_prompt_list_changed()
    return say("the prompts have changed")


async def _region(_shop: Shop, _context: Context, params: Params) -> Answer:
    return say(f"region={(params.arguments or {}).get('region')}")


_MODERN_SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", **shape(street=_TEXT, city=_TEXT)}},
    "properties": {
        "name": _TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": _TEXT,
        "email": _TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_PLAIN: Json = {"type": "text", "text": "This is a simple text response for testing."}
_MIXED: Json = {"type": "text", "text": "Multiple content types test:"}
_WRONG: Json = {"type": "text", "text": "This tool intentionally returns an error for testing"}
_DATA = embedded("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json")

TOOLS: tuple[FixtureTool, ...] = (
    FixtureTool("test_simple_text", "One text", _always(_PLAIN)),
    FixtureTool("test_image_content", "One image", _always(image())),
    FixtureTool(
        "test_audio_content", "One sound", _always({"type": "audio", "data": SILENCE, "mimeType": "audio/wav"})
    ),
    FixtureTool("test_embedded_resource", "One resource", _always(embedded("test://embedded-resource", "inside"))),
    FixtureTool("test_multiple_content_types", "Text, image and resource", _always(_MIXED, image(), _DATA)),
    FixtureTool("test_error_handling", "Fails", _always(_WRONG, isError=True)),
    FixtureTool("test_tool_with_progress", "Tells how far it is", _progress),
    FixtureTool("test_tool_with_logging", "Logs", _log),
    FixtureTool("test_logging_tool", "Logs", _log),
    FixtureTool("test_reconnection", "Closes its stream before it answers", _hang_up),
    FixtureTool("test_sampling", "Has the client sample", _sample, shape(("prompt",), prompt=_TEXT)),
    FixtureTool("test_elicitation", "Asks the user", _ask, shape(("message",), message=_TEXT)),
    FixtureTool("test_elicitation_sep1034_defaults", "Asks with defaults", _ask_with_defaults),
    FixtureTool("test_elicitation_sep1330_enums", "Asks for choices", _ask_with_choices),
    FixtureTool("test_missing_capability", "Needs a client that samples", _need_sampling),
    FixtureTool("json_schema_2020_12_tool", "Has a schema with every keyword", _always(_PLAIN), _MODERN_SCHEMA),
    FixtureTool("test_x_mcp_header", "Repeats an argument", _region, shape(region={**_TEXT, "x-mcp-header": "Region"})),
    FixtureTool("test_trigger_tool_change", "Changes the tools", _change_tools),
    FixtureTool("test_trigger_prompt_change", "Changes the prompts", _change_prompts),
)


def by_name(*groups: tuple[FixtureTool, ...]) -> Mapping[str, FixtureTool]:
    """Every tool by its name."""
    return {tool.name: tool for group in groups for tool in group}
