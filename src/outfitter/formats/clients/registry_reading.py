"""The official registry's ``server.json``: each package or remote it offers is one way to reach the same server.

A package becomes the command that its registry's runner takes; nothing is fetched. What the publisher leaves for the
user to fill becomes a variable, with his description in a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from outfitter.basics import quote
from outfitter.catalog import (
    HeaderSchema,
    MCPServer,
    ServerEntry,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
)
from outfitter.errors import InvalidServer
from outfitter.formats.clients.conceal import import_drafts
from outfitter.formats.clients.credentials import is_sensitive, mask
from outfitter.formats.clients.naming import legal_names, variable_name
from outfitter.formats.clients.reading import keep_headers
from outfitter.formats.clients.values import Draft, ImportedServer, literal
from outfitter.formats.document import read_document
from outfitter.formats.shape import (
    Fields,
    read_each,
    read_flag,
    read_items,
    read_object,
    read_optional_text,
    read_text,
)
from outfitter.formats.text import Syntax

RUNNERS = {"npm": ("npx", "bunx", "pnpx"), "pypi": ("uvx",), "oci": ("docker", "podman")}
_BRACES = re.compile(r"\{([A-Za-z_][\w.-]*)\}")
_UPPER = re.compile(r"[A-Z_][A-Z0-9_]*")
_BRACKETS = frozenset("{}")


def read_registry(data: str | bytes, source: str) -> tuple[ImportedServer, ...]:
    """Every way that the server.json offers; the first has the plain name."""

    def read(value: object) -> tuple[ImportedServer, ...]:
        fields = read_object(value)
        name = read_text(fields, "name")
        if not name:
            raise InvalidServer("'name' is missing", hint="a server.json names its server: io.github.user/weather")
        return import_drafts(_named(list(_ways(fields, source)), name))

    return read_document(data, source, Syntax.JSONC, read)


@dataclass(frozen=True, slots=True)
class _Way:
    """One package or remote, still under a name of its own, and how to tell it from the others."""

    draft: Draft
    kind: str


def _ways(fields: Fields, source: str) -> Iterator[_Way]:
    (name,) = legal_names([read_text(fields, "name")]).values()
    skipped: list[str] = []

    def read_package(value: object) -> _Way | None:
        item = read_object(value)
        kind = read_text(item, "registryType")
        if kind in RUNNERS and read_text(read_object(item.get("transport", {})), "type", "stdio") == "stdio":
            return _Inputs(name, []).package(item, kind)
        skipped.append(f"a package of type {quote(mask(kind))} that Outfitter cannot start")
        return None

    def read_remote(value: object) -> _Way:
        return _Inputs(name, []).remote(read_object(value))

    ways = [*read_items(fields, "packages", read_package), *read_items(fields, "remotes", read_remote)]
    found = [way for way in ways if way is not None]
    if not found:
        hint = "it needs a package of npm, pypi or oci with stdio, or a remote"
        raise InvalidServer("the server.json offers nothing that Outfitter can use", hint=hint)
    for way in found:
        entry = replace(way.draft.entry, title=read_text(fields, "title"), source=source)
        server = replace(entry.server, description=read_text(fields, "description"))
        told = [*way.draft.notes, *(f"also offered: {what}" for what in skipped)]
        yield replace(way, draft=Draft(replace(entry, server=server), source, tuple(told)))


def _named(ways: list[_Way], original: str) -> Iterator[Draft]:
    plain = ways[0].draft.entry.id
    names = [plain, *(f"{plain}-{way.kind}" for way in ways[1:])]
    told = [f"{quote(mask(original))} is now '{plain}'"] if original != plain else []
    if len(ways) > 1:
        told.append(
            f"one of {len(ways)} ways to reach the same server: {', '.join(way.kind for way in ways)}; keep one"
        )
    for index, way in enumerate(ways):
        name = names[index] if names.index(names[index]) == index else f"{names[index]}-{index + 1}"
        entry = replace(way.draft.entry, server=replace(way.draft.entry.server, name=name))
        yield Draft(entry, way.draft.where, (*told, *way.draft.notes))


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Reads the inputs of one package or remote."""

    server: str
    notes: list[str] = field(default_factory=list[str])

    def package(self, item: Fields, kind: str) -> _Way:
        identifier = read_text(item, "identifier")
        env = self._pairs(item, "environmentVariables")
        runtime = [arg for args in read_items(item, "runtimeArguments", self._argument) for arg in args]
        rest = [arg for args in read_items(item, "packageArguments", self._argument) for arg in args]
        runner = self._runner(item, kind)
        package = literal(_versioned(kind, identifier, read_optional_text(item, "version")))
        args = (*_started(kind, runtime, env), package, *rest)
        server = MCPServer(self.server, StdioTransport(runner, args), env=env)
        return _Way(Draft(ServerEntry(server), "", tuple(self.notes)), kind)

    def _runner(self, item: Fields, kind: str) -> str:
        hint = read_optional_text(item, "runtimeHint")
        if hint is None or hint in RUNNERS[kind]:
            return hint or RUNNERS[kind][0]
        self.notes.append(f"started by {RUNNERS[kind][0]}, not by {quote(mask(hint))}, which does not fetch packages")
        return RUNNERS[kind][0]

    def remote(self, item: Fields) -> _Way:
        kind = read_text(item, "type", "streamable-http")
        if kind not in {"sse", "streamable-http"}:
            raise InvalidServer("this type of remote is not known", hint="use streamable-http or sse").under("type")
        url = self._fill(read_text(item, "url"), item)
        try:
            transport = SseTransport(url) if kind == "sse" else StreamableHttpTransport(url)
        except InvalidServer as error:
            raise error.under("url") from None
        headers = keep_headers(self._pairs(item, "headers"), self.notes)
        schema = {name: found for name, found in self._schemas(item).items() if found != HeaderSchema()}
        entry = ServerEntry(MCPServer(self.server, transport), header_schema=schema, default_headers=headers)
        return _Way(Draft(entry, "", tuple(self.notes)), "sse" if kind == "sse" else "http")

    def _schemas(self, item: Fields) -> dict[str, HeaderSchema]:
        found: dict[str, HeaderSchema] = {}
        for header in read_items(item, "headers", read_object):
            name = read_text(header, "name")
            found[name] = HeaderSchema(
                description=mask(read_text(header, "description")),
                required=read_flag(header, "isRequired"),
                sensitive=read_flag(header, "isSecret") or is_sensitive(name),
            )
        return {name: schema for name, schema in found.items() if keep_headers({name: ""}, [])}

    def _pairs(self, item: Fields, key: str) -> dict[str, str]:
        """The environment variables or headers that get a value."""
        pairs: dict[str, str] = {}
        is_env = key == "environmentVariables"

        def read_pair(value: object) -> None:
            pair = read_object(value)
            name = read_text(pair, "name")
            filled = self._value(pair, name if is_env else variable_name(self.server, name), name)
            if filled is not None:
                pairs[name] = filled

        read_items(item, key, read_pair)
        return pairs

    def _argument(self, value: object) -> tuple[str, ...]:
        """The words that an argument adds to the command line; a flag and its value are two."""
        item = read_object(value)
        name = read_text(item, "name")
        hint = name.lstrip("-") or read_text(item, "valueHint") or "argument"
        filled = self._value(item, variable_name(self.server, hint), name or hint)
        if read_text(item, "type", "positional") != "named":
            return () if filled is None else (filled,)
        is_switch = not any(key in item for key in ("value", "default", "description", "valueHint", "isRequired"))
        if filled is None:
            return (literal(name),) if is_switch else ()
        return (literal(name), filled)

    def _value(self, item: Fields, variable: str, name: str) -> str | None:
        """The template for an input; None when nobody has to give it."""
        value, default = read_optional_text(item, "value"), read_optional_text(item, "default")
        is_secret, is_required = read_flag(item, "isSecret"), read_flag(item, "isRequired")
        about = f": {quote(mask(text))}" if (text := read_text(item, "description")) else ""
        if value is not None:
            filled = self._fill(value, item)
            if not is_secret or not value or filled != literal(value):
                return filled
            self.notes.append(
                f"{mask(name)} held a literal secret and is now ${{{variable}}}; set it where Outfitter runs"
            )
            return f"${{{variable}}}"
        if default is not None and not is_secret and not is_sensitive(name):
            return f"${{{variable}:-{default}}}" if not _BRACKETS & set(default) else literal(default)
        if is_required:
            self.notes.append(f"{mask(name)} must be given: set {variable} where Outfitter runs{about}")
            return f"${{{variable}}}"
        self.notes.append(f"{mask(name)} is optional and left out{about}")
        return None

    def _fill(self, value: str, item: Fields) -> str:
        """The value with its ``{variables}`` as Outfitter's; braces that name none of them stay as they are."""
        variables = read_each(item, "variables", self._variable)
        pieces: list[str] = []
        end = 0
        for match in _BRACES.finditer(value):
            if match[1] in variables:
                pieces += literal(value[end : match.start()]), variables[match[1]]
                end = match.end()
        return "".join([*pieces, literal(value[end:])])

    def _variable(self, name: str, value: object) -> str:
        variable = name if _UPPER.fullmatch(name) else variable_name(self.server, name)
        filled = self._value(read_object(value), variable, name)
        return f"${{{variable}:-}}" if filled is None else filled


def _versioned(kind: str, identifier: str, version: str | None) -> str:
    """The package as its runner names it, with the version that the file asks for."""
    if version is None:
        return identifier
    if kind == "oci":
        return identifier if ":" in identifier.rpartition("/")[2] else f"{identifier}:{version}"
    return f"{identifier}{'@' if kind == 'npm' else '=='}{version}"


def _started(kind: str, runtime: list[str], env: dict[str, str]) -> list[str]:
    """What stands before the package: no questions from npx, and a container that gets its variables and goes away."""
    if kind == "npm":
        return runtime if {"-y", "--yes"} & set(runtime) else ["-y", *runtime]
    if kind == "pypi":
        return runtime
    start = [] if runtime[:1] == ["run"] else ["run", "-i", "--rm"]
    given = [name for name in env if not any(name in arg for arg in runtime)]
    return [*start, *runtime, *(word for name in given for word in ("-e", name))]
