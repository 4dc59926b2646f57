"""Every route of the API, once: the application, the OpenAPI text and the documents are made from this table."""

from __future__ import annotations

from typing import Any

from outfitter.coordinator.api import (
    agents,
    approvals,
    budgets,
    calls,
    entries,
    events,
    importing,
    looking,
    pages,
    pins,
    probing,
    published,
    runners,
    runs,
    tokens,
    weights,
)
from outfitter.coordinator.api.documents import AgentDocument, CapabilityDocument, ServerDocument
from outfitter.coordinator.api.routing import Route

ROUTES: tuple[Route[Any], ...] = (
    *entries.routes_of("mcp-servers", ServerDocument),
    entries.APPROVE,
    *probing.ROUTES,
    *entries.routes_of("capabilities", CapabilityDocument),
    *entries.routes_of("agents", AgentDocument),
    entries.APPROVE_EXECUTOR,
    entries.CHANGES,
    *agents.ROUTES,
    *weights.ROUTES,
    *importing.ROUTES,
    *runs.ROUTES,
    *runners.ROUTES,
    *calls.ROUTES,
    *approvals.ROUTES,
    *pins.ROUTES,
    *budgets.ROUTES,
    *looking.ROUTES,
    *events.ROUTES,
    *tokens.ROUTES,
    *pages.ROUTES,
    *published.ROUTES,
)
