"""Registry entries as they are written: ``mcp-servers/<id>.json`` in document 4's shape, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from outfitter.basics import Secret, SecretRef, looks_sensitive, quote
from outfitter.catalog import (
    NO_AUTH,
    Auth,
    Auth0M2M,
    ClientCredentials,
    HeaderSchema,
    HeaderSetting,
    HeaderSettings,
    HeaderType,
    JsonValue,
    MCPServer,
    PinMode,
    ServerEntry,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    TimeLimits,
    ToolFilter,
    Transport,
)
from outfitter.errors import InvalidDocument, InvalidServer, OutfitterError
from outfitter.formats.shape import (
    Fields,
    is_secret_ref,
    read_each,
    read_env,
    read_filter,
    read_flag,
    read_object,
    read_optional_text,
    read_seconds,
    read_secret_ref,
    read_settings,
    read_text,
    read_texts,
)

R = TypeVar("R", SseTransport, StreamableHttpTransport)

DEFINITION_FIELDS = frozenset(
    [
        "type",
        "url",
        "command",
        "args",
        "cwd",
        "env",
        "description",
        "tools",
        "enabled_tools",
        "disabled_tools",
        "timeout",
        "connect_timeout",
        "total_timeout",
        "tool_prefix",
        "required",
        "shareable",
        "sandbox",
        "fallback",
        "pins",
        "trusted",
    ]
)
_ENTRY_FIELDS = DEFINITION_FIELDS | {
    "id", "name", "header_schema", "default_headers", "auth", "auth_type", "known_tools",
}  # fmt: skip
_SCHEMA_FIELDS = frozenset(
    ["type", "description", "required", "sensitive", "internal", "example", "locked", "narrow", "merge"]
)
_AUTH0_FIELDS = frozenset({"type", "audience"})
_CREDENTIAL_FIELDS = _AUTH0_FIELDS | {"token_url", "client_id", "client_secret", "scope"}
_STDIO = frozenset({"stdio", "local"})
_HTTP = frozenset({"http", "streamable-http", "streamable_http", "streamableHttp"})


def read_entry(value: object, stem: str, source: str) -> ServerEntry:
    """The registry entry of a file; its id is the file's stem and must agree with an id inside."""
    fields = read_object(value, _ENTRY_FIELDS)
    id_ = read_text(fields, "id", stem)
    if id_ != stem:
        raise InvalidDocument(f"the id is {quote(id_)} but the file is named {quote(stem)}", source="").under("id")
    schemas = read_each(fields, "header_schema", _read_schema)
    return ServerEntry(
        server=read_definition(id_, fields),
        title=read_text(fields, "name"),
        header_schema=schemas,
        default_headers=read_settings(fields, "default_headers"),
        auth=_read_auth(fields),
        known_tools=read_texts(fields, "known_tools"),
        source=source,
    )


def read_definition(name: str, fields: Fields) -> MCPServer:
    """The connectable part of an entry or of an inline server, its headers left aside."""
    if len(fields) == 1 and "url" in fields:
        return MCPServer(name, _read_remote(StreamableHttpTransport, read_text(fields, "url")))
    return MCPServer(
        name,
        read_transport(fields),
        env=read_env(fields),
        tools=read_filter(fields),
        limits=TimeLimits.of(
            read_seconds(fields, "timeout"),
            read_seconds(fields, "connect_timeout"),
            read_seconds(fields, "total_timeout"),
        ),
        tool_prefix=read_optional_text(fields, "tool_prefix"),
        description=read_text(fields, "description"),
        required=read_flag(fields, "required"),
        shareable=read_flag(fields, "shareable", default=True),
        sandbox="isolated" if read_choice(fields, "sandbox", ("none", "isolated")) == "isolated" else "none",
        fallback=read_text(fields, "fallback"),
        pins=PinMode(read_choice(fields, "pins", tuple(PinMode))),
        trusted=read_flag(fields, "trusted"),
    )


