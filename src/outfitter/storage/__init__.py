"""Where the catalog and the records are kept: a folder of files, a journal of calls, an audit database, a registry.

The databases are loaded when they are first used: most commands only read the catalog. The registry's is an extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.storage.files import read_bytes, write_files, write_private
from outfitter.storage.folder import AGENTS, CAPABILITIES, SERVERS, CatalogFolder, load_catalog
from outfitter.storage.glance import glance
from outfitter.storage.journal import Journal, claim

if TYPE_CHECKING:
    from outfitter.storage.audit import AuditStore, SqliteAudit, drain, open_audit
    from outfitter.storage.registry import (
        ENDED,
        KINDS,
        Action,
        ApiTokens,
        Change,
        Database,
        Delete,
        Ending,
        Entry,
        EventRecord,
        Events,
        Executing,
        KeyRing,
        Kind,
        Past,
        Pruning,
        Put,
        Registry,
        RunEvent,
        RunnerRecord,
        Runners,
        RunRecord,
        Runs,
        RunState,
        SessionRecord,
        Speaker,
        Taking,
        Telling,
        TellRun,
        TokenRecord,
        User,
        Writing,
        open_database,
    )
    from outfitter.storage.sightings import ToolSightings, WaitingTool

__all__ = [
    "AGENTS",
    "CAPABILITIES",
    "ENDED",
    "KINDS",
    "SERVERS",
    "Action",
    "ApiTokens",
    "AuditStore",
    "CatalogFolder",
    "Change",
    "Database",
    "Delete",
    "Ending",
    "Entry",
    "EventRecord",
    "Events",
    "Executing",
    "Journal",
    "KeyRing",
    "Kind",
    "Past",
    "Pruning",
    "Put",
    "Registry",
    "RunEvent",
    "RunRecord",
    "RunState",
    "RunnerRecord",
    "Runners",
    "Runs",
    "SessionRecord",
    "Speaker",
    "SqliteAudit",
    "Taking",
    "TellRun",
    "Telling",
    "TokenRecord",
    "ToolSightings",
    "User",
    "WaitingTool",
    "Writing",
    "claim",
    "drain",
    "glance",
    "load_catalog",
    "open_audit",
    "open_database",
    "read_bytes",
    "write_files",
    "write_private",
]


_FILES = {
    **dict.fromkeys(("AuditStore", "SqliteAudit", "drain", "open_audit"), "outfitter.storage.audit"),
    **dict.fromkeys(("ToolSightings", "WaitingTool"), "outfitter.storage.sightings"),
}
"""Where a name is that is not the registry's."""


def __getattr__(name: str) -> object:
    """Load what needs a database on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'outfitter.storage' has no attribute '{name}'")
    from importlib import import_module

    try:
        value = getattr(import_module(_FILES.get(name, "outfitter.storage.registry")), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("outfitter"):
            raise
        from outfitter.errors import StorageUnavailable

        message = f"the library '{(error.name or '').partition('.')[0]}' is not installed"
        raise StorageUnavailable(message, hint="pip install 'outfitter[service]'") from None
    globals()[name] = value
    return value
