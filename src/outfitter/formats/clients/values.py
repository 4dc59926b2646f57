"""What an import and an export give back, and the words in which changes are told."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from outfitter.catalog import JsonValue, ServerEntry, StdioTransport
from outfitter.errors import InvalidServer, UnresolvedPlaceholder
from outfitter.resolution import RuntimeValue, Variable, parse_template


@dataclass(frozen=True, slots=True)
class ImportedServer:
    """A server of a client's file as a registry entry, its command or URL for a person to see, and what was changed."""

    entry: ServerEntry
    command_line: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientFile:
    """The whole text for a client's file, and what that client cannot do with it."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A server as it was read, its literals still in it: never shown, never kept."""

    entry: ServerEntry = field(repr=False)
    where: str
    notes: tuple[str, ...] = ()


def command_line(entry: ServerEntry) -> str:
    """What will be run or called, in full, with nothing in it that a terminal would obey."""
    transport = entry.server.transport
    is_local = isinstance(transport, StdioTransport)
    shown = shlex.join((transport.command, *transport.args)) if is_local else transport.url
    return "".join(ch if ch.isprintable() else ascii(ch)[1:-1] for ch in shown)


def literal(text: str) -> str:
    """The text as a template that means just this text."""
    return text.replace("${", "$${")


def parts_of(text: str) -> tuple[str | Variable | RuntimeValue, ...]:
    """The template's pieces; the fault of a malformed one does not quote it."""
    try:
        return parse_template(text)
    except UnresolvedPlaceholder as error:
        raise InvalidServer("a placeholder is malformed", hint=error.hint) from None


def texts_of(entry: ServerEntry) -> Iterator[str]:
    """Every text of the entry that may hold placeholders."""
    transport = entry.server.transport
    if isinstance(transport, StdioTransport):
        yield from (transport.command, *transport.args, transport.cwd or "")
    else:
        yield transport.url
    values: tuple[Mapping[str, object], ...] = (entry.server.env, entry.default_headers)
    for settings in values:
        yield from (value for value in settings.values() if isinstance(value, str))


def variables_of(entries: Iterable[ServerEntry]) -> set[str]:
    """The names of all variables that the entries refer to."""
    parts = (part for entry in entries for text in texts_of(entry) for part in parts_of(text))
    return {part.name for part in parts if isinstance(part, Variable)}


def as_object(value: JsonValue) -> dict[str, JsonValue]:
    """A copy of the object, or an empty one."""
    return dict(value) if isinstance(value, dict) else {}
