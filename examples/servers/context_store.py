"""A context store whose documents are scoped by headers: what an agent sees is decided by whoever runs it.

    CONTEXT_STORE_API_KEY=... python -m examples.servers.context_store --port 9501 --data documents.sqlite --demo

* ``X-Context-Namespace`` (required): the one namespace that the call reads and writes.
* ``X-Context-Scope-Filters``: a JSON object; documents that are read have all its attributes, those written get them.
* ``X-API-Key``: checked when the server was started with one.

``front`` reads headers, ``documents`` keeps documents, ``demo`` has some to begin with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr

from examples.servers.demo import DEMO_DOCUMENTS
from examples.servers.documents import DocumentScope, DocumentStore, StoredDocument, Value
from examples.servers.front import Program, header_of

NAMESPACE = "X-Context-Namespace"
FILTERS = "X-Context-Scope-Filters"
MOST = 100
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# SQLite's JSON functions read these exactly; a larger number might equal its neighbour.
_LARGEST = 2**53

Title = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=100_000)]
Tags = Annotated[list[Annotated[str, Field(min_length=1, max_length=50)]], Field(max_length=20)]
Limit = Annotated[int, Field(ge=1, le=MOST, description="How many at most")]
DocumentId = Annotated[str, Field(min_length=1, max_length=64, description="As a list or search gives it")]
Whole = Annotated[int, Field(strict=True, ge=-_LARGEST, le=_LARGEST)]
Given = Annotated[dict[str, StrictStr | StrictBool | Whole], Field(max_length=20)]


class Summary(BaseModel):
    """A document without its text."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    tags: list[str]
    attributes: dict[str, StrictStr | StrictBool | Whole]


class Document(Summary):
    """A document."""

    text: str


class Listing(BaseModel):
    """Documents, by title."""

    model_config = ConfigDict(frozen=True)

    documents: list[Summary]


class Deleted(BaseModel):
    """Which document is gone."""

    model_config = ConfigDict(frozen=True)

    id: str


def scope_of(ctx: Context[Any, Any]) -> DocumentScope:
    """The scope of the request that carries this call."""
    namespace = header_of(ctx, NAMESPACE)
    if not namespace:
        raise ToolError(f"the request has no {NAMESPACE} header: without a namespace nothing is served")
    if not _NAMESPACE.fullmatch(namespace):
        raise ToolError(f"the {NAMESPACE} header is no name of a namespace")
    text = header_of(ctx, FILTERS)
    return DocumentScope(namespace, {} if text is None else _filters(text))


def _filters(text: str) -> dict[str, Value]:
    # The error does not quote the header: its value is none of a model's business.
    wrong = ToolError(f"the {FILTERS} header is not a JSON object of strings, whole numbers and booleans")
    try:
        pairs = cast("object", json.loads(text, object_pairs_hook=_once))
    except (ValueError, RecursionError):
        raise wrong from None
    if not isinstance(pairs, dict) or not _are_plain(read := cast("dict[str, object]", pairs)):
        raise wrong
    return cast("dict[str, Value]", read)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    if len(read) != len(pairs):
        raise ValueError("a name occurs twice")
    return read


def _are_plain(attributes: Mapping[str, object]) -> bool:
    return all(name and name.isprintable() and _is_plain(value) for name, value in attributes.items())


def _is_plain(value: object) -> bool:
    return value.isprintable() if isinstance(value, str) else isinstance(value, int) and abs(value) <= _LARGEST


@dataclass(frozen=True, slots=True)
class DocumentTools:
    """The tools. None of them takes a namespace: there is no argument that could name another one."""

    store: DocumentStore

    def list_documents(self, ctx: Context[Any, Any], tags: Tags | None = None, limit: Limit = 50) -> Listing:
        """List the documents you have, by title; with tags, those that carry all of them."""
        return _listing(self.store.find(scope_of(ctx), tags=tags or (), most=limit))

    def search_documents(
        self,
        ctx: Context[Any, Any],
        query: Annotated[str, Field(min_length=1, max_length=500)],
        tags: Tags | None = None,
        limit: Limit = 20,
    ) -> Listing:
        """Find documents whose title or text holds every word of the query. Words only, no operators."""
        words = query.split()
        # SQLite takes a text that ends at a NUL for a shorter one, and the empty text is in every document.
        if not words or not all(word.isprintable() for word in words):
            raise ToolError("the query must be printable words, at least one")
        return _listing(self.store.find(scope_of(ctx), words=words, tags=tags or (), most=limit))

    def read_document(self, ctx: Context[Any, Any], document_id: DocumentId) -> Document:
        """Read one document."""
        return self._read(scope_of(ctx), document_id)

    def write_document(
        self,
        ctx: Context[Any, Any],
        title: Title,
        text: Text,
        tags: Tags | None = None,
        attributes: Given | None = None,
        document_id: DocumentId | None = None,
    ) -> Document:
        """Write a new document, or with document_id give an existing one new content."""
        scope, given = scope_of(ctx), dict(attributes or {})
        if not _are_plain(given):
            raise ToolError("names and values of attributes are printable text, whole numbers and booleans")
        if document_id is None:
            written = self.store.add(scope, title, text, tags or (), given)
        elif self.store.replace(scope, StoredDocument(document_id, title, text, tags or [], given)):
            written = document_id
        else:
            raise _missing(document_id)
        return self._read(scope, written)

    def delete_document(self, ctx: Context[Any, Any], document_id: DocumentId) -> Deleted:
        """Delete one document for good."""
        if not self.store.delete(scope_of(ctx), document_id):
            raise _missing(document_id)
        return Deleted(id=document_id)

    def _read(self, scope: DocumentScope, document_id: str) -> Document:
        found = self.store.read(scope, document_id)
        if found is None:
            raise _missing(document_id)
        return Document.model_validate(found, from_attributes=True)


def _missing(document_id: str) -> ToolError:
    return ToolError(f"there is no document {document_id!r}")


def _listing(documents: list[StoredDocument]) -> Listing:
    return Listing(documents=[Summary.model_validate(one, from_attributes=True) for one in documents])


def make_server(file: Path, is_demo: bool = False) -> MCPServer[Any]:
    """The context store on this file."""
    store = DocumentStore(file)
    if store.prepare() and is_demo:
        for one in DEMO_DOCUMENTS:
            store.add(DocumentScope(one.namespace, {}), one.title, one.text, one.tags, one.attributes)
    tools = DocumentTools(store)
    server: MCPServer[Any] = MCPServer("context-store", version="1", log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    writes = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)
    for tool in (tools.list_documents, tools.search_documents, tools.read_document):
        server.add_tool(tool, annotations=reads)
    for tool in (tools.write_document, tools.delete_document):
        server.add_tool(tool, annotations=writes)
    return server


def main() -> None:
    """Serve the context store."""
    Program(
        name="context-store",
        module="examples.servers.context_store",
        story=f"A context store over streamable HTTP. {NAMESPACE} and {FILTERS} say which documents a call may see.",
        port=9501,
        key_variable="CONTEXT_STORE_API_KEY",
        make=make_server,
    ).run()


if __name__ == "__main__":
    main()
