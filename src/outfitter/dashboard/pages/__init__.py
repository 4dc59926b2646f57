"""One file per group of pages; this table says which request goes to which of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from outfitter.dashboard.page import Handler
from outfitter.dashboard.pages import (
    access,
    agent_editing,
    agents,
    calls,
    entries,
    home,
    playground,
    runs,
    search,
    server_editing,
)

HANDLERS: Final[Mapping[str, Mapping[str, Handler]]] = {
    "/": {"GET": home.show},
    "/search": {"GET": search.find},
    "/servers": {"GET": entries.servers},
    "/servers/{name}": {"GET": entries.server},
    "/new/server": {"GET": server_editing.new, "POST": server_editing.create},
    "/servers/{name}/edit": {"GET": server_editing.edit, "POST": server_editing.change},
    "/servers/{name}/approve": {"POST": server_editing.approve},
    "/servers/{name}/delete": {"POST": server_editing.delete},
    "/servers/{name}/restore": {"POST": server_editing.restore},
    "/capabilities": {"GET": entries.capabilities},
    "/capabilities/{name}": {"GET": entries.capability},
    "/agents": {"GET": agents.show_all},
    "/agents/{name}": {"GET": agents.show_one},
    "/new/agent": {"GET": agent_editing.new, "POST": agent_editing.create},
    "/agents/{name}/edit": {"GET": agent_editing.edit, "POST": agent_editing.change},
    "/agents/{name}/approve": {"POST": agent_editing.approve},
    "/agents/{name}/delete": {"POST": agent_editing.delete},
    "/calls": {"GET": calls.show_all},
    "/calls/{number}": {"GET": calls.show_one},
    "/playground": {"GET": playground.show, "POST": playground.call},
    "/runs": {"GET": runs.show_all, "POST": runs.start},
    "/runs/{id}": {"GET": runs.show_one},
    "/runs/{id}/stop": {"POST": runs.stop},
    "/access": {"GET": access.show},
    "/access/tokens": {"POST": access.issue},
    "/access/tokens/{id}/revoke": {"POST": access.revoke},
}
"""Path under ``/ui``, method, handler."""
