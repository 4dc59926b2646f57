"""Which documents does a scope hold? The store behind ``context_store``, one SQLite file.

The rule of the scope is written once, in ``_FIND``: reading, changing and deleting all go through it, so a document
outside the scope and one that does not exist are the same. Everything that a caller says is a parameter of a constant
statement. Words are looked for as they are; there is no query language and no wildcard.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

Value = str | int | bool
Attributes = Mapping[str, Value]

_TABLE = """
CREATE TABLE IF NOT EXISTS documents (
    id TEXT PRIMARY KEY, namespace TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL,
    folded TEXT NOT NULL, tags TEXT NOT NULL, attributes TEXT NOT NULL
)"""
# Every filter must be met by an attribute of the document, every word must occur, every tag must be there.
_FIND = """
SELECT d.id, d.title, d.text, d.tags, d.attributes FROM documents AS d
WHERE d.namespace = :namespace
  AND NOT EXISTS (
    SELECT 1 FROM json_each(:filters) AS f WHERE NOT EXISTS (
      SELECT 1 FROM json_each(d.attributes) AS a WHERE a.key = f.key AND a.type = f.type AND a.value = f.value))
  AND (:id IS NULL OR d.id = :id)
  AND NOT EXISTS (SELECT 1 FROM json_each(:words) AS w WHERE instr(d.folded, w.value) = 0)
  AND NOT EXISTS (SELECT 1 FROM json_each(:tags) AS t WHERE t.value NOT IN (SELECT value FROM json_each(d.tags)))
ORDER BY d.title, d.id LIMIT :most"""
_PUT = """
INSERT INTO documents (id, namespace, title, text, folded, tags, attributes)
VALUES (:id, :namespace, :title, :text, :folded, :tags, :attributes)
ON CONFLICT (id) DO UPDATE SET
    title = excluded.title, text = excluded.text, folded = excluded.folded, tags = excluded.tags,
    attributes = excluded.attributes"""


@dataclass(frozen=True, slots=True)
class DocumentScope:
    """What a request may see: one namespace, and in it the documents that have all these attributes."""

    namespace: str
    filters: Attributes


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it stands in the store."""

    id: str
    title: str
    text: str
    tags: list[str] = field(default_factory=list[str])
    attributes: dict[str, Value] = field(default_factory=dict[str, Value])


@dataclass(frozen=True, slots=True)
class DocumentStore:
    """The documents of all namespaces, seen through a scope."""

    file: Path

    def prepare(self) -> bool:
        """Make the table if there is none; True when it holds nothing yet."""
        with self._open() as database:
            database.execute(_TABLE)
            return database.execute("SELECT 1 FROM documents LIMIT 1").fetchone() is None

    def find(
        self, scope: DocumentScope, *, words: Iterable[str] = (), tags: Iterable[str] = (), most: int
    ) -> list[StoredDocument]:
        """The documents of the scope with all these words and tags, by title."""
        with self._open() as database:
            return _find(database, scope, words=words, tags=tags, most=most)

    def read(self, scope: DocumentScope, document_id: str) -> StoredDocument | None:
        """The document, if the scope holds it."""
        with self._open() as database:
            return _one(database, scope, document_id)

    def add(self, scope: DocumentScope, title: str, text: str, tags: Sequence[str], attributes: Attributes) -> str:
        """Store a new document in the scope; its id."""
        document = StoredDocument(uuid4().hex, title, text, list(tags), dict(attributes))
        with self._open() as database:
            _put(database, scope, document)
        return document.id

    def replace(self, scope: DocumentScope, document: StoredDocument) -> bool:
        """Give a document of the scope new content; False when the scope does not hold it."""
        with self._open() as database:
            is_there = _one(database, scope, document.id) is not None
            if is_there:
                _put(database, scope, document)
            return is_there

    def delete(self, scope: DocumentScope, document_id: str) -> bool:
        """Remove a document of the scope; False when the scope does not hold it."""
        with self._open() as database:
            is_there = _one(database, scope, document_id) is not None
            if is_there:
                database.execute("DELETE FROM documents WHERE id = :id", {"id": document_id})
            return is_there

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """One transaction that nobody else writes into: what was found is still so when it is changed."""
        with closing(sqlite3.connect(self.file, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            with database:
                yield database


def _find(
    database: sqlite3.Connection,
    scope: DocumentScope,
    *,
    document_id: str | None = None,
    words: Iterable[str] = (),
    tags: Iterable[str] = (),
    most: int = 1,
) -> list[StoredDocument]:
    asked = {
        "namespace": scope.namespace,
        "filters": json.dumps(dict(scope.filters)),
        "id": document_id,
        "words": json.dumps([word.casefold() for word in words]),
        "tags": json.dumps(list(tags)),
        "most": most,
    }
    return [
        StoredDocument(ident, title, text, json.loads(found), json.loads(attributes))
        for ident, title, text, found, attributes in database.execute(_FIND, asked)
    ]


def _one(database: sqlite3.Connection, scope: DocumentScope, document_id: str) -> StoredDocument | None:
    found = _find(database, scope, document_id=document_id)
    return found[0] if found else None


def _put(database: sqlite3.Connection, scope: DocumentScope, document: StoredDocument) -> None:
    values = {
        "id": document.id,
        "namespace": scope.namespace,
        "title": document.title,
        "text": document.text,
        "folded": f"{document.title}\n{document.text}".casefold(),
        "tags": json.dumps(document.tags),
        # The scope has the last word: nobody writes a document that is outside of what he may see.
        "attributes": json.dumps({**document.attributes, **scope.filters}),
    }
    database.execute(_PUT, values)
