"""May this call happen: the filters and rules of every level, on the arguments as sent. Rules that fail refuse."""

from __future__ import annotations

import logging

from outfitter.gateway.asked import Asked, Next, told
from outfitter.policy import Ask, Decision, Deny
from outfitter.resolution import PlannedServer
from outfitter.upstream import Message

_log = logging.getLogger(__name__)


async def judge(asked: Asked, go_on: Next) -> Message:
    """Ask the plan; a refusal is a result that the model can read."""
    if asked.item is None:
        raise TypeError("a call is judged after its tool is found")
    planned = asked.view.seat.planned(asked.item.alias)
    decision = asked.decision = _decide(planned, asked.item.name, asked.arguments)
    if isinstance(decision, Deny):
        return told(f"'{asked.name}' was refused: {decision.reason}", code="denied")
    if isinstance(decision, Ask):
        text = f"'{asked.name}' needs a person's approval: {decision.reason}"
        return told(text, code="approval_required")
    return await go_on(asked)


def _decide(planned: PlannedServer, tool: str, arguments: Message) -> Decision:
    try:
        return planned.decide(tool, arguments)
    except Exception:  # noqa: BLE001 - whatever a rule does, the answer is no
        _log.exception("the rules for '%s' could not be applied; the call is refused", tool)
        return Deny("the rules could not be applied")
