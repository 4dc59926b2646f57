"""Which role may do what: one table, read by the API, by its description and by the documents.

A token bound to an agent may do only what concerns one agent, and only for its own. An ``agent`` token opens its MCP
endpoint and nothing else. It may not start runs, not even of its own agent: a run brings headers, and with headers of
its choice an agent could leave the scope it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeGuard

Role: TypeAlias = Literal["admin", "editor", "viewer", "runner", "agent"]
ROLES: tuple[Role, ...] = ("admin", "editor", "runner", "viewer", "agent")
"""Every role; where somebody has several, the first of this list counts."""
Action: TypeAlias = Literal[
    "registry.read",
    "registry.preview",
    "registry.write",
    "stdio.write",
    "stdio.approve",
    "runs.start",
    "runs.stop",
    "runs.read",
    "runs.execute",
    "runners.read",
    "calls.read",
    "approvals.read",
    "approvals.decide",
    "pins.decide",
    "budgets.reset",
    "events.read",
    "metrics.read",
    "tokens.manage",
    "gateway.use",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """What an action is, who may do it, and whether a token bound to an agent may do it for that agent."""

    about: str
    roles: frozenset[Role]
    concerns_one_agent: bool = False


def _rule(about: str, *roles: Role, concerns_one_agent: bool = False) -> Rule:
    return Rule(about, frozenset(roles), concerns_one_agent)


ACTIONS: Mapping[Action, Rule] = MappingProxyType(
    {
        "registry.read": _rule(
            "see servers, capabilities, agents, blueprints and their history",
            "admin", "editor", "runner", "viewer", concerns_one_agent=True,
        ),
        "registry.preview": _rule("resolve a change without storing it", "admin", "editor", "viewer"),
        "registry.write": _rule("create, change and delete entries that start no program", "admin", "editor"),
        "stdio.write": _rule("create, change and delete servers and executors that start a program", "admin"),
        "stdio.approve": _rule("approve the command of a server or an executor before it is started", "admin"),
        "runs.start": _rule("start a run", "admin", "editor", "runner", concerns_one_agent=True),
        "runs.stop": _rule("stop a run", "admin", "editor", "runner", concerns_one_agent=True),
        "runs.read": _rule(
            "see runs and sessions", "admin", "editor", "runner", "viewer", concerns_one_agent=True
        ),
        "runs.execute": _rule(
            "execute runs, and say that a runner is alive", "admin", "runner", concerns_one_agent=True
        ),
        "runners.read": _rule("see who executes runs", "admin", "editor", "runner", "viewer"),
        "calls.read": _rule("see recorded calls", "admin", "editor", "viewer", concerns_one_agent=True),
        "approvals.read": _rule(
            "see calls that wait for a person", "admin", "editor", "viewer", concerns_one_agent=True
        ),
        "approvals.decide": _rule("approve or refuse calls that wait for a person", "admin"),
        "budgets.reset": _rule("begin a budget of an agent anew before its time", "admin"),
        "pins.decide": _rule("approve or reject definitions of tools that changed", "admin"),
        "events.read": _rule("follow events", "admin", "editor", "runner", "viewer"),
        "metrics.read": _rule("see the figures of the service", "admin", "editor", "viewer"),
        "tokens.manage": _rule("issue, list and revoke tokens", "admin"),
        "gateway.use": _rule("call MCP servers at the endpoint of its agent", "agent", concerns_one_agent=True),
    }
)  # fmt: skip


def is_role(text: object) -> TypeGuard[Role]:
    """Whether there is a role of this name."""
    return text in ROLES
