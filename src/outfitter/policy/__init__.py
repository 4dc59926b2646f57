"""WHO MAY: answers Allow, Deny or Ask about one call, with the reason. Pure; enforced by the bridge and the gateway."""

from outfitter.policy.approving import Approve, Approver, Verdict, Wish, canonical_digest
from outfitter.policy.budget_policy import BudgetPolicy, SpendingPolicy
from outfitter.policy.budgets import (
    EXCEEDED,
    LOOP,
    BudgetState,
    Counter,
    Payer,
    Refusal,
    covering,
    describe_state,
    tell_moment,
)
from outfitter.policy.decisions import Allow, Ask, Decision, Deny
from outfitter.policy.hidden_text import HiddenText, find_hidden, reveal_hidden
from outfitter.policy.judges import RolePolicy, RulePolicy
from outfitter.policy.metering import Ledger, MemoryLedger, Meter, pay, reset_counts, states_of, tokens_in
from outfitter.policy.packages import unpinned_package
from outfitter.policy.pin_diff import DiffRow, compare
from outfitter.policy.pins import Definition, Held, News, Pin, PinState, Review, Why, bind, review
from outfitter.policy.policies import Facts, ToolPolicy
from outfitter.policy.rules import judge
from outfitter.policy.sequence import ReadBeforeWritePolicy, SequentialDependencyPolicy

__all__ = [
    "EXCEEDED",
    "LOOP",
    "Allow",
    "Approve",
    "Approver",
    "Ask",
    "BudgetPolicy",
    "BudgetState",
    "Counter",
    "Decision",
    "Definition",
    "Deny",
    "DiffRow",
    "Facts",
    "Held",
    "HiddenText",
    "Ledger",
    "MemoryLedger",
    "Meter",
    "News",
    "Payer",
    "Pin",
    "PinState",
    "ReadBeforeWritePolicy",
    "Refusal",
    "Review",
    "RolePolicy",
    "RulePolicy",
    "SequentialDependencyPolicy",
    "SpendingPolicy",
    "ToolPolicy",
    "Verdict",
    "Why",
    "Wish",
    "bind",
    "canonical_digest",
    "compare",
    "covering",
    "describe_state",
    "find_hidden",
    "judge",
    "pay",
    "reset_counts",
    "reveal_hidden",
    "review",
    "states_of",
    "tell_moment",
    "tokens_in",
    "unpinned_package",
]
