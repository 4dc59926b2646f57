"""WHO KEEPS THE TEAM'S REGISTRY: its use cases over a database, the REST API, and who may do what.

``open_coordinator`` makes the use cases of an open database; ``api`` puts them on HTTP; ``access`` says who is asking.
Neighbours: ``storage`` keeps, ``resolution`` decides, ``gateway`` enforces. The API is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.coordinator.access.access import Access, open_access
from outfitter.coordinator.access.gateway import GatewayTokens
from outfitter.coordinator.access.identity import LOCAL, Identity
from outfitter.coordinator.access.keys import KeyTimes
from outfitter.coordinator.access.last_used import LastUsed
from outfitter.coordinator.access.roles import ACTIONS, ROLES, Action, Role, Rule
from outfitter.coordinator.access.tokens import EVERYWHERE, Scope, Tokens
from outfitter.coordinator.access.verifier import JwtRules, JwtVerifier
from outfitter.coordinator.coordinator import Coordinator, open_coordinator
from outfitter.coordinator.entries import Entries
from outfitter.coordinator.executing import Claim, Executions, LeaseTimes, WorkOrder
from outfitter.coordinator.files import Difference, Exported, FilePlan, Files, Followed, Step
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.probing import Probe, Probed
from outfitter.coordinator.runs import RunOutfit, Runs
from outfitter.coordinator.values import (
    MASK,
    Author,
    Draft,
    Page,
    RunFilter,
    Shown,
)

if TYPE_CHECKING:
    from outfitter.coordinator.api import ROUTES, STATUSES, Office, describe, make_api

__all__ = [
    "ACTIONS",
    "EVERYWHERE",
    "LOCAL",
    "MASK",
    "ROLES",
    "ROUTES",
    "STATUSES",
    "Access",
    "Action",
    "Author",
    "Claim",
    "Coordinator",
    "Difference",
    "Draft",
    "Entries",
    "Executions",
    "Exported",
    "FilePlan",
    "Files",
    "Followed",
    "GatewayTokens",
    "Identity",
    "JwtRules",
    "JwtVerifier",
    "KeyTimes",
    "LastUsed",
    "LeaseTimes",
    "LiveCatalog",
    "Office",
    "Page",
    "Probe",
    "Probed",
    "Role",
    "Rule",
    "RunFilter",
    "RunOutfit",
    "Runs",
    "Scope",
    "Shown",
    "Step",
    "Tokens",
    "WorkOrder",
    "describe",
    "make_api",
    "open_access",
    "open_coordinator",
]


def __getattr__(name: str) -> object:
    """Load the API, which needs a web framework, on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'outfitter.coordinator' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module("outfitter.coordinator.api"), name)
    globals()[name] = value
    return value