def read_transport(fields: Fields) -> Transport:
    """The transport that ``type``, ``url`` and ``command`` describe; ``type`` may be left out."""
    url, command = read_optional_text(fields, "url"), read_optional_text(fields, "command")
    if (url is None) == (command is None):
        hint = "give 'url' for a remote server or 'command' for a local one"
        raise InvalidServer("a server needs either 'url' or 'command'", hint=hint)
    kind = read_text(fields, "type", "stdio" if url is None else "http")
    if kind in _STDIO and command is not None:
        return _read_stdio(command, fields)
    if url is not None and kind == "sse":
        return _read_remote(SseTransport, url)
    if url is not None and kind in _HTTP:
        return _read_remote(StreamableHttpTransport, url)
    known = kind in _STDIO or kind in _HTTP or kind == "sse"
    message = f"type '{kind}' does not fit the other fields" if known else f"unknown type {quote(kind)}"
    raise InvalidServer(message, hint="stdio takes 'command'; http and sse take 'url'").under("type")


def _read_stdio(command: str, fields: Fields) -> StdioTransport:
    args, cwd = read_texts(fields, "args") or (), read_optional_text(fields, "cwd")
    try:
        return StdioTransport(command, args, cwd)
    except InvalidServer as error:
        raise error.under("command") from None


def _read_remote(kind: type[R], url: str) -> R:
    try:
        return kind(url)
    except InvalidServer as error:
        raise error.under("url") from None


def _read_schema(name: str, value: object) -> HeaderSchema:
    fields = read_object(value, _SCHEMA_FIELDS)
    return HeaderSchema(
        type=HeaderType(read_choice(fields, "type", tuple(HeaderType))),
        description=read_text(fields, "description"),
        required=read_flag(fields, "required"),
        sensitive=read_flag(fields, "sensitive", default=looks_sensitive(name)),
        internal=read_flag(fields, "internal"),
        example=read_text(fields, "example"),
        locked=read_flag(fields, "locked"),
        narrows=read_choice(fields, "narrow", ("none", "list")) == "list",
        merges=read_choice(fields, "merge", ("replace", "shallow")) == "shallow",
    )


def read_choice(fields: Fields, key: str, choices: tuple[str, ...]) -> str:
    """One of the choices; the first when the key is absent."""
    value = read_text(fields, key, choices[0])
    if value not in choices:
        raise InvalidDocument(f"'{key}' must be one of {', '.join(choices)}", source="").under(key)
    return value


def _read_auth(fields: Fields) -> Auth:
    try:
        inner = read_object(fields["auth"]) if "auth" in fields else {"type": read_text(fields, "auth_type", "none")}
        kind = read_choice(inner, "type", ("none", "auth0_m2m", "oauth2_client_credentials"))
        if kind == "auth0_m2m":
            return Auth0M2M(read_text(read_object(inner, _AUTH0_FIELDS), "audience"))
        if kind == "none":
            return NO_AUTH
        read_object(inner, _CREDENTIAL_FIELDS)
        secret = inner.get("client_secret")
        return ClientCredentials(
            token_url=read_text(inner, "token_url"),
            client_id=read_text(inner, "client_id"),
            client_secret=read_secret_ref(secret) if is_secret_ref(secret) else read_text(inner, "client_secret"),
            scope=read_text(inner, "scope"),
            audience=read_text(inner, "audience"),
        )
    except OutfitterError as error:
        raise error.under("auth") if "auth" in fields else error from None


def write_entry(entry: ServerEntry) -> dict[str, JsonValue]:
    """The entry as its file's content: only what differs from a default."""
    written: dict[str, JsonValue] = {"id": entry.id}
    if entry.title:
        written["name"] = entry.title
    written |= write_definition(entry.server)
    if entry.header_schema:
        written["header_schema"] = {name: _write_schema(name, schema) for name, schema in entry.header_schema.items()}
    if entry.default_headers:
        written["default_headers"] = write_settings(entry.default_headers)
    written |= _write_auth(entry.auth)
    if entry.known_tools is not None:
        written["known_tools"] = list(entry.known_tools)
    return written


