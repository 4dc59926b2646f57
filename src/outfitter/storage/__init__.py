"""Where the catalog and the records are kept: a folder of files, a journal of calls, an audit database."""

from outfitter.storage.audit import AuditStore, SqliteAudit, drain
from outfitter.storage.files import read_bytes, write_files
from outfitter.storage.folder import AGENTS, CAPABILITIES, SERVERS, CatalogFolder, load_catalog
from outfitter.storage.journal import Journal, claim

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
]
