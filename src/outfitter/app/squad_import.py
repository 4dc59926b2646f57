"""What editors and agents already have on this machine, merged into a squad file without duplicates.

Two definitions are the same server when they reach the same place with the same headers and variables, whatever they
are called. Where they reach the same place in another way, or have the same name and reach another place, they differ:
that is told, and the caller chooses. Nothing is started, no secret is taken over. Neighbour: ``formats`` reads files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, cast

from outfitter.catalog import JsonValue, MCPServer, ServerEntry, StdioTransport
from outfitter.errors import OutfitterError
from outfitter.formats import (
    MAX_BYTES,
    Client,
    ImportedServer,
    Syntax,
    guess_client,
    parse_text,
    read_client,
    write_squad_server,
)
from outfitter.storage import read_bytes

Choice: TypeAlias = Literal["apart", "keep", "take"]
Document: TypeAlias = "dict[str, JsonValue]"
_REPOSITORY = (
    (".vscode/mcp.json", Client.VSCODE),
    (".mcp.json", Client.CLAUDE_CODE),
    (".junie/mcp/mcp.json", Client.JETBRAINS),
    (".junie/mcp.json", Client.JETBRAINS),
    (".idea/mcp.json", Client.JETBRAINS),
    (".github/mcp.json", Client.COPILOT_CLI),
)
_HOME = (
    (".config/Code/User/mcp.json", Client.VSCODE),
    ("Library/Application Support/Code/User/mcp.json", Client.VSCODE),
    (".claude.json", Client.CLAUDE_CODE),
    (".config/Claude/claude_desktop_config.json", Client.CLAUDE_DESKTOP),
    ("Library/Application Support/Claude/claude_desktop_config.json", Client.CLAUDE_DESKTOP),
    (".junie/mcp/mcp.json", Client.JETBRAINS),
    (".config/github-copilot/intellij/mcp.json", Client.VSCODE),
    (".copilot/mcp-config.json", Client.COPILOT_CLI),
)
_RUNNER_FLAGS = frozenset({"-y", "--yes"})
_OWN = "outfitter-"


@dataclass(frozen=True, slots=True)
class Found:
    """A file of another program, and the servers in it; or why it cannot be read."""

    file: Path
    client: Client | None
    servers: tuple[ImportedServer, ...] = ()
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge comes to, each as a line for a person: what is new, what was there, what differs."""

    document: Document
    added: Mapping[str, str] = field(default_factory=dict[str, str])
    """The new servers: how each is reached."""
    same: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def find_files(project: Path, environment: Mapping[str, str], *, has_home: bool = True) -> Iterator[Found]:
    """What the usual places hold, those of the repository first, each once."""
    home = environment.get("HOME") or environment.get("USERPROFILE")
    places = {(project / name).resolve(): client for name, client in _REPOSITORY}
    for name, client in _HOME if has_home and home else ():
        places.setdefault((Path(str(home)) / name).resolve(), client)
    for file, client in places.items():
        yield from _read_if_there(file, client, project)


def read_file(file: Path, project: Path) -> Found:
    """What one file holds, whosever it is."""
    data = read_bytes(file, MAX_BYTES)
    client = guess_client(str(file), data)
    if client is None:
        return Found(file, None, fault="cannot tell which program this file belongs to")
    return _read(file, client, data, project)


def _read_if_there(file: Path, client: Client, project: Path) -> Iterator[Found]:
    if not file.is_file():
        return
    try:
        yield _read(file, client, read_bytes(file, MAX_BYTES), project)
    except OutfitterError as error:
        yield Found(file, client, fault=str(error))


def _read(file: Path, client: Client, data: bytes, project: Path) -> Found:
    servers: list[ImportedServer] = []
    for text in _parts(client, data, str(file), project):
        servers += read_client(client, text, str(file))
    return Found(file, client, tuple(servers))


def _parts(client: Client, data: bytes, source: str, project: Path) -> Iterator[bytes | str]:
    """The file as its client's reader takes it; Claude Code also keeps servers for each project."""
    if client is not Client.CLAUDE_CODE:
        yield data
        return
    document = parse_text(data, source=source, syntax=Syntax.JSONC)
    projects = document.get("projects")
    mine = projects.get(str(project)) if isinstance(projects, dict) else None
    owns = mine.get("mcpServers") if isinstance(mine, dict) else None
    if "mcpServers" in document or projects is None:
        yield data
    if isinstance(owns, dict):
        yield json.dumps({"mcpServers": owns})


