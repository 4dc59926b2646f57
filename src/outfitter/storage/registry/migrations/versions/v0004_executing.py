"""Runs that are executed: who does it, in which attempt, what it tells meanwhile; and those who execute runs."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, Text

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns and make the tables."""
    name = Text().with_variant(Text(collation="C"), "postgresql")
    op.add_column("runs", Column("owner", name))
    op.add_column("runs", Column("attempt", Integer, nullable=False, server_default="0"))
    op.add_column("runs", Column("given", Text))
    op.add_column("runs", Column("holder", Text))
    op.create_table(
        "run_events",
        Column("run_id", name, primary_key=True),
        Column("seq", Integer, primary_key=True, autoincrement=False),
        Column("type", Text, nullable=False),
        Column("at", Text, nullable=False),
        Column("data", Text, nullable=False),
    )
    op.create_table(
        "runners",
        Column("id", name, primary_key=True),
        Column("first_seen", Text, nullable=False),
        Column("last_seen", Text, nullable=False),
        Column("capacity", Integer, nullable=False),
        Column("running", Text, nullable=False),
        Column("executors", Text, nullable=False),
    )
