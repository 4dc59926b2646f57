"""A capability's document as a form, and back: its text for the prompt, and the servers it brings (``uses_form``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outfitter.dashboard.form_values import Document, part_of, put
from outfitter.dashboard.uses_form import Sent, read_uses
from outfitter.errors import Invalid

_TEXTS = ("description", "text")


def texts_of(document: Mapping[str, Any]) -> dict[str, str]:
    """The plain fields of a document."""
    return {name: str(document.get(name) or "") for name in ("name", *_TEXTS)}


def document_of(
    sent: Sent, before: Mapping[str, Any], servers: Sequence[Document], problems: list[Invalid]
) -> Document:
    """The document that a form describes. A field that cannot be read stays as it was typed, and is a problem."""
    made = dict(before)
    put(made, "name", sent.text("name").strip())
    put(made, "description", sent.text("description").strip())
    put(made, "text", sent.text("text").replace("\r\n", "\n"))
    put(made, "mcpServers", read_uses(sent, part_of(before, "mcpServers"), servers, problems))
    return made
