"""An entry without literal secrets: each becomes a variable, and a note says which one to set and where the value is.

Used in both directions: nothing secret comes in with a client's file, and nothing secret goes out into one. Which
texts are secrets is ``credentials``. No note ever holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from outfitter.catalog import HeaderSchema, ServerEntry, StdioTransport, Transport
from outfitter.formats.clients.credentials import (
    HARMLESS,
    SCHEME,
    find_credentials,
    is_sensitive,
    mask,
    takes_secret,
)
from outfitter.formats.clients.naming import Vault
from outfitter.formats.clients.values import (
    Draft,
    ImportedServer,
    command_line,
    literal,
    parts_of,
    variables_of,
)
from outfitter.resolution import RuntimeValue, Variable

_GLUE = re.compile(r"[A-Za-z]{0,12}[\s=:,;./|-]*")
_FLAG = re.compile(r"--?[A-Za-z]|--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
_EXTENSION = re.compile(r"^x-", re.IGNORECASE)
_MANY = 8


def import_drafts(drafts: Iterable[Draft]) -> tuple[ImportedServer, ...]:
    """What was read, with references where secrets stood."""
    read = tuple(drafts)
    vault = Vault(variables_of(draft.entry for draft in read))
    found: list[ImportedServer] = []
    for draft in read:
        entry, notes = conceal_entry(draft.entry, vault, draft.where)
        found.append(ImportedServer(entry, command_line(entry), (*draft.notes, *notes)))
    return tuple(found)


def conceal_entry(entry: ServerEntry, vault: Vault, where: str) -> tuple[ServerEntry, tuple[str, ...]]:
    """The entry with variables for its literal secrets, and a note for each."""
    concealer = _Concealer(entry.id, vault, where)
    server = replace(
        entry.server,
        transport=concealer.transport(entry.server.transport),
        env={
            name: concealer.text(value, f"env {name}", name) if isinstance(value, str) else value
            for name, value in entry.server.env.items()
        },
        description=mask(entry.server.description),
    )
    headers, schema = concealer.headers(entry.default_headers, entry.header_schema)
    title = mask(entry.title)
    concealed = replace(entry, server=server, title=title, default_headers=headers, header_schema=schema)
    return concealed, tuple(concealer.notes)


@dataclass(frozen=True, slots=True)
class _Concealer:
    server: str
    vault: Vault
    where: str
    notes: list[str] = field(default_factory=list[str])

    def transport(self, transport: Transport) -> Transport:
        if isinstance(transport, StdioTransport):
            cwd = None if transport.cwd is None else self.text(transport.cwd, "cwd")
            return StdioTransport(self.text(transport.command, "command"), self._arguments(transport.args), cwd)
        return replace(transport, url=self.text(transport.url, "url"))

    def _arguments(self, args: tuple[str, ...]) -> tuple[str, ...]:
        """Each argument; one that follows a flag such as ``--api-key`` is that flag's value."""
        concealed: list[str] = []
        flag = ""
        for index, arg in enumerate(args):
            is_value = takes_secret(flag) and _FLAG.fullmatch(arg) is None
            concealed.append(self.text(arg, f"args[{index}]", flag if is_value else ""))
            flag = arg
        return tuple(concealed)

    def headers(
        self, headers: Mapping[str, object], schema: Mapping[str, HeaderSchema]
    ) -> tuple[dict[str, str], dict[str, HeaderSchema]]:
        """The headers, and their schema with each secret one marked as such."""
        concealed: dict[str, str] = {}
        known = dict(schema)
        for name, value in headers.items():
            told = len(self.notes)
            sensitive = is_sensitive(name) or (name in known and known[name].sensitive)
            concealed[name] = self.text(str(value), f"header {name}", name, sensitive=sensitive)
            if sensitive or len(self.notes) > told:
                known[name] = replace(known.get(name, HeaderSchema()), sensitive=True)
        return concealed, known

    def text(self, text: str, place: str, name: str = "", *, sensitive: bool = False) -> str:
        """The template with its literal secrets replaced; all of it is one when its name says so."""
        parts = parts_of(text)
        if sensitive or is_sensitive(name):
            return self._whole(parts, place, name)
        return "".join(self._part(part, place, name) for part in parts)

    def _whole(self, parts: tuple[str | Variable | RuntimeValue, ...], place: str, name: str) -> str:
        if len(parts) == 1 and isinstance(parts[0], str):
            scheme = SCHEME.match(parts[0])
            start = scheme[0] if scheme else ""
            if parts[0][len(start) :].lower() in HARMLESS:
                return literal(parts[0])
            return start + self._replace(place, name)
        if all(_GLUE.fullmatch(part) for part in parts if isinstance(part, str)):
            return "".join(literal(part) if isinstance(part, str) else self._bare(part, place) for part in parts)
        return self._replace(place, name)

    def _part(self, part: str | Variable | RuntimeValue, place: str, name: str) -> str:
        if not isinstance(part, str):
            is_secret = isinstance(part, Variable) and bool(part.default) and _holds_secret(part)
            return self._bare(part, place) if is_secret else write_reference(part)
        finds = find_credentials(part)
        if len(finds) > _MANY:
            return self._replace(place, name)
        pieces: list[str] = []
        end = 0
        for find in finds:
            # A '$' before a placeholder would make a literal of it, so it goes with the secret.
            pieces += literal(part[end : find.start].rstrip("$")), self._replace(place, name or find.hint)
            end = find.end
        return "".join([*pieces, literal(part[end:])])

    def _bare(self, part: Variable | RuntimeValue, place: str) -> str:
        """The reference without its default, which would be a literal secret."""
        if isinstance(part, RuntimeValue) or not part.default:
            return write_reference(part)
        self.notes.append(
            f"{place}: the default of ${{{part.name}}} looks like a secret and is left out; set {part.name}"
        )
        return write_reference(Variable(part.name))

    def _replace(self, place: str, hint: str) -> str:
        name = self.vault.take(self.server, _EXTENSION.sub("", hint))
        self.notes.append(
            f"{place}: a literal secret is now ${{{name}}}; set {name} to the value that stands in {self.where}"
        )
        return f"${{{name}}}"


def _holds_secret(variable: Variable) -> bool:
    return is_sensitive(variable.name) or bool(find_credentials(variable.default or ""))


def write_reference(part: Variable | RuntimeValue) -> str:
    """The placeholder as Outfitter writes it."""
    if isinstance(part, RuntimeValue) or part.default is None:
        return f"${{{part.name}}}"
    return f"${{{part.name}:-{part.default}}}"
