"""One file per group of pages; this table says which request goes to which of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from outfitter.dashboard.page import Handler
from outfitter.dashboard.pages import (
    access,
    agent_editing,
    agents,
    approvals,
    budgets,
    calls,
    capability_editing,
    entries,
    home,
    importing,
    pins,
    playground,
    runs,
    search,
    server_editing,
    server_trying,
    trying,
)
from outfitter.dashboard.pages.entry_actions import EntryActions

_SERVERS = EntryActions("/mcp-servers", "/ui/servers")
_CAPABILITIES = EntryActions("/capabilities", "/ui/capabilities")
_AGENTS = EntryActions("/agents", "/ui/agents")

HANDLERS: Final[Mapping[str, Mapping[str, Handler]]] = {
    "/": {"GET": home.show},
    "/search": {"GET": search.find},
    "/servers": {"GET": entries.servers},
    "/servers/{name}": {"GET": entries.server},
    "/new/server": {"GET": server_editing.new, "POST": server_editing.create},
    "/servers/{name}/edit": {"GET": server_editing.edit, "POST": server_editing.change},
    "/servers/{name}/approve": {"POST": _SERVERS.approve},
    "/servers/{name}/delete": {"POST": _SERVERS.delete},
    "/servers/{name}/restore": {"POST": _SERVERS.restore},
    "/servers/{name}/test": {"POST": server_trying.test},
    "/servers/{name}/tools": {"POST": server_trying.keep_tools},
    "/import": {"GET": importing.show, "POST": importing.preview},
    "/import/apply": {"POST": importing.apply},
    "/capabilities": {"GET": entries.capabilities},
    "/capabilities/{name}": {"GET": entries.capability},
    "/new/capability": {"GET": capability_editing.new, "POST": capability_editing.create},
    "/capabilities/{name}/edit": {"GET": capability_editing.edit, "POST": capability_editing.change},
    "/capabilities/{name}/delete": {"POST": _CAPABILITIES.delete},
    "/capabilities/{name}/restore": {"POST": _CAPABILITIES.restore},
    "/agents": {"GET": agents.show_all},
    "/agents/{name}": {"GET": agents.show_one},
    "/new/agent": {"GET": agent_editing.new, "POST": agent_editing.create},
    "/agents/{name}/try": {"GET": trying.show, "POST": trying.attempt},
    "/agents/{name}/edit": {"GET": agent_editing.edit, "POST": agent_editing.change},
    "/agents/{name}/approve": {"POST": _AGENTS.approve},
    "/agents/{name}/delete": {"POST": _AGENTS.delete},
    "/agents/{name}/restore": {"POST": _AGENTS.restore},
    "/calls": {"GET": calls.show_all},
    "/calls/export": {"GET": calls.export},
    "/calls/{number}": {"GET": calls.show_one},
    "/pins": {"GET": pins.show_all},
    "/pins/{id}": {"GET": pins.show_one},
    "/pins/{id}/approve": {"POST": pins.approve},
    "/pins/{id}/reject": {"POST": pins.reject},
    "/budgets": {"GET": budgets.show},
    "/budgets/{name}/reset": {"POST": budgets.reset},
    "/approvals": {"GET": approvals.show_all},
    "/approvals/{id}/approve": {"POST": approvals.approve},
    "/approvals/{id}/deny": {"POST": approvals.deny},
    "/playground": {"GET": playground.show, "POST": playground.call},
    "/runs": {"GET": runs.show_all, "POST": runs.start},
    "/runs/{id}": {"GET": runs.show_one},
    "/runs/{id}/stop": {"POST": runs.stop},
    "/access": {"GET": access.show},
    "/access/tokens": {"POST": access.issue},
    "/access/tokens/{id}/revoke": {"POST": access.revoke},
}
"""Path under ``/ui``, method, handler."""
CHANGING_NOTHING: Final[frozenset[Handler]] = frozenset({trying.attempt})
"""What is sent as a form and only looks: open to those who may do no more."""
