"""The budgets of agents over HTTP: how far each is used, and an admin begins one anew.

What was counted is looked at and changed on the loop, in the ledger of the gateway itself: a few numbers in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from outfitter.coordinator.api.answers import answer
from outfitter.coordinator.api.models import LIMIT, Limit, NoQuery, Word
from outfitter.coordinator.api.routing import Answer, Route
from outfitter.errors import NotFound
from outfitter.policy import BudgetState, Payer, describe_state

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.catalog import Agent
    from outfitter.coordinator.api.asking import Asked
    from outfitter.coordinator.api.office import Office
    from outfitter.storage import BudgetBook

Name = Annotated[str, Meta(description="As it is written: `calls_per_day`, or `repeats`.")]
Scope = Annotated[str, Meta(description="Empty for everything, the alias of a server, or `alias/tool`.")]


class BudgetShown(Struct, frozen=True, kw_only=True):
    """How far one budget is used."""

    budget: Name
    scope: Scope
    run: Annotated[str, Meta(description="The run whose budget it is; empty for one of the agent.")]
    used: Annotated[int | None, Meta(description="Null for the budget of a run where none was asked for.")]
    limit: int
    resets_at: Annotated[str | None, Meta(description="As ISO 8601, UTC; null when it never begins anew.")]


class AgentBudgets(Struct, frozen=True):
    """The budgets of one agent."""

    agent: str
    budgets: list[BudgetShown]


class BudgetsReset(AgentBudgets, frozen=True):
    """The budgets of one agent, some of them begun anew."""

    reset: Annotated[list[BudgetShown], Meta(description="Those that were begun anew, as they were.")]


class BudgetReset(Struct, frozen=True, kw_only=True):
    """A budget that somebody has begun anew, and how far it was used."""

    at: str
    by: str
    agent: str
    run: str
    budget: Name
    scope: Scope
    used: int
    limit: int


class BudgetList(Struct, frozen=True):
    """Agents that have budgets, by name, and the newest resets."""

    items: list[AgentBudgets]
    resets: list[BudgetReset]


class BudgetsQuery(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which of them."""

    agent: Word = ""
    run: Annotated[Word, Meta(description="With the budgets of this run.")] = ""
    limit: Limit = LIMIT


class ResetAsked(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which budgets begin anew; without words all that the agent has."""

    budget: Annotated[str, Meta(max_length=64)] = ""
    scope: Annotated[str | None, Meta(description="Null: whatever it is for.")] = None
    run: Annotated[str, Meta(max_length=200)] = ""


async def _list(office: Office, asked: Asked[BudgetsQuery]) -> Response:
    book, query, agents = office.budgets, asked.query, office.coordinator.live.catalog.agents
    if book is None:
        return answer(BudgetList([], []))
    named = [asked.agent] if asked.agent else sorted(agents)
    chosen = [agents[name] for name in named if name in agents and _has_budgets(agents[name])]
    items = [_budgets(book, agent, query.run) for agent in chosen[: query.limit]]
    resets = [BudgetReset(**_fields(one)) for one in book.resets(asked.agent or "")]
    return answer(BudgetList(items, resets))


async def _reset(office: Office, asked: Asked[NoQuery]) -> Response:
    wanted, book = asked.read(ResetAsked), office.budgets
    agent = office.coordinator.live.catalog.agents.get(asked.id)
    if agent is None or book is None:
        raise NotFound(f"there is no agent '{asked.id}' whose calls are counted")
    by = "somebody" if asked.who is None else asked.who.name
    payer = Payer(agent.name, wanted.run)
    done = book.reset(payer, agent.budgets, by=by, budget=wanted.budget, scope=wanted.scope)
    now = _budgets(book, agent, wanted.run)
    return answer(BudgetsReset(now.agent, now.budgets, _shown(done)))


def _has_budgets(agent: Agent) -> bool:
    return bool(agent.budgets.limits) or agent.budgets.repeats is not None


def _budgets(book: BudgetBook, agent: Agent, run: str) -> AgentBudgets:
    return AgentBudgets(agent.name, _shown(book.states(Payer(agent.name, run), agent.budgets)))


def _shown(states: Iterable[BudgetState]) -> list[BudgetShown]:
    told: list[dict[str, Any]] = [describe_state(state) for state in states]
    return [BudgetShown(**one) for one in told]


def _fields(one: Struct) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}


ROUTES = (
    Route("GET", "/budgets", "How far the budgets of agents are used, and which were begun anew", _list,
          Answer(model=BudgetList), "calls.read", BudgetsQuery, concerns="query"),
    Route("POST", "/agents/{name}/budgets/reset", "Begin budgets of an agent anew before their time", _reset,
          Answer(model=BudgetsReset), "budgets.reset", body=ResetAsked),
)  # fmt: skip
