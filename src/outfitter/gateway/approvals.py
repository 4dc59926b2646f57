"""What a person is asked about a call, and how the person at the client is asked.

A wish is bound to the agent, its run, the server, the tool and its definition, the arguments, and all rules of the
agent: what differs in any of it is another wish. Where wishes wait is ``storage``; the call waits in
``steps.approving``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import msgspec

from outfitter.calls import redact
from outfitter.gateway.records import digest_of
from outfitter.policy import Verdict, Wish, canonical_digest

if TYPE_CHECKING:
    from outfitter.gateway.asked import Asked
    from outfitter.gateway.views import Item
    from outfitter.gateway.visitors import Visitor
    from outfitter.resolution import PlannedServer, RunPlan
    from outfitter.storage import Approval
    from outfitter.upstream import Message

AT_CLIENT = "client"
"""Where an answer was given that came by elicitation."""
_LONGEST_TOLD = 2000


class Approvals(Protocol):
    """Where wishes wait for a person. All but ``look`` may block for a moment."""

    @property
    def wait(self) -> float:
        """The seconds that a call waits."""
        ...

    def ask(self, wish: Wish, seconds: float) -> Approval | None:
        """A wish that waits now, or what is known of an equal one; None when nobody can be asked."""
        ...

    def look(self, ident: str) -> str:
        """How a wish stands."""
        ...

    def take(self, ident: str) -> Approval:
        """Use the yes of a wish, if there is one; it is used once."""
        ...

    def answer(self, ident: str, verdict: Verdict) -> Approval:
        """Take what the person at the client said, unless somebody was first."""
        ...

    def leave(self, ident: str) -> None:
        """Nobody waits for it any more."""
        ...


@dataclass(frozen=True, slots=True)
class _Nobody:
    """Nobody is there to be asked."""

    wait: float = 0.0

    def ask(self, wish: Wish, seconds: float) -> Approval | None:
        """Nothing."""
        del wish, seconds

    def look(self, ident: str) -> str:
        """Expired."""
        del ident
        return "expired"

    def take(self, ident: str) -> Approval:
        """Nothing was asked."""
        raise LookupError(ident)

    def answer(self, ident: str, verdict: Verdict) -> Approval:
        """Nothing was asked."""
        del verdict
        raise LookupError(ident)

    def leave(self, ident: str) -> None:
        """Nothing to leave."""
        del ident


NOBODY: Approvals = _Nobody()


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
