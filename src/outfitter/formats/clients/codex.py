"""Codex's ``config.toml``: the same servers in other words.

Codex fills no placeholders. It forwards variables of its own environment by name: ``env_vars`` to a process,
``bearer_token_env_var`` and ``env_http_headers`` to a remote server. Its file is edited in place: comments stay.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import cast

from outfitter.catalog import JsonValue, ServerEntry, TimeLimits, ToolFilter
from outfitter.errors import InvalidDocument
from outfitter.formats.clients.conceal import import_drafts
from outfitter.formats.clients.dialects import DIALECTS, Client
from outfitter.formats.clients.naming import legal_names, variable_name
from outfitter.formats.clients.reading import Options, Origin, read_server, servers_of
from outfitter.formats.clients.values import ClientFile, Draft, ImportedServer, as_object, parts_of
from outfitter.formats.clients.variables import VariableWriter
from outfitter.formats.clients.writing import Written, include_list, read_existing, write_command, write_servers
from outfitter.formats.document import read_document
from outfitter.formats.shape import (
    Fields,
    read_each,
    read_flag,
    read_items,
    read_object,
    read_optional_text,
    read_seconds,
    read_text,
    read_texts,
    wrong,
)
from outfitter.formats.text import JsonObject, parse_text
from outfitter.resolution import Variable

_DIALECT = DIALECTS[Client.CODEX]
_RENAMED = frozenset({"env_vars", "http_headers", "env_http_headers", "bearer_token", "bearer_token_env_var"})
_LIMITS = frozenset({"startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec"})
_OPTIONS = _LIMITS | {"enabled_tools", "disabled_tools", "required"}
_OWNED = _OPTIONS | _RENAMED | {"command", "args", "env", "cwd", "url"}


def read_codex(data: str | bytes, source: str) -> tuple[ImportedServer, ...]:
    """The servers of Codex's file."""

    def read(value: object) -> tuple[ImportedServer, ...]:
        fields = read_object(value)
        names = legal_names(servers_of(fields, _DIALECT))

        def read_one(name: str, server: object) -> Draft:
            found = read_object(server)
            return read_server(_common(found), names[name], Origin(name, source, _DIALECT), _read_options(found))

        return import_drafts(read_each(fields, _DIALECT.root, read_one).values())

    return read_document(data, source, _DIALECT.syntax, read)


def _common(fields: Fields) -> Fields:
    """The fields with Codex's forwarded variables as ``${NAME}`` in ``env`` and ``headers``."""
    common = {name: value for name, value in fields.items() if name not in _RENAMED}
    forwarded = read_items(fields, "env_vars", _read_forwarded)
    if forwarded:
        common["env"] = {**{name: f"${{{name}}}" for name in forwarded}, **read_each(fields, "env", _as_it_is)}
    headers = dict(read_each(fields, "http_headers", _as_it_is))
    headers |= {
        name: f"${{{variable}}}" for name, variable in read_each(fields, "env_http_headers", _read_name).items()
    }
    token, variable = read_optional_text(fields, "bearer_token"), read_optional_text(fields, "bearer_token_env_var")
    if token is not None or variable is not None:
        headers["Authorization"] = f"Bearer {token}" if variable is None else f"Bearer ${{{variable}}}"
    return {**common, "headers": headers} if headers else common


def _read_forwarded(value: object) -> str:
    """A variable's name, alone or with the place it comes from."""
    return value if isinstance(value, str) else read_text(read_object(value), "name")


def _as_it_is(_name: str, value: object) -> object:
    return value


def _read_name(_header: str, value: object) -> str:
    if not isinstance(value, str):
        raise wrong("a text", value)
    return value


def _read_options(fields: Fields) -> Options:
    startup = read_seconds(fields, "startup_timeout_sec")
    if startup is None:
        startup = read_seconds(fields, "startup_timeout_ms", milliseconds=True)
    include, exclude = read_texts(fields, "enabled_tools"), read_texts(fields, "disabled_tools") or ()
    return Options(
        tools=ToolFilter(include, exclude),
        limits=TimeLimits.of(read_seconds(fields, "tool_timeout_sec"), startup),
        required=read_flag(fields, "required"),
        fields=_OPTIONS,
    )


def write_codex(entries: Sequence[ServerEntry], existing: str | None) -> ClientFile:
    """The text of Codex's file with the entries in it."""
    import tomlkit

    present, _ = read_existing(existing, _DIALECT)
    servers = write_servers(entries, _DIALECT, _render)
    document = tomlkit.parse((existing or "").removeprefix("\ufeff"))
    if _DIALECT.root not in document:
        document[_DIALECT.root] = tomlkit.table(is_super_table=bool(servers))
    for server in servers:
        _put(cast("MutableMapping[str, object]", document[_DIALECT.root]), server.name, server.fields)
    text = tomlkit.dumps(document)
    _check(text, present, servers)
    notes = [f"{server.name}: {note}" for server in servers for note in server.notes]
    return ClientFile(text, tuple(dict.fromkeys(notes)))


