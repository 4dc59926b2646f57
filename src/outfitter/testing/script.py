"""What is a scripted server? A frozen description that can be written on a command line.

It says what the server offers and how it misbehaves; ``behaviour`` answers messages by it, ``stdio_server`` and
``http_server`` put it on a wire.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from outfitter.errors import Invalid
from outfitter.testing.faults import Fault, made, read_fault, write_fault

Era: TypeAlias = Literal["legacy", "modern"]
Answers: TypeAlias = Literal["auto", "json", "sse"]
Json: TypeAlias = dict[str, Any]

MODERN_VERSION = "2026-07-28"
LEGACY_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


def _empty() -> Json:
    return {}


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


@dataclass(frozen=True, slots=True)
class ScriptedTool:
    """One tool: how it is described, and which of the built-in behaviours it has (``kind``).

    ``result`` is the whole result of a tool of kind ``answer``. ``extra`` are further fields of its definition.
    """

    name: str
    description: str = ""
    schema: Json = field(default_factory=_object)
    kind: str = ""
    result: Json = field(default_factory=_empty)
    extra: Json = field(default_factory=_empty)

    @property
    def behaviour(self) -> str:
        """The built-in behaviour: the one named, else the one of the tool's own name."""
        return self.kind or self.name

    def definition(self) -> Json:
        """The tool as it stands in a list."""
        return {"name": self.name, "description": self.description, "inputSchema": self.schema, **self.extra}


@dataclass(frozen=True, slots=True)
class ScriptedResource:
    """One resource with its text."""

    uri: str
    text: str = ""
    mime: str = "text/plain"

    def definition(self) -> Json:
        """The resource as it stands in a list."""
        return {"uri": self.uri, "name": self.uri.rpartition("/")[2] or self.uri, "mimeType": self.mime}


@dataclass(frozen=True, slots=True)
class ScriptedPrompt:
    """One prompt; ``{name}`` in its text is filled from the arguments, which complete from ``values``."""

    name: str
    text: str = ""
    arguments: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Take lists, as JSON has them."""
        object.__setattr__(self, "arguments", tuple(self.arguments))
        object.__setattr__(self, "values", tuple(self.values))

    def definition(self) -> Json:
        """The prompt as it stands in a list."""
        return {"name": self.name, "arguments": [{"name": name, "required": True} for name in self.arguments]}


_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_INTEGER: Json = {"type": "integer"}

BUILT_IN_TOOLS: tuple[ScriptedTool, ...] = (
    ScriptedTool("echo", "Returns its arguments", _object(text=_TEXT)),
    ScriptedTool("headers", "Returns the headers and the _meta it got; on stdio the names of its environment"),
    ScriptedTool("add", "Adds two numbers", {**_object(a=_NUMBER, b=_NUMBER), "required": ["a", "b"]}),
    ScriptedTool("sleep", "Takes so many seconds, and reports progress when it starts", _object(seconds=_NUMBER)),
    ScriptedTool("progress", "Reports n steps, each after a pause", _object(n=_INTEGER, seconds=_NUMBER)),
    ScriptedTool("big", "Returns so many bytes of text", _object(size=_INTEGER)),
    ScriptedTool("fail", "Fails as a tool", _object(message=_TEXT)),
    ScriptedTool("rpc_error", "Fails as a request", _object(code=_INTEGER, message=_TEXT, data={})),
    ScriptedTool("ask", "Asks the client: elicitation, sampling or roots", _object(what=_TEXT, rounds=_INTEGER)),
    ScriptedTool("log", "Logs a message at a level", _object(level=_TEXT, text=_TEXT)),
    ScriptedTool("touch", "Changes a list (tools, prompts, resources) or a resource", _object(list=_TEXT, uri=_TEXT)),
    ScriptedTool(
        "stats",
        "What was counted, once so many calls were cancelled and so many clients listen",
        _object(until_cancelled=_INTEGER, until_listeners=_INTEGER),
    ),
    ScriptedTool(
        "region",
        "Has an argument that travels as a header",
        _object(region={**_TEXT, "x-mcp-header": "Region"}),
        "echo",
    ),
    ScriptedTool("vendor", "Has fields nobody knows", kind="echo", extra={"x-vendor": {"tier": 1}, "icons": []}),
)
"""What a scripted server offers unless it is told otherwise. Every definition is as the specification wants it."""

SLOPPY_TOOLS: tuple[ScriptedTool, ...] = (
    *BUILT_IN_TOOLS,
    ScriptedTool("bare", "Has an empty input schema", {}, "echo"),
)
"""The same, and one whose schema strict clients refuse."""

_RESOURCES = (ScriptedResource("test://greeting", "hello"), ScriptedResource("test://numbers", "1 2 3"))
_PROMPTS = (ScriptedPrompt("greet", "Say hello to {who}.", ("who",), ("world", "work", "you")),)


@dataclass(frozen=True, slots=True)
class Script:
    """A server: what it speaks, what it offers, how it misbehaves.

    ``page_size`` 0 gives every list in one page. ``answers`` and ``sessions`` matter over HTTP only: how a single reply
    travels, and whether the handshake gives a session id.
    """

    name: str = "scripted"
    eras: tuple[Era, ...] = ("legacy", "modern")
    legacy_versions: tuple[str, ...] = LEGACY_VERSIONS
    tools: tuple[ScriptedTool, ...] = BUILT_IN_TOOLS
    resources: tuple[ScriptedResource, ...] = _RESOURCES
    prompts: tuple[ScriptedPrompt, ...] = _PROMPTS
    page_size: int = 0
    instructions: str = "A scripted server."
    answers: Answers = "auto"
    sessions: bool = True
    ttl_ms: int = 0
    cache_scope: Literal["public", "private"] = "private"
    faults: tuple[Fault, ...] = ()

    def __post_init__(self) -> None:
        """Take lists as well as tuples."""
        for name in ("eras", "legacy_versions", "tools", "resources", "prompts", "faults"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def versions(self) -> tuple[str, ...]:
        """Every protocol version it speaks."""
        modern = (MODERN_VERSION,) if "modern" in self.eras else ()
        return (*self.legacy_versions, *modern) if "legacy" in self.eras else modern

    def to_json(self) -> str:
        """The script as JSON text."""
        data: Json = {item.name: getattr(self, item.name) for item in fields(self)}
        for name in ("tools", "resources", "prompts"):
            data[name] = [_plain(item) for item in data[name]]
        data["faults"] = [write_fault(fault) for fault in self.faults]
        return json.dumps(data)

    @classmethod
    def from_json(cls, text: str) -> Script:
        """The script that ``to_json`` wrote; what is left out has its default."""
        data = json.loads(text)
        if not isinstance(data, dict):
            raise Invalid("a script is a JSON object")
        values: Json = dict(data)  # pyright: ignore[reportUnknownArgumentType]
        for name, kind in (("tools", ScriptedTool), ("resources", ScriptedResource), ("prompts", ScriptedPrompt)):
            if name in values:
                values[name] = [made(kind, item) for item in values[name]]
        if "faults" in values:
            values["faults"] = [read_fault(item) for item in values["faults"]]
        return made(cls, values)


_Value: TypeAlias = ScriptedTool | ScriptedResource | ScriptedPrompt


def _plain(value: _Value) -> Json:
    return {item.name: getattr(value, item.name) for item in fields(value)}
