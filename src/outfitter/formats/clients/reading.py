"""One server of a client's file as an entry of the registry; every choice that was made is a note.

The shape is the one that all clients share: ``command`` or ``url``, ``args``, ``env``, ``headers``. What else a client
has comes as ``Options`` from its own reader or is left out with a note. Types are checked; newer fields do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from outfitter.basics import quote
from outfitter.catalog import (
    ALL_TOOLS,
    MCPServer,
    ServerEntry,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    TimeLimits,
    ToolFilter,
    Transport,
    name_fault,
)
from outfitter.errors import InvalidDocument, InvalidServer
from outfitter.formats.clients.conceal import import_drafts
from outfitter.formats.clients.credentials import mask
from outfitter.formats.clients.dialects import DIALECTS, Client, Dialect
from outfitter.formats.clients.naming import legal_names
from outfitter.formats.clients.values import Draft, ImportedServer
from outfitter.formats.clients.variables import Input, VariableReader, read_inputs
from outfitter.formats.document import read_document
from outfitter.formats.shape import (
    Fields,
    read_each,
    read_flag,
    read_object,
    read_optional_text,
    read_seconds,
    read_texts,
    wrong,
)
from outfitter.formats.text import pointer

_STDIO = frozenset({"stdio", "local"})
_HTTP = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})
_LOCAL = frozenset({"args", "env", "cwd"})
_REMOTE = frozenset({"headers"})
_SHARED = frozenset({"type", "transport", "command", "url", "disabled", "enabled"}) | _LOCAL | _REMOTE


@dataclass(frozen=True, slots=True)
class Options:
    """What a client says about a server besides how to reach it."""

    tools: ToolFilter = ALL_TOOLS
    limits: TimeLimits = field(default_factory=TimeLimits)
    required: bool = False
    fields: frozenset[str] = frozenset()


def read_json_client(client: Client, data: str | bytes, source: str) -> tuple[ImportedServer, ...]:
    """The servers of a JSON client's file."""
    dialect = DIALECTS[client]

    def read(value: object) -> tuple[ImportedServer, ...]:
        fields = read_object(value)
        servers = servers_of(fields, dialect)
        names = legal_names(servers)
        inputs = read_inputs(fields) if dialect.inputs else {}

        def read_one(name: str, server: object) -> Draft:
            found = read_object(server)
            return read_server(found, names[name], Origin(name, source, dialect, inputs), _read_options(found, dialect))

        return import_drafts(read_each(fields, dialect.root, read_one).values())

    return read_document(data, source, dialect.syntax, read)


def servers_of(fields: Fields, dialect: Dialect) -> Fields:
    """The object that holds the servers; a file without one is not this client's."""
    if dialect.root not in fields:
        message = f"no '{dialect.root}' in the file: not a file of {dialect.title}"
        raise InvalidDocument(message, source="", hint=f"{dialect.title} keeps its servers in {dialect.file}")
    try:
        return read_object(fields[dialect.root])
    except InvalidDocument as error:
        raise error.under(dialect.root) from None


def _read_options(fields: Fields, dialect: Dialect) -> Options:
    carried = dialect.carries & {"tools", "timeout"}
    tools = read_texts(fields, "tools") if "tools" in carried else None
    limits = TimeLimits()
    if "timeout" in carried:
        try:
            limits = TimeLimits.of(read_seconds(fields, "timeout", milliseconds=True))
        except InvalidServer as error:
            raise error.under("timeout") from None
    is_open = tools is None or "*" in tools
    return Options(ALL_TOOLS if is_open else ToolFilter(tools), limits, fields=carried)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a server comes from: its name there, the file, and how that file is written."""

    name: str
    source: str
    dialect: Dialect
    inputs: Mapping[str, Input] = field(default_factory=dict[str, Input])

    @property
    def place(self) -> str:
        """The file and the pointer inside it, for a person to find."""
        return f"{self.source} at {pointer((self.dialect.root, self.name))}"


def read_server(fields: Fields, name: str, origin: Origin, options: Options) -> Draft:
    """The entry that the fields describe, with the changes that had to be made."""
    notes = (
        [f"the name {quote(mask(origin.name))} is not allowed here: it is now '{name}'"] if name != origin.name else []
    )
    env = read_each(fields, "env", _read_value)
    reader = VariableReader(origin.dialect, notes, origin.inputs, frozenset(env))
    transport = _read_transport(fields, reader)
    is_local = isinstance(transport, StdioTransport)
    headers = {} if is_local else keep_headers(read_each(fields, "headers", _read_value), notes)
    known = _SHARED - (_REMOTE if is_local else _LOCAL)
    notes += _told(fields, known | options.fields, origin.dialect)
    server = MCPServer(
        name,
        transport,
        env={key: reader.read(value, "env") for key, value in env.items() if value is not None} if is_local else {},
        tools=options.tools,
        limits=options.limits,
        required=options.required,
    )
    filled = {key: reader.read(value, "headers") for key, value in headers.items()}
    return Draft(ServerEntry(server, default_headers=filled, source=origin.source), origin.place, tuple(notes))


def _read_transport(fields: Fields, reader: VariableReader) -> Transport:
    url, command = read_optional_text(fields, "url"), read_optional_text(fields, "command")
    if (url is None) == (command is None):
        hint = "give 'url' for a remote server or 'command' for a local one"
        raise InvalidServer("a server needs either 'url' or 'command'", hint=hint)
    kind = read_optional_text(fields, "type") or read_optional_text(fields, "transport")
    try:
        if command is not None and (kind is None or kind in _STDIO):
            args = tuple(reader.read(arg, "args") for arg in read_texts(fields, "args") or ())
            cwd = read_optional_text(fields, "cwd")
            return StdioTransport(reader.read(command, "command"), args, cwd and reader.read(cwd, "cwd"))
        if url is not None and kind == "sse":
            return SseTransport(reader.read(url, "url"))
        if url is not None and (kind is None or kind in _HTTP):
            return StreamableHttpTransport(reader.read(url, "url"))
    except InvalidServer as error:
        raise error.under("url" if command is None else "command") from None
    message = "this type of server is not known, or does not fit the other fields"
    raise InvalidServer(message, hint="stdio takes 'command'; http and sse take 'url'").under("type")


def _read_value(_name: str, value: object) -> str | None:
    """A text, or a number or truth value as text; None for null, which sets nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise wrong("a text", value)
    return value


def keep_headers(headers: Mapping[str, str | None], notes: list[str]) -> dict[str, str]:
    """The headers that may be configured; each other one is told."""
    kept: dict[str, str] = {}
    for name, value in headers.items():
        fault = name_fault(name)
        if fault is not None:
            notes.append(f"header {quote(mask(name))} is left out: {fault}")
        elif value is not None:
            kept[name] = value
    return kept


def _told(fields: Fields, known: Iterable[str], dialect: Dialect) -> list[str]:
    """What a person should know about the fields that have no place in an entry."""
    notes: list[str] = []
    if read_flag(fields, "disabled") or not read_flag(fields, "enabled", default=True):
        notes.append(f"switched off in {dialect.title}; here nothing uses it until an agent refers to it")
    left = [name for name in fields if name not in set(known) | {"envFile"}]
    if left:
        notes.append(f"left out, as it has no place here: {', '.join(quote(mask(name)) for name in left)}")
    if "envFile" in fields:
        notes.append("envFile is not read: set its variables where Outfitter runs, or list them in env")
    return notes
