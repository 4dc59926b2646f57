"""What governs an agent's calls, in words: rules, overrides, budgets, how its tools are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from outfitter.catalog import LISTED, NO_BUDGETS, Agent, Budgets, Effect, SearchMode, ToolOverride, ToolRule, ToolSearch


@dataclass(frozen=True, slots=True)
class Governed:
    """How much an agent may use, how it finds its tools, and from how many bytes on a result is kept aside."""

    budgets: Budgets = NO_BUDGETS
    tool_search: ToolSearch = LISTED
    result_limit: int | None = None
    client_approvals: bool = False

    @classmethod
    def of(cls, agent: Agent) -> Governed:
        """What holds for this agent, without anything else of it."""
        return cls(agent.budgets, agent.tool_search, agent.result_limit, agent.client_approvals)


def describe_rule(rule: ToolRule) -> str:
    """A rule in words: ``allow when /path matches tests/**: testers write tests``."""
    conditions = " and ".join(f"{pointer} matches {' or '.join(globs)}" for pointer, globs in rule.arguments.items())
    effect = "ask a person" if rule.effect is Effect.ASK else rule.effect.value
    text = f"{effect} when {conditions}" if conditions else effect
    text += " unless it only reads" if rule.unless_read_only else ""
    return f"{text}: {rule.reason}" if rule.reason else text


def describe_override(override: ToolOverride) -> str:
    """What is said otherwise about a tool, in words."""
    parts = [name for name in ("title", "description") if getattr(override, name) is not None]
    said = [f"another {' and '.join(parts)}"] if parts else []
    said += [f"default for {', '.join(override.defaults)}"] if override.defaults else []
    said += [f"{', '.join(override.hidden)} hidden"] if override.hidden else []
    return "; ".join(said) or "nothing else"


def describe_governing(agent: Governed) -> Iterator[str]:
    """Everything that is limited, one sentence each."""
    yield from _describe_budgets(agent.budgets)
    if agent.tool_search.mode is SearchMode.ALWAYS:
        yield "tools: searched for, not listed"
    elif agent.tool_search.mode is SearchMode.AUTO:
        yield f"tools: searched for when their definitions are over {agent.tool_search.threshold:,} tokens"
    if agent.result_limit is not None:
        yield f"results: above {agent.result_limit:,} bytes kept aside, with a preview"
    if agent.client_approvals:
        yield "approvals: the person at the client may give them too"


def _describe_budgets(budgets: Budgets) -> Iterator[str]:
    if budgets.concurrent_calls is not None:
        yield f"budget: {budgets.concurrent_calls} calls at a time"
    if budgets.calls_per_second is not None:
        yield f"budget: {budgets.calls_per_second:g} calls per second"
    for limit in budgets.limits:
        of = f" of {limit.scope}" if limit.scope else ""
        yield f"budget: {limit.amount:,} {limit.measure.value} per {limit.period.value}{of}"
    if budgets.repeats is not None:
        yield f"budget: the same call {budgets.repeats} times, then it is held to be a loop"
