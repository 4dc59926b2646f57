"""An entry as a client's file has it, in that client's words; what it cannot do is a note, or a refusal.

A literal secret is never written: it becomes a variable. What the file already has stays, apart from the servers that
are written and the fields that Outfitter fills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from outfitter.catalog import JsonValue, NoAuth, ServerEntry, SseTransport, StdioTransport, TimeLimits
from outfitter.errors import InvalidDocument, InvalidServer
from outfitter.formats.clients.credentials import is_sensitive
from outfitter.formats.clients.dialects import DIALECTS, Client, Dialect
from outfitter.formats.clients.plain import plain_entries
from outfitter.formats.clients.values import ClientFile, as_object
from outfitter.formats.clients.variables import Inputs, VariableWriter
from outfitter.formats.document import read_document
from outfitter.formats.shape import read_object
from outfitter.formats.text import JsonObject, Syntax, parse_text, render_text

OWNED = frozenset({"type", "transport", "command", "args", "cwd", "env", "url", "headers", "tools", "timeout"})
_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Written:
    """One server as its client writes it, and what was lost."""

    name: str
    fields: dict[str, JsonValue]
    notes: tuple[str, ...]


def write_json_client(client: Client, entries: Sequence[ServerEntry], existing: str | None) -> ClientFile:
    """The text of a JSON client's file with the entries in it."""
    dialect = DIALECTS[client]
    asked: Inputs = {}
    servers = write_servers(entries, dialect, _render, asked)
    document, notes = read_existing(existing, dialect)
    if asked:
        document = {"inputs": _merge_inputs(document.get("inputs"), asked), **_without(document, "inputs")}
    present = as_object(document.get(dialect.root))
    for server in servers:
        kept = as_object(present.get(server.name))
        present[server.name] = {**server.fields, **{key: kept[key] for key in kept if key not in OWNED}}
    document[dialect.root] = present
    if client is Client.JETBRAINS and any("url" in server.fields for server in servers):
        notes.append("AI Assistant connects to remote servers; Junie may read the local ones only")
    told = [f"{server.name}: {note}" for server in servers for note in server.notes]
    return ClientFile(render_text(document, Syntax.JSON), tuple(dict.fromkeys([*notes, *told])))


def read_existing(existing: str | None, dialect: Dialect) -> tuple[JsonObject, list[str]]:
    """What the file holds now, and whether writing it costs its comments."""
    if existing is None or not existing.strip():
        return {}, []

    def check(value: object) -> JsonObject:
        try:
            read_object(read_object(value).get(dialect.root, {}))
        except InvalidDocument as error:
            raise error.under(dialect.root) from None
        return cast("JsonObject", value)

    document = read_document(existing, dialect.file, dialect.syntax, check)
    if dialect.syntax is not Syntax.JSONC:
        return document, []
    try:
        parse_text(existing, source=dialect.file, syntax=Syntax.JSON)
    except InvalidDocument:
        return document, ["the comments and trailing commas of the file are not kept"]
    return document, []


def _without(document: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in document.items() if name != key}


def _merge_inputs(present: JsonValue, asked: Inputs) -> list[JsonValue]:
    """The inputs that are there, then those that are new; an id that is there keeps its question."""
    inputs = present if isinstance(present, list) else []
    known = {str(item.get("id")) for item in inputs if isinstance(item, dict)}
    return [*inputs, *(item for id_, item in asked.items() if id_ not in known)]


Render: TypeAlias = Callable[[ServerEntry, VariableWriter], dict[str, JsonValue]]


def write_servers(
    entries: Sequence[ServerEntry], dialect: Dialect, render: Render, asked: Inputs | None = None
) -> list[Written]:
    """Each entry in the client's words; InvalidServer lists those that it cannot reach at all.

    ``asked`` collects what the client is to ask its user for.
    """
    refused = [entry.id for entry in entries if kind_of(entry) not in dialect.types]
    if refused:
        known = ", ".join(dialect.types)
        message = f"{dialect.title} can only be given {known} servers: not {', '.join(refused)}"
        raise InvalidServer(message, hint="export them for another client, or point it at Outfitter's gateway")
    inputs: Inputs = {} if asked is None else asked
    written: list[Written] = []
    for plain in plain_entries(entries):
        notes = [*plain.notes, *losses(plain.entry, dialect)]
        fields = render(plain.entry, VariableWriter(dialect, plain.entry.id, notes, plain.secrets, inputs))
        written.append(Written(plain.entry.id, fields, tuple(notes)))
    return written


