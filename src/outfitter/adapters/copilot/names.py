"""How does Copilot show the tools of a server? ``server-tool``; and which tools cannot be shown so.

Copilot cuts names at 64 characters and lets two tools of one name stand for one. Both are refused here, before the
model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from outfitter.catalog import ToolKey
from outfitter.errors import Conflict, Invalid

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64
_HINT = "leave the tool out by the server's filter, rename the server, or route='bridge'"


def shown_name(key: ToolKey) -> str:
    """What the model calls this tool."""
    return f"{key.server}-{_FOREIGN.sub('-', key.tool)}"


def name_all(keys: Iterable[ToolKey], taken: Iterable[str] = ()) -> dict[str, ToolKey]:
    """The tools by the names that the model sees; Invalid or Conflict when one cannot be shown."""
    own = set(taken)
    named: dict[str, ToolKey] = {}
    for key in keys:
        name, where = shown_name(key), f"server '{key.server}', tool '{key.tool}'"
        if len(name) > _LONGEST:
            message = f"Copilot would cut the name '{name}', which has more than {_LONGEST} characters"
            raise Invalid(message, where=where, hint=_HINT)
        if name in own or named.setdefault(name, key) != key:
            raise Conflict(f"two tools are named '{name}' in Copilot", where=where, hint=_HINT)
    return named
