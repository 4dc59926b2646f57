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
    from outfitter.storage.approval_rows import Approval, ApprovalState
    from outfitter.storage.approvals import ApprovalStore, ApprovalTimes
    from outfitter.storage.audit import AuditStore, SqliteAudit, drain, open_audit
    from outfitter.storage.budgets import BudgetBook, Reset
    from outfitter.storage.last_seen import LastSeenFolder
    from outfitter.storage.late_tools import WaitingTool
    from outfitter.storage.ledger import LedgerFile, open_ledger
    from outfitter.storage.pin_desk import PinDesk, shown_name
    from outfitter.storage.pins import PinBook
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
    from outfitter.storage.results import KeptResult, ResultFolder

__all__ = [
    "AGENTS",
    "CAPABILITIES",
    "ENDED",
    "KINDS",
    "SERVERS",
    "Action",
    "ApiTokens",
    "Approval",
    "ApprovalState",
    "ApprovalStore",
    "ApprovalTimes",
    "AuditStore",
    "BudgetBook",
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
    "KeptResult",
    "KeyRing",
    "Kind",
    "LastSeenFolder",
    "LedgerFile",
    "Past",
    "PinBook",
    "PinDesk",
    "Pruning",
    "Put",
    "Registry",
    "Reset",
    "ResultFolder",
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
    "User",
    "WaitingTool",
    "Writing",
    "claim",
    "drain",
    "glance",
    "load_catalog",
    "open_audit",
    "open_database",
    "open_ledger",
    "read_bytes",
    "shown_name",
    "write_files",
    "write_private",
]


_FILES = {
    **dict.fromkeys(("Approval", "ApprovalState"), "outfitter.storage.approval_rows"),
    **dict.fromkeys(("ApprovalStore", "ApprovalTimes"), "outfitter.storage.approvals"),
    **dict.fromkeys(("AuditStore", "SqliteAudit", "drain", "open_audit"), "outfitter.storage.audit"),
    **dict.fromkeys(("BudgetBook", "Reset"), "outfitter.storage.budgets"),
    "LastSeenFolder": "outfitter.storage.last_seen",
    **dict.fromkeys(("LedgerFile", "open_ledger"), "outfitter.storage.ledger"),
    "PinBook": "outfitter.storage.pins",
    **dict.fromkeys(("PinDesk", "shown_name"), "outfitter.storage.pin_desk"),
    **dict.fromkeys(("KeptResult", "ResultFolder"), "outfitter.storage.results"),
    "WaitingTool": "outfitter.storage.late_tools",
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
