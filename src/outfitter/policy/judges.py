"""Rules as policies: the same rules that an agent's blueprint carries, and rules by role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from outfitter.calls import Call, Outcome
from outfitter.catalog import ToolRule
from outfitter.policy.decisions import Decision, Deny
from outfitter.policy.policies import Facts
from outfitter.policy.rules import judge

NATIVE = "native"


@dataclass(frozen=True, slots=True)
class RulePolicy:
    """What rules say about tools and their arguments; tools of our own process stand under the server ``native``."""

    rules: Sequence[ToolRule]
    name: str = "rules"

    def check(self, call: Call, facts: Facts) -> Decision:  # noqa: ARG002 - rules need no memory
        """The strictest answer the rules give to any name of the tool."""
        answers = [
            judge(self.rules, call.server or NATIVE, name, call.arguments, read_only=call.read_only)
            for name in sorted(call.names)
        ]
        spoken = [answer for answer in answers if answer.rule is not None]
        return min(spoken or answers, key=lambda answer: answer.rank)

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:  # noqa: ARG002 - rules need no memory
        """Nothing to remember."""
        return facts


@dataclass(frozen=True, slots=True)
class RolePolicy:
    """The rules of one role; a role that is not in the table may call nothing."""

    role: str
    rules: Mapping[str, Sequence[ToolRule]] = field(default_factory=dict[str, Sequence[ToolRule]])
    name: str = "role"

    def check(self, call: Call, facts: Facts) -> Decision:
        """What the role's rules say."""
        if self.role not in self.rules:
            return Deny(f"role '{self.role}' has no rules here")
        return RulePolicy(self.rules[self.role]).check(call, facts)

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:  # noqa: ARG002 - rules need no memory
        """Nothing to remember."""
        return facts