def merge_found(document: Document, known: Iterable[ServerEntry], found: Iterable[Found], choice: Choice) -> Merged:
    """The squad file with what was found; the servers it has already come first."""
    merging = _Merging(document, {entry.id: entry for entry in known}, choice)
    for file in found:
        if file.fault:
            merging.notes.append(f"{file.file} is left out: {file.fault}")
        for server in file.servers:
            merging.take(server, file)
    return merging.result()


@dataclass(slots=True)
class _Merging:
    """A merge under way."""

    document: Document
    entries: dict[str, ServerEntry]
    choice: Choice
    added: dict[str, str] = field(default_factory=dict[str, str])
    same: list[str] = field(default_factory=list[str])
    conflicts: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def take(self, server: ImportedServer, file: Found) -> None:
        """Take one server over, or say why not."""
        entry, told = server.entry, f"'{server.entry.id}' of {file.file}"
        if entry.id.startswith(_OWN) and "OUTFITTER_TOKEN" in str(entry.default_headers):
            self.notes.append(f"{told} is left out: it is an endpoint of Outfitter itself")
            return
        twin = next((name for name, one in self.entries.items() if _is_same(one, entry)), None)
        if twin is not None:
            self.same.append(f"{told} is '{twin}'")
            return
        rival = self._rival(entry)
        if rival is None:
            self._add(entry.id, server)
        elif self.choice == "keep":
            self.conflicts.append(f"{told} differs from '{rival}', which stays as it is")
        elif self.choice == "take":
            self.conflicts.append(f"{told} differs from '{rival}' and takes its place")
            self._add(rival, server)
        else:
            name = self._free(entry.id, file)
            self.conflicts.append(f"{told} differs from '{rival}' and is kept apart as '{name}'")
            self._add(name, server)

    def _rival(self, entry: ServerEntry) -> str | None:
        """Who has its name, or reaches the same place in another way."""
        if entry.id in self.entries:
            return entry.id
        return next((name for name, one in self.entries.items() if _place(one) == _place(entry)), None)

    def _free(self, name: str, file: Found) -> str:
        if name not in self.entries:
            return name
        tail = "" if file.client is None else f"-{file.client.value.partition('-')[0]}"
        free, count = f"{name[:50]}{tail}", 2
        while free in self.entries:
            free, count = f"{name[:50]}{tail}-{count}", count + 1
        return free

    def _add(self, name: str, server: ImportedServer) -> None:
        self.entries[name] = replace(server.entry, server=_named(server.entry.server, name))
        self.added[name] = server.command_line
        self.notes += [f"{name}: {note}" for note in server.notes]

    def result(self) -> Merged:
        """The document with everything that was taken."""
        before = self.document.get("servers")
        servers = dict(before) if isinstance(before, dict) else {}
        servers |= {name: cast("JsonValue", write_squad_server(self.entries[name])) for name in self.added}
        document: Document = {**self.document, "servers": servers}
        document.setdefault("agentServers", {})
        return Merged(document, self.added, tuple(self.same), tuple(self.conflicts), tuple(self.notes))


def _named(server: MCPServer, name: str) -> MCPServer:
    return replace(server, name=name)


def _is_same(one: ServerEntry, other: ServerEntry) -> bool:
    return (
        _place(one) == _place(other)
        and dict(one.server.env) == dict(other.server.env)
        and _headers(one) == _headers(other)
    )


def _headers(entry: ServerEntry) -> dict[str, object]:
    return {name.lower(): value for name, value in entry.default_headers.items()}


def _place(entry: ServerEntry) -> tuple[str, ...]:
    """Where a server is reached, without what makes no difference."""
    transport = entry.server.transport
    if not isinstance(transport, StdioTransport):
        return (transport.url.rstrip("/"),)
    args = [arg.removesuffix("@latest") for arg in transport.args if arg not in _RUNNER_FLAGS]
    return (transport.command.rpartition("/")[2], *args)
