"""From a document that somebody gives to an entry that may be stored: unmasked, read, judged, with what to seal.

Pure, but for the rules it is given. Whether the catalog as a whole still holds with it is ``entries``' affair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outfitter.basics import SecretRef
from outfitter.catalog import Agent, Capability, Catalog, ClientCredentials, InlineServer, ServerEntry, ServerRef
from outfitter.coordinator.commands import command_digest, command_faults
from outfitter.coordinator.destinations import destination_fault
from outfitter.coordinator.reading import (
    Value,
    as_document,
    check_plain,
    id_of,
    raise_all,
    read_all,
    read_stored,
    with_id,
)
from outfitter.coordinator.sensitive import (
    hidden_pointers,
    masks_in,
    references_in,
    secrets_in_query,
    sensitive_pointers,
    trail_of,
    unmasked,
)
from outfitter.coordinator.values import Author
from outfitter.coordinator.view import Change, View
from outfitter.errors import Forbidden, InvalidDocument, InvalidServer, OutfitterError
from outfitter.formats import pointer
from outfitter.storage import Entry, Kind, User
from outfitter.upstream import Guard, make_providers

_NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Read:
    """A document that was read: its name, its text as it will be stored, its value, and what stands there now."""

    name: User
    document: Mapping[str, Any] = field(repr=False)
    value: Value
    stored: Entry | None = field(repr=False)
    kept: frozenset[str] = _NOTHING
    """Where it holds sealed values that its author did not give, as JSON pointers."""
    is_restored: bool = False
    """Whether it is the document of an earlier version."""

    def as_change(self) -> Change:
        """The change for a view; times and version are given when it is stored."""
        before = self.stored
        approved = None if before is None else before.approved
        entry = Entry(self.name.kind, self.name.id, self.document, 0, "", "", "", approved)
        return Change(self.name, entry, self.value)


def read_draft(view: View, kind: Kind, document: object, name: str | None, guard: Guard) -> Read:
    """The document as it could be stored; what is wrong with it is raised, all at once where possible."""
    given = as_document(document)
    check_plain(given)
    id_ = id_of(kind, given, name)
    source = f"{kind}/{id_}"
    stored = view.entries.get(User(kind, id_))
    kept = _NOTHING if stored is None else masks_in(given) & hidden_pointers(stored, view.catalog)
    given = unmasked(given, None if stored is None else stored.document, source)
    approved = None if stored is None else stored.approved
    value = read_all(given, lambda rest: read_stored(kind, id_, as_document(rest), approved), source)
    problems = list(_faults(value, given, guard))
    for problem in problems:
        problem.locate(source, None, pointer(problem.trail))
    raise_all(problems, source)
    return Read(User(kind, id_), with_id(kind, given, id_), value, stored, kept)


def need_admin(before: Entry | None, after: Value | None, who: Author) -> None:
    """Refuse programs from anybody but an admin, to come and to go: what is started runs with the service's rights."""
    if who.is_admin:
        return
    if (before is not None and before.kind == "agents") or isinstance(after, Agent):
        _need_admin_for_executor(before, after)
        return
    was = before is not None and isinstance(before.document.get("command"), str)
    if was or (isinstance(after, ServerEntry) and command_digest(after) is not None):
        hint = "ask an admin; a remote server can be registered by any editor"
        raise Forbidden("only an admin registers, changes or deletes a server that starts a program", hint=hint)


def _need_admin_for_executor(before: Entry | None, after: Value | None) -> None:
    """Any editor may change the rest of an agent; what its runs are executed by is the admin's."""
    old = None if before is None else read_stored("agents", before.id, before.document, before.approved)
    was, is_ = (value if isinstance(value, Agent) else None for value in (old, after))
    digests = [None if value is None else command_digest(value) for value in (was, is_)]
    if digests == [None, None] or (was is not None and is_ is not None and was.executor == is_.executor):
        return
    hint = "ask an admin; an executor without a command and without env can be chosen by any editor"
    raise Forbidden("only an admin sets, changes or removes an executor that starts a program", hint=hint)


def _provider_faults(document: Mapping[str, Any]) -> Iterator[OutfitterError]:
    """A reference to a provider that nobody has could never be filled: it is told now, and not to the first caller."""
    known = make_providers({}, Path())
    for trail, text in references_in(document):
        provider = SecretRef.parse(text).provider
        if provider not in known:
            hint = f"known: {', '.join(sorted(name for name in known if name != 'default'))}"
            yield InvalidDocument(f"no secret provider '{provider}'", source="", hint=hint).under(*trail)


def _faults(value: Value, document: Mapping[str, Any], guard: Guard) -> Iterator[OutfitterError]:
    yield from _provider_faults(document)
    if isinstance(value, ServerEntry):
        yield from command_faults(value)
        yield from _destination_faults(value, guard)
        return
    if "system_prompt_file" in document:
        hint = "give the text in 'system_prompt'"
        yield InvalidDocument("a registry reads no files", source="", hint=hint).under("system_prompt_file")
    if isinstance(value, Capability):
        yield from _stray_faults(value, document)
    else:
        yield from command_faults(value)
    yield from _inline_faults(value, guard)


def _destination_faults(entry: ServerEntry, guard: Guard) -> Iterator[OutfitterError]:
    for fault in () if entry.server.url is None else _url_faults(entry.server.url, guard):
        yield fault.under("url")
    if isinstance(entry.auth, ClientCredentials):
        for fault in _url_faults(entry.auth.token_url, guard):
            yield fault.under("auth", "token_url")


def _url_faults(url: str, guard: Guard) -> Iterator[OutfitterError]:
    fault = destination_fault(url, guard)
    if fault is not None:
        yield fault
    for name in secrets_in_query(url):
        hint = "send it in a header, which is sealed, or write ${VARIABLE} for the value"
        yield InvalidServer(f"'{name}' in the address looks like a secret, and addresses are readable", hint=hint)


def _stray_faults(value: Capability, document: Mapping[str, Any]) -> Iterator[OutfitterError]:
    """A secret of a capability says for which server it is: otherwise any agent could say so."""
    for place in sorted(sensitive_pointers("capabilities", document, Catalog())):
        trail = trail_of(place)
        use = value.servers.get(trail[1])
        if isinstance(use, ServerRef) and use.ref is None:
            hint = "add 'ref' beside it, or write a reference such as ${VARIABLE}"
            yield InvalidDocument("a secret without a server that it is for", source="", hint=hint).under(*trail)


def _inline_faults(value: Capability | Agent, guard: Guard) -> Iterator[OutfitterError]:
    for alias, use in value.servers.items():
        if not isinstance(use, InlineServer):
            continue
        if use.server.url is None:
            hint = "register it as an MCP server, have it approved, and refer to it by 'ref'"
            message = "a program is not defined in place in the team's registry"
            yield InvalidServer(message, hint=hint).under("mcpServers", alias, "command")
            continue
        for fault in _url_faults(use.server.url, guard):
            yield fault.under("mcpServers", alias, "url")
