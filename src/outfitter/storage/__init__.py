"""Where the catalog and the records are kept: a folder of files, a journal of calls, an audit database.

The database is loaded when it is first used: most commands only read the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.storage.files import read_bytes, write_files, write_private
from outfitter.storage.folder import AGENTS, CAPABILITIES, SERVERS, CatalogFolder, load_catalog
from outfitter.storage.journal import Journal, claim

if TYPE_CHECKING:
    from outfitter.storage.audit import AuditStore, SqliteAudit, drain

__all__ = [
    "AGENTS",
    "CAPABILITIES",
    "SERVERS",
    "AuditStore",
    "CatalogFolder",
    "Journal",
    "SqliteAudit",
    "claim",
    "drain",
    "load_catalog",
    "read_bytes",
    "write_files",
    "write_private",
]


def __getattr__(name: str) -> object:
    """Load what needs the database on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'outfitter.storage' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module("outfitter.storage.audit"), name)
    globals()[name] = value
    return value
