"""What Alembic runs for a step: on the connection, and inside the transaction, that ``migrating`` gives it."""

from __future__ import annotations

from alembic import context

from outfitter.storage.registry.migrations import VERSION_TABLE
from outfitter.storage.registry.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"], target_metadata=METADATA, version_table=VERSION_TABLE
)
context.run_migrations()
