"""What a plan says about pins: the name they are kept under, what to type about a tool, which packages are not pinned.

Pure. Pins themselves are ``policy``; who keeps them is further up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from outfitter.catalog import PinMode, StdioTransport
from outfitter.policy import Held, Why, unpinned_package
from outfitter.resolution.plan import Notice, PlannedServer, RunPlan


def pin_key(planned: PlannedServer, agent: str) -> str:
    """The name of the server's entry. A server that an agent has of its own is the agent's: others share the alias."""
    return planned.entry_id or f"{agent}.{planned.alias}"


def approval_of(key: str, held: Held) -> str:
    """The command that lets in what is held back, or shows what there is to decide."""
    if held.why is Why.LATE:
        return f"outfitter squad approve-tools {key} {held.name}"
    return f"outfitter pins diff {key} {held.name}".rstrip()


def package_notices(plan: RunPlan) -> Iterator[Notice]:
    """A word about every server whose code can be another at any start."""
    for planned in plan.servers.values():
        definition = planned.definition.value
        transport = definition.transport
        package = unpinned_package(transport.command, transport.args) if isinstance(transport, StdioTransport) else None
        if package is not None:
            told = f"server '{planned.alias}' starts '{package}', which is not pinned: its code can change at any start"
            waits = f"; it is not started before somebody approves it (outfitter approve {definition.name})"
            yield Notice("unpinned_package", told + (waits if definition.pins is PinMode.APPROVE else ""))


def with_waiting(plan: RunPlan, waiting: Mapping[str, Mapping[str, Held]]) -> RunPlan:
    """The plan with a notice of everything that waits, by alias and name; under no name, a server's instructions."""
    notices = [_notice(plan, alias, one) for alias, held in waiting.items() for one in held.values()]
    return replace(plan, notices=(*plan.notices, *notices)) if notices else plan


def _notice(plan: RunPlan, alias: str, held: Held) -> Notice:
    what, how = held.name or "what it says of itself", approval_of(pin_key(plan.servers[alias], plan.agent.name), held)
    told = f"server '{alias}': {what} waits for approval: {held.reason} ({how})"
    return Notice("tools_waiting" if held.why is Why.LATE else "pin_mismatch", told)
