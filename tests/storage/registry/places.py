"""Where a registry is kept in a test, how it is opened there, and everything that is written there."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from outfitter.storage import Database, Entry, KeyRing, Put, Registry, open_database

ROOT = Path(__file__).resolve().parents[3]
TABLES = ("entries", "uses", "changes", "counters", "meta", "runs", "sessions", "api_tokens", "events",
          "run_events", "runners")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A database and the key file that belongs to it."""

    url: str
    folder: Path

    @property
    def is_file(self) -> bool:
        return self.url.startswith("sqlite")

    @property
    def file(self) -> Path:
        return self.folder / "registry.db"

    @property
    def key_file(self) -> Path:
        return self.folder / "registry.keys"

    def open(self, *, wait: float = 5.0, kept_events: int = 100_000) -> AbstractAsyncContextManager[Database]:
        return open_database(self.url, KeyRing(self.key_file), wait=wait, kept_events=kept_events)

    def dump(self) -> bytes:
        """Every byte of the file and its companions, or every row of every table."""
        if self.is_file:
            return b"".join(path.read_bytes() for path in self.folder.iterdir() if path != self.key_file)
        with psycopg.connect(self.url) as connection:
            rows = [connection.execute(f"SELECT t::text FROM {table} t").fetchall() for table in TABLES]  # noqa: S608 - names from above
        return repr(rows).encode()

    def run(self, statement: str) -> None:
        """Change something behind the registry's back."""
        if self.is_file:
            with closing(sqlite3.connect(self.file)) as connection, connection:
                connection.execute(statement)
        else:
            with psycopg.connect(self.url) as connection:
                connection.execute(statement.encode())

    @contextmanager
    def held(self) -> Generator[None]:
        """Somebody else has the writers' turn and does not give it back."""
        if self.is_file:
            with closing(sqlite3.connect(self.file, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield
        else:
            with psycopg.connect(self.url) as connection:
                connection.execute("SELECT * FROM counters FOR UPDATE")
                yield

    def start(self, action: str, *arguments: str) -> subprocess.Popen[str]:
        """Another process at the same database; see ``child.py``."""
        command = [sys.executable, "-m", "tests.storage.registry.child", action, self.url, str(self.folder), *arguments]
        return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def put(registry: Registry, put: Put, who: str = "ann") -> Entry:
    async with registry.changing(who) as writing:
        return await writing.put(put)


def server(name: str, **more: object) -> Put:
    document: Mapping[str, Any] = {"id": name, "name": name.title(), "url": f"http://localhost/{name}", **more}
    return Put("mcp-servers", name, document)


def read_line(process: subprocess.Popen[str]) -> Any:  # noqa: ANN401 - any JSON value
    """What the other process says next."""
    assert process.stdout is not None
    line = process.stdout.readline()
    return json.loads(line) if line else None


def say(process: subprocess.Popen[str], line: str = "go") -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
