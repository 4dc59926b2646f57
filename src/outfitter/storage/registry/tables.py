"""The tables of the registry's database, as the newest migration leaves them.

Documents are JSON texts, not JSON columns: they come back exactly as they were given, in both databases. ``counters``
holds the four numbers that others follow; the row of a number is the lock of those who move it.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text

METADATA = MetaData()
# Sorted by bytes in both databases, whatever the server's language is: cursors depend on it.
NAME = Text().with_variant(Text(collation="C"), "postgresql")
# SQLite counts up a column of exactly this name, and its integers are large anyway.
NUMBER = BigInteger().with_variant(Integer, "sqlite")

entries = Table(
    "entries",
    METADATA,
    Column("kind", NAME, primary_key=True),
    Column("id", NAME, primary_key=True),
    Column("search", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text, nullable=False),
    Column("updated_by", Text, nullable=False),
    Column("approved", Text),
    Column("document", Text, nullable=False),
    Index("entries_by_search", "kind", "id", "search"),  # a search reads this alone, not every document
)
uses = Table(
    "uses",
    METADATA,
    Column("kind", NAME, primary_key=True),
    Column("id", NAME, primary_key=True),
    Column("used_kind", NAME, primary_key=True),
    Column("used_id", NAME, primary_key=True),
    Index("uses_by_used", "used_kind", "used_id"),
)
changes = Table(
    "changes",
    METADATA,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    Column("revision", NUMBER, nullable=False),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("kind", NAME, nullable=False),
    Column("id", NAME, nullable=False),
    Column("version", Integer, nullable=False),
    Column("before", Text),
    Column("after", Text),
    Index("changes_by_entry", "kind", "id", "seq"),
    sqlite_autoincrement=True,
)
counters = Table("counters", METADATA, Column("name", Text, primary_key=True), Column("value", NUMBER, nullable=False))
meta = Table("meta", METADATA, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))
runs = Table(
    "runs",
    METADATA,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    Column("id", NAME, nullable=False, unique=True),
    Column("type", Text, nullable=False),
    Column("agent_name", NAME, nullable=False),
    Column("session_id", NAME, nullable=False),
    Column("parent_session_id", NAME),
    Column("state", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("started_at", Text),
    Column("ended_at", Text),
    Column("prompt", Text, nullable=False),
    Column("mcp_headers", Text, nullable=False),
    Column("result", Text),
    Column("error", Text),
    Column("owner", NAME),
    Column("attempt", Integer, nullable=False, server_default="0"),
    Column("given", Text),
    Column("holder", Text),
    Index("runs_by_agent", "agent_name", "seq"),
    Index("runs_by_state", "state", "seq"),
    Index("runs_by_session", "session_id", "seq"),
    sqlite_autoincrement=True,
)
run_events = Table(
    "run_events",
    METADATA,
    Column("run_id", NAME, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("type", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("data", Text, nullable=False),
)
runners = Table(
    "runners",
    METADATA,
    Column("id", NAME, primary_key=True),
    Column("first_seen", Text, nullable=False),
    Column("last_seen", Text, nullable=False),
    Column("capacity", Integer, nullable=False),
    Column("running", Text, nullable=False),
    Column("executors", Text, nullable=False),
    Column("subject", Text),
)
sessions = Table(
    "sessions",
    METADATA,
    Column("seq", NUMBER, primary_key=True, autoincrement=True),
    Column("id", NAME, nullable=False, unique=True),
    Column("parent_id", NAME),
    Column("agent", NAME, nullable=False),
    Column("run_id", NAME, nullable=False),
    Column("state", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("ended_at", Text),
    Column("plan", Text, nullable=False),
    Index("sessions_by_parent", "parent_id", "seq"),
    Index("sessions_by_agent", "agent", "seq"),
    Index("sessions_by_run", "run_id"),
    sqlite_autoincrement=True,
)
api_tokens = Table(
    "api_tokens",
    METADATA,
    Column("id", NAME, primary_key=True),
    Column("digest", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("agent", Text),
    Column("server", Text),
    Column("run_id", Text),
    Column("label", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("expires_at", Text),
    Column("revoked_at", Text),
    Column("last_used_at", Text),
    Index("api_tokens_by_run", "run_id"),
)
events = Table(
    "events",
    METADATA,
    Column("seq", NUMBER, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("data", Text, nullable=False),
)