def write_definition(server: MCPServer) -> dict[str, JsonValue]:
    """The connectable part, as it is written in an entry or inline."""
    written: dict[str, JsonValue] = {"description": server.description} if server.description else {}
    transport = server.transport
    if isinstance(transport, StdioTransport):
        written |= {"type": "stdio", "command": transport.command, "args": list(transport.args)}
        if transport.cwd is not None:
            written["cwd"] = transport.cwd
    else:
        written |= {"type": "sse" if isinstance(transport, SseTransport) else "http", "url": transport.url}
    if server.env:
        written["env"] = write_settings(server.env)
    return written | write_filter(server.tools) | _write_options(server)


def _write_options(server: MCPServer) -> dict[str, JsonValue]:
    usual = TimeLimits.of(server.limits.call)
    options: dict[str, tuple[JsonValue, JsonValue]] = {
        "timeout": (server.limits.call, TimeLimits().call),
        "connect_timeout": (server.limits.connect, usual.connect),
        "total_timeout": (server.limits.total, usual.total),
        "tool_prefix": (server.tool_prefix, None),
        "required": (server.required, False),
        "shareable": (server.shareable, True),
        "sandbox": (server.sandbox, "none"),
        "fallback": (server.fallback, ""),
        "pins": (server.pins.value, PinMode.FIRST_USE.value),
        "trusted": (server.trusted, False),
    }
    return {name: value for name, (value, default) in options.items() if value != default}


def write_filter(tools: ToolFilter) -> dict[str, JsonValue]:
    """A filter as it is written: nothing when it is open, a plain list when nothing is excluded."""
    if tools.is_open:
        return {}
    include: JsonValue = None if tools.include is None else list(tools.include)
    if not tools.exclude:
        return {"tools": include}
    parts: dict[str, JsonValue] = {"exclude": list(tools.exclude)}
    return {"tools": parts if include is None else {"include": include, **parts}}


def write_settings(settings: HeaderSettings | Mapping[str, str | SecretRef | Secret]) -> dict[str, JsonValue]:
    """Header or environment values as they are written; a Secret in memory has no written form and is refused."""
    return {name: _write_setting(name, value) for name, value in settings.items()}


def _write_setting(name: str, value: HeaderSetting) -> JsonValue:
    if isinstance(value, SecretRef):
        return {"$secret": str(value)}
    if isinstance(value, Secret):
        raise InvalidServer(
            f"'{name}' holds a secret in memory, which is never written", hint="write a reference instead"
        )
    return value


def _write_schema(name: str, schema: HeaderSchema) -> dict[str, JsonValue]:
    written: dict[str, JsonValue] = {"type": schema.type.value}
    written |= {key: getattr(schema, key) for key in ("description", "example") if getattr(schema, key)}
    written |= {flag: True for flag in ("required", "sensitive", "internal", "locked") if getattr(schema, flag)}
    if looks_sensitive(name) and not schema.sensitive:
        written["sensitive"] = False
    if schema.narrows:
        written["narrow"] = "list"
    if schema.merges:
        written["merge"] = "shallow"
    return written


def _write_auth(auth: Auth) -> dict[str, JsonValue]:
    if isinstance(auth, Auth0M2M):
        return (
            {"auth": {"type": "auth0_m2m", "audience": auth.audience}} if auth.audience else {"auth_type": "auth0_m2m"}
        )
    if not isinstance(auth, ClientCredentials):
        return {}
    written: dict[str, JsonValue] = {
        "type": "oauth2_client_credentials",
        "token_url": auth.token_url,
        "client_id": auth.client_id,
        "client_secret": _write_setting("client_secret", auth.client_secret),
    }
    written |= {key: getattr(auth, key) for key in ("scope", "audience") if getattr(auth, key)}
    return {"auth": written}
