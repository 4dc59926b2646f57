"""The budgets of an agent for tools in our own process, native and of MCP servers alike.

The same counters, codes and words as at the gateway. What is checked must be counted in the same moment, or two calls
at once would both find room: so a policy that spends is asked last, when every other one has let the call through.
A run is a session here. Without a ledger of its own it counts in memory, for this object.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from outfitter.calls import Call, Outcome, Refused, result_of
from outfitter.catalog import Budgets, JsonValue
from outfitter.policy.budgets import BudgetState, Payer, Refusal, covering
from outfitter.policy.decisions import Allow, Decision
from outfitter.policy.judges import NATIVE
from outfitter.policy.metering import Ledger, MemoryLedger, Meter, states_of
from outfitter.policy.policies import Facts


@runtime_checkable
class SpendingPolicy(Protocol):
    """A policy that counts a call when it lets it through."""

    @property
    def name(self) -> str:
        """Under which its refusals are told."""
        ...

    def spend(self, call: Call) -> Refusal | None:
        """Count the call; when that is not allowed, count nothing and say why."""
        ...

    def take_back(self, call: Call) -> None:
        """A call that was counted is not made."""
        ...


@dataclass(frozen=True, slots=True)
class BudgetPolicy:
    """How much may be used: by whoever has this policy, and in each session."""

    budgets: Budgets
    agent: str = ""
    """Under which name it is counted; those that share a ledger and a name share their budgets."""
    ledger: Ledger = field(default_factory=MemoryLedger, repr=False)
    clock: Callable[[], float] = field(default=time.time, repr=False)
    name: str = "budgets"

    def check(self, call: Call, facts: Facts) -> Decision:  # noqa: ARG002 - it is asked when everything else is settled
        """Yes, so far: ``spend`` has the last word."""
        return Allow()

    def spend(self, call: Call) -> Refusal | None:
        """Count the call; when a budget is used up, count nothing and say which."""
        meter = self._meter(call)
        return None if meter is None else meter.spend(_text(call.arguments))

    def take_back(self, call: Call) -> None:
        """A call that was counted is not made: another policy does not let it through."""
        meter = self._meter(call)
        if meter is not None:
            meter.take_back()

    def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
        """Count what a call has used that was begun: its arguments and what came back, as JSON."""
        meter = None if isinstance(outcome, Refused) else self._meter(call)
        if meter is not None:
            meter.charge(len(_text(call.arguments)) + _size(outcome))
        return facts

    def states(self, session_id: str = "") -> tuple[BudgetState, ...]:
        """How far each budget is used, those of a run for this session."""
        return states_of(self.ledger, Payer(self.agent, session_id), self.budgets, self.clock())

    def _meter(self, call: Call) -> Meter | None:
        server = call.server or NATIVE
        payer, repeats = Payer(self.agent, call.session_id or ""), self.budgets.repeats
        counters = payer.counters(covering(self.budgets, server, call.tool))
        row = None if repeats is None else (payer.row_key, f"{server}/{call.tool}", repeats)
        return Meter(self.ledger, counters, row, self.clock) if counters or row else None


def _text(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=str).encode(
        "utf-8", "surrogatepass"
    )


def _size(outcome: Outcome) -> int:
    """How long an answer is: a server's own, or the text that a model is given."""
    result = result_of(outcome)
    raw: Mapping[str, JsonValue] | None = result.raw
    return len(_text(dict(raw) if raw is not None else result.message or result.value))
