"""Which issues and pages does a scope hold? The store behind ``tracker``, one SQLite file.

Every statement that reads or changes an issue carries the allowed projects, every one about pages the allowed spaces:
what lies outside and what does not exist give the same answer. Statements are constant; what a caller says is a
parameter.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from examples.servers.queries import Query

Keys = frozenset[str]

_TABLES = """
CREATE TABLE IF NOT EXISTS projects (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS issues (
    key TEXT PRIMARY KEY, project TEXT NOT NULL REFERENCES projects, number INTEGER NOT NULL,
    summary TEXT NOT NULL, folded TEXT NOT NULL, status TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS comments (issue TEXT NOT NULL REFERENCES issues, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pages (
    id INTEGER PRIMARY KEY, space TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL
);
"""
_SEARCH = """
SELECT i.key, i.project, i.summary, i.status FROM issues AS i
WHERE i.project IN (SELECT value FROM json_each(:allowed))
  AND (:projects = '[]' OR i.project IN (SELECT value FROM json_each(:projects)))
  AND (:states = '[]' OR i.status IN (SELECT value FROM json_each(:states)))
  AND NOT EXISTS (SELECT 1 FROM json_each(:words) AS w WHERE instr(i.folded, w.value) = 0)
ORDER BY i.project, i.number LIMIT :most"""
_GET = """
SELECT key, project, summary, status FROM issues
WHERE key = :key AND project IN (SELECT value FROM json_each(:allowed))"""
_PROJECT = "SELECT 1 FROM projects WHERE key = :project AND key IN (SELECT value FROM json_each(:allowed))"
_NUMBER = "SELECT coalesce(max(number), 0) + 1 FROM issues WHERE project = :project"
_CREATE = """
INSERT INTO issues (key, project, number, summary, folded, status)
VALUES (:key, :project, :number, :summary, :folded, :status)"""
_PAGES = """
SELECT id, space, title, text FROM pages
WHERE space IN (SELECT value FROM json_each(:allowed)) AND (:id IS NULL OR id = :id)
ORDER BY space, title, id LIMIT :most"""


@dataclass(frozen=True, slots=True)
class StoredIssue:
    """An issue as it stands in the store; a search leaves its comments out."""

    key: str
    project: str
    summary: str
    status: str
    comments: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page as it stands in the store."""

    id: int
    space: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class TrackerStore:
    """Issues of all projects and pages of all spaces, seen through the keys that are allowed."""

    file: Path

    def prepare(self) -> bool:
        """Make the tables if there are none; True when they hold no project yet."""
        with closing(sqlite3.connect(self.file)) as database:
            database.executescript(_TABLES)
            return database.execute("SELECT 1 FROM projects LIMIT 1").fetchone() is None

    def search(self, allowed: Keys, query: Query, most: int) -> list[StoredIssue]:
        """The issues of allowed projects that the query means."""
        asked = {
            "allowed": _listed(allowed),
            "projects": json.dumps(query.projects),
            "states": json.dumps(query.states),
            "words": json.dumps(query.words),
            "most": most,
        }
        with self._open() as database:
            return [StoredIssue(*row) for row in database.execute(_SEARCH, asked)]

    def get(self, allowed: Keys, key: str) -> StoredIssue | None:
        """The issue with its comments, if its project is allowed."""
        with self._open() as database:
            return _get(database, allowed, key)

    def create(self, allowed: Keys, project: str, summary: str, status: str = "open") -> StoredIssue | None:
        """A new issue in the project, if that exists and is allowed."""
        with self._open() as database:
            asked = {"project": project, "allowed": _listed(allowed)}
            if database.execute(_PROJECT, asked).fetchone() is None:
                return None
            (number,) = database.execute(_NUMBER, {"project": project}).fetchone()
            made = StoredIssue(f"{project}-{number}", project, summary, status)
            values = {"key": made.key, "project": project, "number": number, "summary": summary, "status": status}
            database.execute(_CREATE, {**values, "folded": summary.casefold()})
            return made

    def comment(self, allowed: Keys, key: str, text: str) -> StoredIssue | None:
        """Add a comment to the issue, if its project is allowed."""
        with self._open() as database:
            if _get(database, allowed, key) is None:
                return None
            database.execute("INSERT INTO comments (issue, text) VALUES (:key, :text)", {"key": key, "text": text})
            return _get(database, allowed, key)

    def pages(self, allowed: Keys, *, page_id: int | None = None, most: int = 1) -> list[StoredPage]:
        """The pages of allowed spaces; with an id, that one alone."""
        with self._open() as database:
            rows = database.execute(_PAGES, {"allowed": _listed(allowed), "id": page_id, "most": most})
            return [StoredPage(*row) for row in rows]

    def add_project(self, key: str) -> None:
        """Open a project."""
        with self._open() as database:
            database.execute("INSERT INTO projects (key) VALUES (:key)", {"key": key})

    def add_page(self, space: str, title: str, text: str) -> None:
        """Put a page into a space."""
        with self._open() as database:
            values = {"space": space, "title": title, "text": text}
            database.execute("INSERT INTO pages (space, title, text) VALUES (:space, :title, :text)", values)

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        """One transaction that nobody else writes into: two new issues never get one number."""
        with closing(sqlite3.connect(self.file, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            with database:
                yield database


def _get(database: sqlite3.Connection, allowed: Keys, key: str) -> StoredIssue | None:
    row = database.execute(_GET, {"key": key, "allowed": _listed(allowed)}).fetchone()
    if row is None:
        return None
    said = database.execute("SELECT text FROM comments WHERE issue = :key ORDER BY rowid", {"key": key})
    return StoredIssue(*row, comments=[text for (text,) in said])


def _listed(keys: Keys) -> str:
    return json.dumps(sorted(keys))
