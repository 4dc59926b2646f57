"""What a put becomes before it is stored: the sealed text, the next version, what is searched, who is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Row

from outfitter.storage.registry.sealing import Sealer
from outfitter.storage.registry.values import Action, Entry, Put

_SEARCHED = 2000


@dataclass(frozen=True, slots=True)
class Draft:
    """A put with what stood there before; ``text`` is its document, sealed."""

    put: Put
    row: Row[Any] | None
    version: int
    text: str
    at: str
    who: str

    @property
    def place(self) -> dict[str, Any]:
        """Where it goes."""
        return {"kind": self.put.kind, "id": self.put.id}

    @property
    def action(self) -> Action:
        """What the history calls it."""
        if self.put.restores is not None:
            return "rollback"
        return "create" if self.row is None else "update"

    def values(self) -> dict[str, Any]:
        """The columns that are new."""
        written = {"document": self.text, "search": _search_text(self.put), "version": self.version}
        return written | {"updated_at": self.at, "updated_by": self.who}

    def uses(self) -> list[dict[str, Any]]:
        """The rows that say what it refers to."""
        found = sorted(set(_uses_of(self.put)))
        return [self.place | {"used_kind": kind, "used_id": name} for kind, name in found]

    def entry(self, sealer: Sealer) -> Entry:
        """The entry that it makes."""
        document, sealed = sealer.read(self.text)
        created = self.at if self.row is None else self.row.created_at
        approved = None if self.row is None else self.row.approved
        kind, name = self.put.kind, self.put.id
        return Entry(kind, name, document, self.version, created, self.at, self.who, approved, sealed)


def searchable(text: str) -> str:
    """A text as it is searched: in any case, and without what a database cannot keep."""
    return text.casefold().encode(errors="replace").decode().replace("\0", " ")


def _search_text(put: Put) -> str:
    """What a text filter looks at: never a header, because that may be sealed. An index has room for so much."""
    fields = (put.id, put.document.get("name"), put.document.get("description"))
    text = "\n".join(dict.fromkeys(field for field in fields if isinstance(field, str)))
    return searchable(text).encode()[:_SEARCHED].decode(errors="ignore")


def _uses_of(put: Put) -> Iterator[tuple[str, str]]:
    """What a document refers to: servers by ``ref``, capabilities by name."""
    if put.kind == "mcp-servers":
        return
    servers = put.document.get("mcpServers")
    for use in cast("Mapping[str, object]", servers).values() if isinstance(servers, Mapping) else ():
        ref = cast("Mapping[str, object]", use).get("ref") if isinstance(use, Mapping) else None
        if isinstance(ref, str):
            yield "mcp-servers", ref
    capabilities = put.document.get("capabilities")
    for name in cast("list[object]", capabilities) if isinstance(capabilities, list | tuple) else ():
        if isinstance(name, str):
            yield "capabilities", name
