"""What is particular to each audit database: earlier layouts of the file, the URL of the server and its secret."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from outfitter.basics import Secret
from outfitter.errors import Invalid, OutfitterError, StorageUnavailable, Unavailable
from outfitter.storage import AuditStore, open_audit
from tests.storage.test_audit import idents, line

PASSWORD = "hunter2%2Fx"
FIRST_LAYOUT = """
CREATE TABLE calls (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, call_id TEXT NOT NULL UNIQUE,
  started_at REAL NOT NULL, duration REAL NOT NULL, bytes_in REAL NOT NULL, bytes_out REAL NOT NULL,
  agent TEXT NOT NULL, token_id TEXT NOT NULL, run_id TEXT NOT NULL, server TEXT NOT NULL, tool TEXT NOT NULL,
  shown TEXT NOT NULL, decision TEXT NOT NULL, rule TEXT NOT NULL, outcome TEXT NOT NULL, code TEXT NOT NULL,
  lane TEXT NOT NULL, digest TEXT NOT NULL, trace_id TEXT NOT NULL, span_id TEXT NOT NULL, parent_id TEXT NOT NULL,
  arguments TEXT, result TEXT
);
CREATE INDEX calls_by_time ON calls (started_at);
CREATE TABLE taken (segment TEXT PRIMARY KEY, place INTEGER NOT NULL);
INSERT INTO taken VALUES ('s', 7);
INSERT INTO calls VALUES (5, 'c1', 1.5, 0.5, 12.0, 34.0,
  'a', 't', '', 's', 'echo', 's_echo', 'allow', '', 'done', '', 'full', 'd', 'c1', '', '', '{"a":1}', NULL);
"""


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A file of the first layout."""
    base = sqlite3.connect(tmp_path / "audit.sqlite")
    base.executescript(FIRST_LAYOUT)
    base.close()
    return tmp_path


@pytest.mark.promise("GW-AUDIT-OLD")
def test_a_file_of_the_first_layout_is_read_as_it_is_and_goes_on_with_its_numbers(earlier: Path) -> None:
    audit = open_audit(earlier)
    (before,) = audit.calls()
    assert (audit.place("s"), audit.last(), before["arguments"]) == (7, 5, '{"a":1}')
    audit.take("s", 7, line(2))
    first, second = audit.calls()
    assert first == before
    assert (second["seq"], second["call_id"], audit.place("s")) == (6, "c2", 7 + len(line(2)))
    assert audit.since(1.0) == [("s", "done", 0.5)]
    audit.close()
    with sqlite3.connect(earlier / "audit.sqlite") as base:
        indexes = [name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'index'")]
    base.close()
    assert indexes.count("calls_by_time") == 1
    assert not any("calls_before" in name or "calls_1" in name for name in indexes)


def test_a_file_of_a_newer_layout_is_left_alone(tmp_path: Path) -> None:
    base = sqlite3.connect(tmp_path / "audit.sqlite")
    base.execute("PRAGMA user_version = 99")
    base.close()
    with pytest.raises(StorageUnavailable, match="newer Outfitter"):
        open_audit(tmp_path).last()


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "audit.sqlite").write_bytes(b"not a database at all, but long enough to look like one" * 100)
    with pytest.raises(StorageUnavailable, match="audit database"):
        open_audit(tmp_path).last()


@pytest.mark.promise("GW-AUDIT-SECRET")
@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/x",
        f"postgresql://me:{PASSWORD}@host.invalid/x?connect_timeout=2",
        f"postgresql://me:{PASSWORD}@[bad/x",
        f"postgresql://me:{PASSWORD}@127.0.0.1:port/x",
        f"postgresql://me:{PASSWORD}@127.0.0.1/x?nosuch=1",
        f"mysql://me:{PASSWORD}@host/x",
        f"{PASSWORD}",
        f"postgresql://me@127.0.0.1:1/x?password={PASSWORD}",
    ],
)
def test_no_error_and_no_text_about_the_database_holds_its_password(tmp_path: Path, url: str) -> None:
    with pytest.raises(OutfitterError) as error:
        _use(open_audit(tmp_path, Secret(url)))
    told = f"{error.value} {error.value!r} {error.value.hint}"
    assert "hunter2" not in told
    assert error.value.__cause__ is None


def _use(audit: AuditStore) -> None:
    assert "hunter2" not in f"{audit!r} {audit}"
    audit.last()


def test_without_the_driver_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(Unavailable) as error:
        open_audit(tmp_path, Secret("postgresql://127.0.0.1/x"))
    assert error.value.hint == "pip install 'outfitter[postgres]'"


def test_what_is_no_url_of_a_postgresql_is_refused_before_anything_begins(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="OUTFITTER_DATABASE"):
        open_audit(tmp_path, Secret("sqlite:///x"))


def test_somebody_who_may_only_read_can_look(tmp_path: Path, postgres_url: str) -> None:
    writer = open_audit(tmp_path, Secret(postgres_url))
    writer.take("s", 0, line(1))
    writer.close()
    reader = open_audit(tmp_path, Secret(f"{postgres_url}&options=-c%20default_transaction_read_only%3Don"))
    assert idents(reader) == ["c1"]
    with pytest.raises(StorageUnavailable, match="read-only"):
        reader.take("s", len(line(1)), line(2))
    assert idents(reader) == ["c1"]
    reader.close()
