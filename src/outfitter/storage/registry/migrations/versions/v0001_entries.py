"""Entries with their users and changes, the numbers that others follow, and what the database knows of itself."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text, column, table

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    name = Text().with_variant(Text(collation="C"), "postgresql")
    number = BigInteger().with_variant(Integer, "sqlite")
    op.create_table(
        "entries",
        Column("kind", name, primary_key=True),
        Column("id", name, primary_key=True),
        Column("search", Text, nullable=False),
        Column("version", Integer, nullable=False),
        Column("created_at", Text, nullable=False),
        Column("updated_at", Text, nullable=False),
        Column("updated_by", Text, nullable=False),
        Column("approved", Text),
        Column("document", Text, nullable=False),
    )
    op.create_index("entries_by_search", "entries", ["kind", "id", "search"])
    op.create_table(
        "uses",
        Column("kind", name, primary_key=True),
        Column("id", name, primary_key=True),
        Column("used_kind", name, primary_key=True),
        Column("used_id", name, primary_key=True),
    )
    op.create_index("uses_by_used", "uses", ["used_kind", "used_id"])
    op.create_table(
        "changes",
        Column("seq", number, primary_key=True, autoincrement=True),
        Column("revision", number, nullable=False),
        Column("at", Text, nullable=False),
        Column("who", Text, nullable=False),
        Column("action", Text, nullable=False),
        Column("kind", name, nullable=False),
        Column("id", name, nullable=False),
        Column("version", Integer, nullable=False),
        Column("before", Text),
        Column("after", Text),
        sqlite_autoincrement=True,
    )
    op.create_index("changes_by_entry", "changes", ["kind", "id", "seq"])
    op.create_table("counters", Column("name", Text, primary_key=True), Column("value", number, nullable=False))
    op.create_table("meta", Column("name", Text, primary_key=True), Column("value", Text, nullable=False))
    op.bulk_insert(
        table("counters", column("name", Text), column("value", Integer)), [{"name": "revision", "value": 0}]
    )
