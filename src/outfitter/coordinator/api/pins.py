"""Pinned definitions of tools over HTTP: who may look sees what changed, an admin approves or rejects it.

The file is used off the loop. What waits and why is ``policy.pins``; where it is kept, ``storage.pins``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import anyio.to_thread
import msgspec
from msgspec import Meta, Struct

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import LIMIT, Limit, NoQuery, Word
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.errors import NotFound

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.storage import PinDesk

PinStateName = Literal["pending", "pinned", "rejected"]
Line = Annotated[str | None, Meta(description="Null where this side has no line; what is hidden is made visible.")]


class PinShown(Struct, frozen=True, kw_only=True):
    """One definition of a tool, or what a server says of itself: approved, rejected, or waiting for a person."""

    id: Annotated[str, Meta(description="Names this definition: what the server says later has another id.")]
    server: str
    kind: Literal["tool", "instructions"]
    name: Annotated[str, Meta(description="The server's own name of the tool; empty for its instructions.")]
    agent: Annotated[str, Meta(description="Where it waits for one agent only: a tool that appeared later.")]
    state: PinStateName
    why: Literal["first_use", "approved", "changed", "renamed", "new", "hidden_text", "late", "unknown"]
    reason: str
    was: Annotated[str, Meta(description="The name it had when it was approved, where it was renamed.")]
    digest: Annotated[str, Meta(description="SHA-256 of everything that a model sees of it, as canonical JSON.")]
    since: str
    decided: str
    by: str
    hidden: Annotated[list[str], Meta(description="What the text hides from people, and where.")]


class PinRow(Struct, frozen=True):
    """One line of what was approved, beside the line of what is there now."""

    part: Annotated[str, Meta(description="Such as `description` or `inputSchema`.")]
    mark: Literal["same", "changed", "added", "removed"]
    before: Line
    after: Line


class PinCompared(PinShown, frozen=True, kw_only=True):
    """A definition with what was approved before it, side by side."""

    before: PinShown | None
    rows: list[PinRow]


class PinList(Struct, frozen=True):
    """Definitions, those that wait first."""

    items: list[PinShown]


class PinsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which of them."""

    server: Word = ""
    state: Literal["", "pending", "pinned", "rejected"] = ""
    limit: Limit = LIMIT


async def _list(office: Office, asked: Asked[PinsQuery]) -> Response:
    desk, query = office.pins, asked.query
    if desk is None:
        return answer(PinList([]))
    rows = await anyio.to_thread.run_sync(desk.rows, query.server or None, query.state or None)
    return answer(PinList(msgspec.convert(rows[: query.limit], list[PinShown])))


async def _read(office: Office, asked: Asked[NoQuery]) -> Response:
    return answer(msgspec.convert(await anyio.to_thread.run_sync(_desk(office, asked.id).one, asked.id), PinCompared))


async def _decide(office: Office, asked: Asked[NoQuery], *, is_yes: bool) -> Response:
    desk, by = _desk(office, asked.id), "somebody" if asked.who is None else asked.who.name
    decide = desk.approve if is_yes else desk.reject
    row = await anyio.to_thread.run_sync(decide, asked.id, by)
    return answer(msgspec.convert(row, PinShown))


def _desk(office: Office, ident: str) -> PinDesk:
    if office.pins is None:
        raise NotFound(f"there is no pin '{ident}'", hint="outfitter pins list shows them all")
    return office.pins


ROUTES = (
    Route("GET", "/pins", "Definitions of tools: what waits for a person, what is approved, what was rejected", _list,
          Answer(model=PinList), "registry.read", PinsQuery),
    Route("GET", "/pins/{id}", "Read one of them, beside what was approved before", _read, Answer(model=PinCompared),
          "registry.read"),
    Route("POST", "/pins/{id}/approve", "Let models see and call this definition", partial(_decide, is_yes=True),
          Answer(model=PinShown), "pins.decide"),
    Route("POST", "/pins/{id}/reject", "Keep this definition hidden for good", partial(_decide, is_yes=False),
          Answer(model=PinShown), "pins.decide", problems=(409,)),
)  # fmt: skip
