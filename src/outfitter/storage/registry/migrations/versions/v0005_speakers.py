"""Who speaks for a runner; and what is looked for by run is found without reading every row."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the column and the indexes."""
    op.add_column("runners", Column("subject", Text))
    op.create_index("sessions_by_run", "sessions", ["run_id"])
    op.create_index("api_tokens_by_run", "api_tokens", ["run_id"])
