"""What can say no to a call, in our own process as at the gateway.

A policy is pure. What it must remember between calls is a set of *facts* that whoever enforces keeps for it, per
session: so a session that is restored forgets with its policies, and one policy object serves many sessions.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from outfitter.calls import Call, Outcome
from outfitter.policy.decisions import Decision

Facts: TypeAlias = frozenset[str]


@runtime_checkable
class ToolPolicy(Protocol):
    """One rule about calls, for tools of our own and of MCP servers alike."""

    @property
    def name(self) -> str:
        """Under which its facts are kept and its refusals are told; one name is one memory."""
        ...

    def check(self, call: Call, facts: Facts) -> Decision:
        """Whether the call may happen, given what is remembered."""
        ...

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        """What to remember now that the call has ended."""
        ...
