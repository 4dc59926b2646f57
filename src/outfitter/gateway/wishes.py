"""What a person is asked about a call, and how the person at the client is asked.

A wish is bound to the agent, its run, the server, the tool and its definition, the arguments, and all rules of the
agent: what differs in any of it is another wish. Where wishes wait is ``approvals``; the call waits in
``steps.approving``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from outfitter.calls import redact
from outfitter.gateway.asked import Asked
from outfitter.gateway.records import digest_of
from outfitter.gateway.views import Item
from outfitter.gateway.visitors import Visitor
from outfitter.policy import Verdict, Wish, canonical_digest
from outfitter.resolution import PlannedServer, RunPlan
from outfitter.upstream import Message

AT_CLIENT = "client"
"""Where an answer was given that came by elicitation."""
_LONGEST_TOLD = 2000


def wish_of(asked: Asked, item: Item, reason: str) -> Wish:
    """What a person is asked about a call."""
    who, schema = asked.visitor.principal, item.entry.get("inputSchema")
    return Wish(
        agent=who.agent,
        run=who.run_id or "",
        server=item.alias,
        tool=item.name,
        digest=digest_of(asked.arguments),
        pin=pin_of(item),
        policy=policy_of(asked.view.seat.plan),
        reason=reason,
        shown=asked.name,
        arguments=redact(asked.arguments, cast("Any", schema) if isinstance(schema, dict) else None),
        asked_by=who.token_id,
    )


def pin_of(item: Item) -> str:
    """Digest of a tool's definition, as the agent gets it."""
    return canonical_digest(item.entry)


def policy_of(plan: RunPlan) -> str:
    """Digest of all that an agent's levels say about its calls."""
    return canonical_digest({alias: _said(planned) for alias, planned in plan.servers.items()})


def _said(planned: PlannedServer) -> list[str]:
    rules = [(one.alias, one.rules) for one in planned.rule_sets]
    filters = [gate.filter for gate in planned.gates]
    overrides = sorted((tool, repr(one.value)) for tool, one in planned.overrides.items())
    return [planned.id, str(planned.definition.value.trusted), repr(rules), repr(filters), repr(overrides)]


# ── the person at the client ──


def can_be_asked(visitor: Visitor) -> bool:
    """Whether the client has said that it shows forms to a person."""
    said: object = visitor.capabilities.get("elicitation")
    return isinstance(said, Mapping) and (not said or "form" in said)


def question_of(wish: Wish) -> Message:
    """What the client shows: the call with its secrets masked, and one box that is empty."""
    arguments = msgspec.json.encode(dict(wish.arguments)).decode()
    if len(arguments) > _LONGEST_TOLD:
        arguments = f"{arguments[:_LONGEST_TOLD]} … ({len(arguments)} characters)"
    told = f"Agent '{wish.agent}' wants to call '{wish.tool}' of server '{wish.server}': {wish.reason}\n{arguments}"
    box = {"type": "boolean", "title": "Approve this call", "description": "Once, with these arguments."}
    schema = {"type": "object", "properties": {"approve": {**box, "default": False}}, "required": ["approve"]}
    return {"message": told, "requestedSchema": schema}


def read_answer(answer: Message, by: str) -> Verdict | None:
    """What the person at the client said; None when the question was put away."""
    if answer.get("action") == "decline":
        return Verdict(is_yes=False, by=by, where=AT_CLIENT)
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, dict):
        return None
    is_yes = cast("dict[str, object]", content).get("approve") is True
    return Verdict(is_yes=is_yes, by=by, where=AT_CLIENT)
