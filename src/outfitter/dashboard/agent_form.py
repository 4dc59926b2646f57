"""An agent's document as a form, and back: who it is, what it has from capabilities, and what bounds it.

Its servers are ``uses_form``. What the form does not show (rules, executor) stays as it was; so does a sensitive value
left empty.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from outfitter.catalog import SearchMode
from outfitter.dashboard.form_values import Document, part_of, put, read_json, read_number
from outfitter.dashboard.uses_form import Sent, read_uses
from outfitter.errors import Invalid

MODES = tuple(mode.value for mode in SearchMode)
_TEXTS = ("description", "role", "system_prompt")


def texts_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The plain fields of a document."""
    shown = {name: str(document.get(name) or "") for name in ("name", *_TEXTS, "result_limit")}
    search: Any = document.get("tool_search") or MODES[0]
    whole: Document = {"mode": search} if isinstance(search, str) else search
    shown["search_mode"] = str(whole.get("mode") or SearchMode.AUTO.value)
    shown["search_threshold"] = str(whole.get("threshold") or "")
    shown["client_approvals"] = "true" if document.get("client_approvals") else ""
    budgets = document.get("budgets")
    shown["budgets"] = budgets if isinstance(budgets, str) else json.dumps(budgets, indent=2) if budgets else ""
    return shown


def document_of(
    sent: Sent, before: Mapping[str, Any], servers: Sequence[Document], problems: list[Invalid]
) -> Document:
    """The document that a form describes. A field that cannot be read stays as it was typed, and is a problem."""
    made = dict(before)
    for name in ("name", *_TEXTS):
        put(made, name, sent.text(name).strip())
    put(made, "capabilities", list(sent.every.get("capability", ())))
    put(made, "mcpServers", read_uses(sent, part_of(before, "mcpServers"), servers, problems))
    put(made, "result_limit", read_number("keep results aside", sent.text("result_limit"), "bytes", problems))
    budgets = sent.text("budgets").strip()
    put(made, "budgets", read_json("budgets", budgets, problems) if budgets else "")
    put(made, "tool_search", _search(sent, problems))
    put(made, "client_approvals", True if sent.text("client_approvals") else "")
    return made


def _search(sent: Sent, problems: list[Invalid]) -> object:
    """How tools are found; nothing for what is so without being said."""
    mode = sent.text("search_mode") or MODES[0]
    threshold = read_number("tool search", sent.text("search_threshold"), "tokens", problems)
    if threshold != "":
        return {"mode": mode, "threshold": threshold}
    return "" if mode == MODES[0] else mode
