"""What a run may be given: the headers of its agent's servers as fields by their schema, and the request they make.

A field that is left as it is says nothing, so that the run gets what the agent would. Sensitive values are sent as
credentials, which are held in memory only, and never come back into a page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from outfitter.dashboard.form_values import Document, part_of, read_value, shown
from outfitter.errors import Invalid


@dataclass(frozen=True, slots=True)
class RunField:
    """One header that a run may set. ``now`` is what the agent's run would send without a word."""

    key: str
    name: str
    type: str
    description: str
    example: str
    now: str
    level: str
    value: str
    is_required: bool
    is_sensitive: bool
    is_locked: bool

    @property
    def is_on(self) -> bool:
        """Whether a box is ticked."""
        return (self.value or self.now) == "true"


@dataclass(frozen=True, slots=True)
class RunServer:
    """A server of the agent, with what may be set for it."""

    alias: str
    fields: tuple[RunField, ...]


def servers_of(
    plan: Mapping[str, Any], schemas: Mapping[str, Document], sent: Mapping[str, str] | None = None
) -> list[RunServer]:
    """The servers of an explanation that take headers. ``schemas`` are those of the registry's servers by id."""
    found = [
        RunServer(one["alias"], tuple(_fields(one, schemas.get(one["ref"] or "", {}), sent or {})))
        for one in plan.get("servers", ())
    ]
    return [one for one in found if one.fields]


def _fields(server: Mapping[str, Any], schema: Document, sent: Mapping[str, str]) -> list[RunField]:
    known = {one["name"]: one for one in server["headers"]}
    return [
        _field(server["alias"], name, part_of(schema, name), known.get(name), sent)
        for name in dict.fromkeys([*schema, *known])
        if not part_of(schema, name).get("internal")
    ]


def _field(
    alias: str, name: str, rule: Document, header: Mapping[str, Any] | None, sent: Mapping[str, str]
) -> RunField:
    is_sensitive = bool(rule.get("sensitive")) or (header is not None and "sensitive" in header["flags"])
    key = f"header-{alias}-{name}"
    return RunField(
        key=key, name=name, type=rule.get("type", "string"), description=rule.get("description", ""),
        example=str(rule.get("example", "")), now="" if header is None else shown(header["value"]),
        level="" if header is None else header["origin"]["level"], value="" if is_sensitive else sent.get(key, ""),
        is_required=bool(rule.get("required")), is_sensitive=is_sensitive,
        is_locked=bool(rule.get("locked")) or (header is not None and "locked" in header["flags"]),
    )  # fmt: skip


def request_of(sent: Mapping[str, str], servers: Sequence[RunServer], problems: list[Invalid]) -> Document:
    """The request that a form makes; what cannot be read is a problem."""
    headers: dict[str, Document] = {}
    credentials: dict[str, Document] = {}
    for server in servers:
        for field in server.fields:
            text = _text(field, sent)
            if not text or field.is_locked:
                continue
            if field.is_sensitive:
                credentials.setdefault(server.alias, {})[field.name] = text
            else:
                headers.setdefault(server.alias, {})[field.name] = read_value(field.name, field.type, text, problems)
    made: Document = {"agent_name": sent.get("agent", ""), "prompt": sent.get("prompt", "")}
    return made | ({"mcp_headers": headers} if headers else {}) | ({"credentials": credentials} if credentials else {})


def _text(field: RunField, sent: Mapping[str, str]) -> str:
    """What a field says; nothing for a box that is as it was shown."""
    text = sent.get(field.key, "").strip()
    if field.type != "boolean" or field.is_sensitive:
        return text
    said, was = text or "false", sent.get(f"was-{field.key}", "false")
    return "" if said == was else said
