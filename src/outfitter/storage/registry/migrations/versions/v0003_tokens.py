"""API tokens, and events for those who listen."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text, column, table

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make the tables."""
    name = Text().with_variant(Text(collation="C"), "postgresql")
    number = BigInteger().with_variant(Integer, "sqlite")
    op.create_table(
        "api_tokens",
        Column("id", name, primary_key=True),
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
    )
    op.create_table(
        "events",
        Column("seq", number, primary_key=True, autoincrement=False),
        Column("at", Text, nullable=False),
        Column("kind", Text, nullable=False),
        Column("subject", Text, nullable=False),
        Column("data", Text, nullable=False),
    )
    numbers = [{"name": name, "value": 0} for name in ("tokens", "events")]
    op.bulk_insert(table("counters", column("name", Text), column("value", Integer)), numbers)
