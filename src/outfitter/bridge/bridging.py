"""What tools a server's list becomes: named, filtered, each with the forms of its arguments and its result.

Pure, apart from a line in the log for a tool that cannot be used. All servers of a section are bridged together, so
that two tools of one name are told apart. A tool that did not change stays the same object.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from outfitter.bridge.calling import BridgedCall
from outfitter.bridge.connection import McpConnection
from outfitter.bridge.pin_file import PinFile
from outfitter.bridge.results import DEFAULT_LIMITS, ResultLimits
from outfitter.bridge.shelf import ResultShelf
from outfitter.catalog import JsonValue, MCPServer, ToolKey, ToolOverride, apply_override, build_name_map
from outfitter.errors import InvalidSchema, McpSchemaError
from outfitter.policy import Held, ToolPolicy
from outfitter.schemas import Shape, read_schema
from outfitter.tools import Tool
from outfitter.upstream import Message

_log = logging.getLogger(__name__)
_ELLIPSIS = "…"
Overrides: TypeAlias = Mapping[str, Mapping[str, ToolOverride]]


@dataclass(frozen=True, slots=True)
class ServerTools:
    """A connected server and the tools that it listed."""

    server: MCPServer
    connection: McpConnection
    listed: Sequence[Message]
    held: Mapping[str, Held] = field(default_factory=dict[str, Held])
    """The tools that wait for a person, by their own names."""


@dataclass(frozen=True, slots=True)
class BridgeOptions:
    """How tools are bridged: ``description_limit`` cuts descriptions, ``results`` bounds what comes back.

    With ``pins``, a tool that is not what was approved is not offered.
    """

    description_limit: int | None = None
    results: ResultLimits = DEFAULT_LIMITS
    overrides: Overrides = field(default_factory=dict[str, Mapping[str, ToolOverride]])
    """What is said otherwise about tools, by the name of their server and their own."""
    pins: PinFile | None = None
    shelf: ResultShelf | None = None
    """Where results are kept that are too large for a model."""


@dataclass(frozen=True, slots=True)
class BridgedTool:
    """One tool, with what it was made of."""

    key: ToolKey
    definition: Message = field(repr=False)
    connection: McpConnection = field(repr=False)
    tool: Tool[Any, Any]


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of some servers at one moment, and those that cannot be used."""

    bridged: Mapping[ToolKey, BridgedTool] = field(default_factory=dict[ToolKey, BridgedTool])
    rejected: tuple[McpSchemaError, ...] = ()
    held: Mapping[ToolKey, Held] = field(default_factory=dict[ToolKey, Held])
    """Those that the filters let in and that wait for a person."""

    @property
    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """The tools in the order of their servers."""
        return tuple(entry.tool for entry in self.bridged.values())

    def of_server(self, server: str) -> dict[str, Tool[Any, Any]]:
        """The tools of one server by the names that a model sees."""
        return {entry.tool.name: entry.tool for key, entry in self.bridged.items() if key.server == server}


def bridge_tools(
    servers: Sequence[ServerTools], options: BridgeOptions | None = None, before: ToolSet | None = None
) -> ToolSet:
    """The tools of these servers that pass their filters."""
    chosen = options or BridgeOptions()
    known = before or ToolSet()
    found = {key: (source, definition) for source in servers for key, definition in _offered(source)}
    names = build_name_map((key, source.server.prefix) for key, (source, _) in found.items())
    bridged: dict[ToolKey, BridgedTool] = {}
    rejected: list[McpSchemaError] = []
    for key, (source, definition) in found.items():
        old, shown = known.bridged.get(key), names.shown[key]
        if old is not None and _is_same(old, shown, source, definition):
            bridged[key] = old
            continue
        try:
            tool = _bridge(source, definition, shown, chosen)
        except InvalidSchema as fault:
            rejected.append(_reject(key, fault, known))
        else:
            bridged[key] = BridgedTool(key, definition, source.connection, tool)
    held = {
        ToolKey(source.server.name, name): one
        for source in servers
        for name, one in source.held.items()
        if source.server.tools.allows(name)
    }
    return ToolSet(bridged, tuple(rejected), held)


def _offered(source: ServerTools) -> Iterator[tuple[ToolKey, Message]]:
    """The tools that pass the filter; of two with one name the first counts."""
    seen: set[str] = set()
    for definition in source.listed:
        name = definition.get("name")
        if isinstance(name, str) and name and name not in seen and source.server.tools.allows(name):
            seen.add(name)
            if name in source.held:
                continue
            yield ToolKey(source.server.name, name), definition


def _is_same(old: BridgedTool, shown: str, source: ServerTools, definition: Message) -> bool:
    return old.tool.name == shown and old.connection is source.connection and old.definition == definition


def _reject(key: ToolKey, fault: InvalidSchema, before: ToolSet) -> McpSchemaError:
    error = McpSchemaError(
        f"left out: its schema cannot be used: {fault.message}",
        server_name=key.server,
        tool_name=key.tool,
        reason=fault.message,
    )
    if str(error) not in {str(known) for known in before.rejected}:
        _log.warning("%s", error)
    return error


def _bridge(source: ServerTools, definition: Message, shown: str, options: BridgeOptions) -> Tool[Any, Any]:
    server, name = source.server, str(definition["name"])
    override = options.overrides.get(server.name, {}).get(name)
    definition = definition if override is None else apply_override(definition, override)
    arguments = read_schema(_schema(definition, "inputSchema") or {"type": "object"}, name=shown)
    promise = _promise(definition, shown)
    call = BridgedCall(server, name, source.connection, arguments, promise, options.results, override, options.shelf)
    given = definition.get("annotations")
    annotations = cast("dict[str, JsonValue]", given) if isinstance(given, dict) else {}
    return Tool[Any, Any](
        name=shown,
        description=_cut(_text(definition, "description"), options.description_limit),
        handler=call.call,
        async_handler=call.acall,
        arguments=arguments,
        value=promise,
        server=server.name,
        tool=name,
        title=_text(definition, "title"),
        annotations=annotations,
        reads_only=server.trusted and annotations.get("readOnlyHint") is True,
        policies=cast("tuple[ToolPolicy, ...]", server.policies),
        fallback=server.fallback,
        timeout=server.timeout,
        is_bounded=True,
    )


def _promise(definition: Message, shown: str) -> Shape | None:
    schema = _schema(definition, "outputSchema")
    return None if schema is None else read_schema(schema, name=shown, is_result=True)


def _schema(definition: Message, key: str) -> Mapping[str, JsonValue] | None:
    schema = definition.get(key)
    if schema is None:
        return None
    if not isinstance(schema, dict):
        raise InvalidSchema(f"'{key}' is not an object")
    return cast("Mapping[str, JsonValue]", schema)


def _text(definition: Message, key: str) -> str:
    value = definition.get(key)
    return value if isinstance(value, str) else ""


def _cut(text: str, limit: int | None) -> str:
    return text if limit is None or len(text) <= limit else text[: limit - 1].rstrip() + _ELLIPSIS