def _put(servers: MutableMapping[str, object], name: str, fields: Mapping[str, JsonValue]) -> None:
    """Write the server into the table; fields that Outfitter does not know, and comments, stay."""
    import tomlkit
    from tomlkit.items import InlineTable

    plain_first = sorted(fields.items(), key=lambda item: isinstance(item[1], dict))
    if name not in servers:
        servers[name] = {} if isinstance(servers, InlineTable) else tomlkit.table()
    present = cast("MutableMapping[str, object]", servers[name])
    for key in [key for key in present if key in _OWNED and key not in fields]:
        del present[key]
    for key, value in plain_first:
        if key not in present or present[key] != value:
            present[key] = value


def _check(text: str, present: JsonObject, servers: Sequence[Written]) -> None:
    """Refuse a text that does not say what was meant: a table may be written in more ways than an editor knows."""
    expected = dict(as_object(present.get(_DIALECT.root)))
    for server in servers:
        old = as_object(expected.get(server.name))
        expected[server.name] = {**{key: old[key] for key in old if key not in _OWNED}, **server.fields}
    try:
        is_right = parse_text(text, source="", syntax=_DIALECT.syntax) == {**present, _DIALECT.root: expected}
    except InvalidDocument:
        is_right = False
    if not is_right:
        message = "the servers cannot be put into this file safely"
        raise InvalidDocument(message, source=_DIALECT.file, hint="write each server as a table, [mcp_servers.NAME]")


def _render(entry: ServerEntry, writer: VariableWriter) -> dict[str, JsonValue]:
    server, usual = entry.server, TimeLimits()
    fields = write_command(entry, writer) | _write_env(entry, writer.notes) | _write_headers(entry, writer.notes)
    if server.limits.connect != usual.connect:
        fields["startup_timeout_sec"] = server.limits.connect
    if server.limits.call != usual.call:
        fields["tool_timeout_sec"] = server.limits.call
    if server.required:
        fields["required"] = True
    return fields | _write_tools(entry, writer.notes)


def _write_env(entry: ServerEntry, notes: list[str]) -> dict[str, JsonValue]:
    forwarded: list[JsonValue] = []
    plain: dict[str, JsonValue] = {}
    if entry.server.remote is not None:
        return {}
    for name, value in entry.server.env.items():
        text = _plain_text(str(value))
        if text is not None:
            plain[name] = text
            continue
        forwarded.append(name)
        if value != f"${{{name}}}":
            notes.append(f"env {name}: Codex passes variables on and fills none; set {name} itself before it starts")
    return _filled({"env_vars": forwarded, "env": plain})


def _write_headers(entry: ServerEntry, notes: list[str]) -> dict[str, JsonValue]:
    plain: dict[str, JsonValue] = {}
    forwarded: dict[str, JsonValue] = {}
    bearer: str | None = None
    for name, value in entry.default_headers.items():
        text, parts = _plain_text(str(value)), parts_of(str(value))
        match parts:
            case ("Bearer ", Variable(name=variable, default=None)) if name.lower() == "authorization":
                bearer = variable
            case (Variable(name=variable, default=None),):
                forwarded[name] = variable
            case _ if text is not None:
                plain[name] = text
            case _:
                forwarded[name] = variable_name(entry.id, name)
                notes.append(f"header {name}: Codex fills no parts; set {forwarded[name]} to the whole value")
    return _filled({"bearer_token_env_var": bearer, "http_headers": plain, "env_http_headers": forwarded})


def _filled(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {name: value for name, value in fields.items() if value}


def _plain_text(template: str) -> str | None:
    """The text of a template without placeholders; None when it has one."""
    parts = parts_of(template)
    return "".join(part for part in parts if isinstance(part, str)) if all(isinstance(p, str) for p in parts) else None


def _write_tools(entry: ServerEntry, notes: list[str]) -> dict[str, JsonValue]:
    tools = entry.server.tools
    if tools.is_open:
        return {}
    names = (*(tools.include or ()), *tools.exclude)
    if any(ch in name for name in names for ch in "*?["):
        listed = include_list(entry, notes, _DIALECT)
        return {} if listed == ("*",) else {"enabled_tools": list(listed)}
    written = _filled({"disabled_tools": list(tools.exclude)})
    if tools.include is not None:
        written["enabled_tools"] = list(tools.include)
    return written
