"""An entry as the official registry's ``server.json``: a package that a runner can fetch, or a remote.

A command that no registry knows cannot be described there and is refused. The name is a placeholder until its publisher
puts his own namespace before it; a file that exists keeps its name and version.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from outfitter.catalog import HeaderSchema, ServerEntry, SseTransport, StdioTransport
from outfitter.errors import InvalidServer
from outfitter.formats.clients.credentials import is_sensitive
from outfitter.formats.clients.dialects import Dialect
from outfitter.formats.clients.plain import plain_entries
from outfitter.formats.clients.registry_reading import RUNNERS
from outfitter.formats.clients.values import ClientFile, parts_of
from outfitter.formats.clients.variables import runtime_variable
from outfitter.formats.clients.writing import losses, read_existing
from outfitter.formats.text import JsonObject, Syntax, render_text
from outfitter.resolution import RuntimeValue, Variable

_DIALECT = Dialect(title="server.json", file="server.json", root="_meta", types={})
_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_MAX_DESCRIPTION = 100
_NPM = re.compile(r"(?P<name>(?:@[\w.~-]+/)?[\w.~-]+)(?:@(?P<version>[^@]+))?")
_PYPI = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(?:\[[\w,.-]+\])?)(?:(?:==|@)(?P<version>.+))?")
_RANGE = re.compile(r"latest|.*[\^~><=*\s].*|.*\.x")
_DOCKER_SWITCHES = frozenset({"-i", "-t", "-it", "--rm", "--init", "--interactive", "--tty"})
_DOCKER_OPTIONS = frozenset(
    {"-e", "--env", "-v", "--volume", "--mount", "--name", "--network", "-p", "--user", "-w", "--workdir", "--platform"}
)


def write_registry(entries: Sequence[ServerEntry], existing: str | None) -> ClientFile:
    """The server.json of the one entry."""
    if len(entries) != 1:
        message = f"a server.json describes one server, not {len(entries)}"
        raise InvalidServer(message, hint="name the one to export")
    (plain,) = plain_entries(entries)
    document, lost = read_existing(existing, _DIALECT)
    notes = [*plain.notes, *lost, *losses(plain.entry, _DIALECT)]
    written = _about(plain.entry, document, notes) | _Writer(plain.entry, plain.secrets, notes).way()
    kept = {key: value for key, value in document.items() if key not in {"packages", "remotes", *written}}
    return ClientFile(render_text(written | kept, Syntax.JSON), tuple(dict.fromkeys(notes)))


def _about(entry: ServerEntry, document: JsonObject, notes: list[str]) -> JsonObject:
    """What the file says of the server as a whole; what it said before comes first."""
    description = entry.server.description or entry.title or f"MCP server {entry.id}"
    if len(description) > _MAX_DESCRIPTION:
        notes.append(f"the description is cut: server.json takes {_MAX_DESCRIPTION} characters")
        description = f"{description[: _MAX_DESCRIPTION - 1]}…"
    about: JsonObject = {"$schema": _SCHEMA, "name": f"com.example/{entry.id}", "description": description}
    if entry.title:
        about["title"] = entry.title
    about["version"] = "0.0.0"
    if "name" not in document:
        notes.append("the name is a placeholder: put a namespace of your own before it to publish the file")
    if "version" not in document:
        notes.append("the version 0.0.0 is a placeholder: the catalog keeps none")
    return {key: document.get(key, value) for key, value in about.items()}


@dataclass(frozen=True, slots=True)
class _Writer:
    entry: ServerEntry
    secrets: frozenset[str]
    notes: list[str]

    def way(self) -> JsonObject:
        transport = self.entry.server.transport
        if isinstance(transport, StdioTransport):
            return {"packages": [self._package(transport)]}
        kind = "sse" if isinstance(transport, SseTransport) else "streamable-http"
        remote: JsonObject = {"type": kind, **self._text("url", transport.url)}
        headers = [self._header(name) for name in {**self.entry.header_schema, **self.entry.default_headers}]
        return {"remotes": [{**remote, "headers": list(headers)} if headers else remote]}

    def _package(self, transport: StdioTransport) -> JsonObject:
        kind = next((kind for kind, runners in RUNNERS.items() if transport.command in runners), None)
        split = None if kind is None else _split(kind, transport.args)
        if kind is None or split is None:
            message = f"'{self.entry.id}' is started by a command that no package registry knows"
            raise InvalidServer(
                message, hint="a server.json takes 'npx -y PACKAGE', 'uvx PACKAGE', 'docker run IMAGE' or a URL"
            )
        runtime, package, rest = split
        written: JsonObject = {
            "registryType": kind,
            **self._identifier(kind, package),
            "runtimeHint": transport.command,
        }
        written["transport"] = {"type": "stdio"}
        for key, args in (("runtimeArguments", runtime), ("packageArguments", rest)):
            if args:
                written[key] = [{"type": "positional", **self._text("value", arg)} for arg in args]
        if self.entry.server.env:
            written["environmentVariables"] = [self._variable(name) for name in self.entry.server.env]
        return written

    def _identifier(self, kind: str, package: str) -> JsonObject:
        if kind == "oci":
            return {"identifier": package}
        match = (_NPM if kind == "npm" else _PYPI).fullmatch(package)
        name, version = (package, None) if match is None else (match["name"], match["version"])
        if version is None or _RANGE.fullmatch(version) is None:
            return {"identifier": name} if version is None else {"identifier": name, "version": version}
        self.notes.append("a version range or 'latest' is not allowed in a server.json and is left out")
        return {"identifier": name}

    def _variable(self, name: str) -> JsonObject:
        """An environment variable: to be given by the user, or with a value."""
        template = str(self.entry.server.env[name])
        flags: JsonObject = {"isSecret": True} if is_sensitive(name) or name in self.secrets else {}
        match parts_of(template):
            case (Variable(name=variable, default=default),) if variable == name:
                return {"name": name, **({"isRequired": True} if default is None else {"default": default}), **flags}
            case _:
                return {"name": name, **self._text("value", template, sensitive=bool(flags)), **flags}

    def _header(self, name: str) -> JsonObject:
        schema = self.entry.header_schema.get(name, HeaderSchema())
        header: JsonObject = {"name": name}
        if schema.description:
            header["description"] = schema.description
        header |= {"isRequired": True} if schema.required else {}
        header |= {"isSecret": True} if schema.sensitive else {}
        if name in self.entry.default_headers:
            header |= self._text("value", str(self.entry.default_headers[name]), sensitive=schema.sensitive)
        return header

    def _text(self, key: str, template: str, *, sensitive: bool = False) -> JsonObject:
        """The template as a value with ``{variables}`` and what is said of each."""
        pieces: list[str] = []
        variables: JsonObject = {}
        for part in parts_of(template):
            if isinstance(part, str):
                pieces.append(part)
                continue
            name = runtime_variable(part.name) if isinstance(part, RuntimeValue) else part.name
            default = part.default if isinstance(part, Variable) else None
            flags: JsonObject = {"isRequired": True} if default is None else {"default": default}
            is_secret = sensitive or name in self.secrets or is_sensitive(name)
            variables[name] = {**flags, "isSecret": True} if is_secret else flags
            pieces.append(f"{{{name}}}")
        written: JsonObject = {key: "".join(pieces)}
        return {**written, "variables": variables} if variables else written


def _split(kind: str, args: Sequence[str]) -> tuple[list[str], str, list[str]] | None:
    """What stands before the package, the package, and what is passed to it; None when it cannot be told."""
    index = 0
    before: list[str] = []
    if kind == "oci":
        if args[:1] != ("run",):
            return None
        index, before = _skip_docker_options(args), list(args[: _skip_docker_options(args)])
    elif kind == "npm" and args[:1] in {("-y",), ("--yes",)}:
        index = 1
    is_package = index < len(args) and not args[index].startswith("-") and "${" not in args[index]
    known = {"npm": _NPM, "pypi": _PYPI}.get(kind)
    if not is_package or (known is not None and known.fullmatch(args[index]) is None):
        return None
    return before, args[index], list(args[index + 1 :])


def _skip_docker_options(args: Sequence[str]) -> int:
    """The index of the first argument after ``run`` that is no option and no option's value."""
    index = 1
    while index < len(args) and args[index].startswith("-"):
        if args[index] in _DOCKER_OPTIONS:
            index += 2
        elif args[index] in _DOCKER_SWITCHES or (args[index].startswith("--") and "=" in args[index]):
            index += 1
        else:
            return len(args)
    return index
