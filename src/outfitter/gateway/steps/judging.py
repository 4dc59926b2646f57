"""May this call happen: the filters and rules of every level, on the arguments as sent. Rules that fail refuse.

What a tool says of itself counts only where its server is trusted. A call that a rule asks about goes on to
``approving``, which has it wait for a person.
"""

from __future__ import annotations

import logging

from outfitter.gateway.asked import Asked, Next, told
from outfitter.gateway.views import Item, as_object
from outfitter.policy import Decision, Deny
from outfitter.resolution import PlannedServer
from outfitter.upstream import Message

_log = logging.getLogger(__name__)


async def judge(asked: Asked, go_on: Next) -> Message:
    """Ask the plan; a refusal is a result that the model can read."""
    if asked.item is None:
        raise TypeError("a call is judged after its tool is found")
    planned = asked.view.seat.planned(asked.item.alias)
    decision = asked.decision = _decide(planned, asked.item, asked.arguments)
    if isinstance(decision, Deny):
        return told(f"'{asked.name}' was refused: {decision.reason}", code="denied")
    return await go_on(asked)


def _decide(planned: PlannedServer, item: Item, arguments: Message) -> Decision:
    try:
        return planned.decide(item.name, arguments, read_only=says_read_only(item.entry))
    except Exception:  # noqa: BLE001 - whatever a rule does, the answer is no
        _log.exception("the rules for '%s' could not be applied; the call is refused", item.name)
        return Deny("the rules could not be applied")


def says_read_only(entry: Message) -> bool:
    """Whether a tool says of itself that it only reads; whether that is believed is the plan's affair."""
    return as_object(entry.get("annotations")).get("readOnlyHint") is True