def kind_of(entry: ServerEntry) -> str:
    """The transport by its usual word."""
    transport = entry.server.transport
    if isinstance(transport, StdioTransport):
        return "stdio"
    return "sse" if isinstance(transport, SseTransport) else "http"


def _render(entry: ServerEntry, writer: VariableWriter) -> dict[str, JsonValue]:
    dialect = writer.dialect
    word = dialect.types[kind_of(entry)]
    fields: dict[str, JsonValue] = {"type": word} if word else {}
    fields |= write_command(entry, writer)
    if entry.server.env and entry.server.remote is None:
        fields["env"] = {
            name: writer.write(str(value), "env", sensitive=is_sensitive(name))
            for name, value in entry.server.env.items()
        }
    if entry.default_headers:
        fields["headers"] = {
            name: writer.write(str(value), "headers", sensitive=_is_secret(entry, name))
            for name, value in entry.default_headers.items()
        }
    if "tools" in dialect.carries:
        fields["tools"] = list(include_list(entry, writer.notes, dialect))
    if "timeout" in dialect.carries and entry.server.limits.call != TimeLimits().call:
        fields["timeout"] = round(entry.server.limits.call * 1000)
    return fields


def write_command(entry: ServerEntry, writer: VariableWriter) -> dict[str, JsonValue]:
    """How a local server is started, or the URL of a remote one."""
    transport = entry.server.transport
    if not isinstance(transport, StdioTransport):
        return {"url": writer.write(transport.url, "url")}
    fields: dict[str, JsonValue] = {"command": writer.write(transport.command, "command")}
    fields["args"] = [writer.write(arg, "args") for arg in transport.args]
    if transport.cwd is not None and "cwd" in writer.dialect.carries:
        fields["cwd"] = writer.write(transport.cwd, "cwd")
    return fields


def _is_secret(entry: ServerEntry, header: str) -> bool:
    schema = entry.header_schema.get(header)
    return is_sensitive(header) or (schema is not None and schema.sensitive)


def include_list(entry: ServerEntry, notes: list[str], dialect: Dialect) -> tuple[str, ...]:
    """The tools by name for a client that knows nothing but such a list; ``*`` when the entry lets all through."""
    tools = entry.server.tools
    if tools.is_open:
        return ("*",)
    patterns = (*(tools.include or ()), *tools.exclude)
    if entry.known_tools is not None:
        return tools.select(entry.known_tools)
    if tools.exclude or any(_GLOB & set(pattern) for pattern in patterns):
        notes.append(
            f"the tool filter is not kept: {dialect.title} takes names only, and the server's tools are not known"
        )
    return ("*",) if tools.include is None else tools.include


def losses(entry: ServerEntry, dialect: Dialect) -> Iterator[str]:
    """What the entry says and this client's file cannot."""
    server, title = entry.server, dialect.title
    usual = TimeLimits.of(server.limits.call)
    if "tools" not in dialect.carries and not server.tools.is_open:
        yield f"the tool filter is not kept: {title} will offer every tool of the server"
    if "cwd" not in dialect.carries and server.cwd is not None:
        yield f"the working directory is not kept: {title} has no field for it"
    if not isinstance(entry.auth, NoAuth):
        yield f"the sign-in is not kept: {title} must be given a token, or be pointed at Outfitter's gateway"
    if "timeout" not in dialect.carries and server.limits != TimeLimits():
        yield f"the time limits are not kept: {title} has no field for them"
    elif "connect_timeout" not in dialect.carries and server.limits.connect != usual.connect:
        yield f"the time limit for connecting is not kept: {title} has no field for it"
    if server.tool_prefix is not None:
        yield f"the tool prefix is not kept: {title} names tools its own way"
    if any(schema.locked or schema.narrows or schema.internal for schema in entry.header_schema.values()):
        yield f"{title} enforces no locks on headers and fills none by itself"
