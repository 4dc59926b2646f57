"""Runs and their sessions."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text, column, table

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables."""
    name = Text().with_variant(Text(collation="C"), "postgresql")
    number = BigInteger().with_variant(Integer, "sqlite")
    op.create_table(
        "runs",
        Column("seq", number, primary_key=True, autoincrement=True),
        Column("id", name, nullable=False, unique=True),
        Column("type", Text, nullable=False),
        Column("agent_name", name, nullable=False),
        Column("session_id", name, nullable=False),
        Column("parent_session_id", name),
        Column("state", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("created_by", Text, nullable=False),
        Column("started_at", Text),
        Column("ended_at", Text),
        Column("prompt", Text, nullable=False),
        Column("mcp_headers", Text, nullable=False),
        Column("result", Text),
        Column("error", Text),
        sqlite_autoincrement=True,
    )
    op.create_index("runs_by_agent", "runs", ["agent_name", "seq"])
    op.create_index("runs_by_state", "runs", ["state", "seq"])
    op.create_index("runs_by_session", "runs", ["session_id", "seq"])
    op.create_table(
        "sessions",
        Column("seq", number, primary_key=True, autoincrement=True),
        Column("id", name, nullable=False, unique=True),
        Column("parent_id", name),
        Column("agent", name, nullable=False),
        Column("run_id", name, nullable=False),
        Column("state", Text, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("ended_at", Text),
        Column("plan", Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("sessions_by_parent", "sessions", ["parent_id", "seq"])
    op.create_index("sessions_by_agent", "sessions", ["agent", "seq"])
    op.bulk_insert(table("counters", column("name", Text), column("value", Integer)), [{"name": "runs", "value": 0}])
