"""What the policies of a call say, and what they remember of it: facts per policy, kept in the session.

The facts are session state, so restoring a session restores what its policies know. Several policies: the strictest
answer counts. A policy that breaks refuses the call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from outfitter.calls import Call, Outcome, Refused
from outfitter.policy import Allow, Ask, Decision, Deny, Facts, SpendingPolicy, ToolPolicy
from outfitter.session import Session
from outfitter.tools.context import ToolContext
from outfitter.tools.tool import Tool

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """What one policy remembers in a session."""

    policy: str
    facts: Facts


def judge_call(tool: Tool[Any, Any], call: Call, context: ToolContext) -> tuple[Decision, str]:
    """The strictest answer of all policies, with the name of the one that gave it."""
    answers = [(_ask(policy, call, context.session), policy.name) for policy in _policies(tool, context)]
    return min(answers, key=lambda answer: answer[0].rank, default=(Allow(), ""))


def spend_call(tool: Tool[Any, Any], call: Call, context: ToolContext) -> Refused | None:
    """Have every policy that counts calls count this one; where one does not let it through, none has counted it."""
    spent: list[SpendingPolicy] = []
    for policy in _policies(tool, context):
        if isinstance(policy, SpendingPolicy):
            refused = _spend(policy, call)
            if refused is not None:
                for other in spent:
                    other.take_back(call)
                return refused
            spent.append(policy)
    return None


def _spend(policy: SpendingPolicy, call: Call) -> Refused | None:
    try:
        refusal = policy.spend(call)
    except Exception as error:  # noqa: BLE001 - what cannot be counted must not happen
        _log.warning("policy '%s' failed on '%s'", policy.name, call.name, exc_info=True)
        return Refused(f"policy '{policy.name}': it failed ({type(error).__name__})", "not_counted")
    return None if refusal is None else Refused(f"'{call.name}' was refused: {refusal.text}", refusal.code)


def notify(tool: Tool[Any, Any], call: Call, outcome: Outcome, context: ToolContext) -> None:
    """Let every policy remember what came of the call."""
    for policy in _policies(tool, context):
        try:
            _remember(policy, call, outcome, context.session)
        except Exception:  # noqa: BLE001 - a policy is foreign code; the call has ended already
            _log.exception("policy '%s' failed to take the result of '%s'", policy.name, call.name)


def _policies(tool: Tool[Any, Any], context: ToolContext) -> Iterator[ToolPolicy]:
    seen: set[int] = set()
    for policy in (*context.policies, *tool.policies):
        if id(policy) not in seen:
            seen.add(id(policy))
            yield policy


def _ask(policy: ToolPolicy, call: Call, session: Session) -> Decision:
    try:
        decision = policy.check(call, facts_of(session, policy.name))
    except Exception as error:  # noqa: BLE001 - a policy is foreign code; one that breaks must not let calls through
        _log.warning("policy '%s' failed on '%s'", policy.name, call.name, exc_info=True)
        return Deny(f"it failed ({type(error).__name__})")
    return _understood(decision)


def _understood(answer: object) -> Decision:
    """The answer itself; a policy is foreign code, and what is no answer lets nothing through."""
    return answer if isinstance(answer, Allow | Ask | Deny) else Deny("it gave no answer")


def facts_of(session: Session, policy: str) -> Facts:
    """What the policy remembers in this session."""
    return next((kept.facts for kept in session[PolicyFacts].all() if kept.policy == policy), frozenset[str]())


def _remember(policy: ToolPolicy, call: Call, outcome: Outcome, session: Session) -> None:
    """Keep what the policy learned and forgot, as a change that can be made again when another call is undone."""
    name, before = policy.name, facts_of(session, policy.name)
    after = policy.on_result(call, outcome, before)
    learned, forgotten = after - before, before - after
    if not learned and not forgotten:
        return

    def updated(kept: tuple[PolicyFacts, ...]) -> tuple[PolicyFacts, ...]:
        old = next((entry.facts for entry in kept if entry.policy == name), frozenset[str]())
        others = (entry for entry in kept if entry.policy != name)
        return (*others, PolicyFacts(name, (old - forgotten) | learned))

    session[PolicyFacts].update(updated)
