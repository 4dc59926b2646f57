"""The budgets of the gateway of one catalog: where they are counted, and by whom.

What is counted is ``gateway.budgets``; the files are ``storage.ledger`` and ``storage.budgets``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from outfitter.app.news import as_served
from outfitter.app.settings import Settings
from outfitter.app.squad_files import home_at
from outfitter.calls import Call, Done, ToolResult
from outfitter.catalog import Agent, JsonValue, ToolKey
from outfitter.errors import CallDenied
from outfitter.storage import CatalogFolder

if TYPE_CHECKING:
    from outfitter.gateway import Desk, LedgerAccounts
    from outfitter.storage import BudgetBook

_LOOK_SECONDS = 0.1


def budgets_of(settings: Settings, *, keeps: bool = False) -> BudgetBook:
    """The budgets of this catalog; another catalog's agents of the same name are others."""
    from outfitter.storage import BudgetBook

    return BudgetBook.at(settings.of_catalog("budgets").with_suffix(".ledger"), keeps=keeps)


def budgets_here(settings: Settings) -> BudgetBook:
    """The budgets of the catalog that this machine's gateway serves; of that of the settings, if none runs."""
    return budgets_of(as_served(settings))


@contextmanager
def counted_here(
    settings: Settings, agent: Agent, key: ToolKey, arguments: Mapping[str, JsonValue]
) -> Generator[Callable[[Mapping[str, JsonValue]], None]]:
    """Count a call that is made by hand as one of the agent's own; CallDenied when a budget is used up.

    What it has used is counted by the function that is given, with the result.
    """
    from outfitter.policy import BudgetPolicy

    if not agent.budgets.limits and agent.budgets.repeats is None:
        yield lambda _result: None
        return
    book = budgets_here(settings)
    try:
        policy = BudgetPolicy(agent.budgets, agent.name, book.ledger)
        call = Call(key.tool, key.tool, arguments, key.server)
        refused = policy.spend(call)
        if refused is not None:
            raise CallDenied(refused.text)

        def charge(result: Mapping[str, JsonValue]) -> None:
            policy.on_result(call, Done(ToolResult("", raw=result)), frozenset())

        yield charge
    finally:
        book.close()


def book_of(desk: Desk) -> BudgetBook | None:
    """The budgets as the gateway itself counts them; None when it counts nothing."""
    from outfitter.gateway import LedgerAccounts

    accounts = desk.governing.accounts
    return accounts.book if isinstance(accounts, LedgerAccounts) else None


def agents_here(settings: Settings) -> Mapping[str, Agent]:
    """The agents of a squad file, or of the folder, where there is no registry."""
    home = home_at(settings.catalog)
    return (CatalogFolder(settings.catalog).load() if home is None else home.load()).agents


@asynccontextmanager
async def open_accounts(settings: Settings, *, is_alone: bool = False) -> AsyncGenerator[LedgerAccounts]:
    """The accounts of a gateway, as long as the block lasts.

    One that is alone keeps the ledger from call to call, and lets others have it when they want it.
    """
    import anyio

    from outfitter.gateway import LedgerAccounts

    book = budgets_of(settings, keeps=is_alone)
    try:
        async with anyio.create_task_group() as tasks:
            if is_alone:
                tasks.start_soon(_lend, book)
            yield LedgerAccounts(book.ledger, book=book)
            tasks.cancel_scope.cancel()
    finally:
        book.close()


async def _lend(book: BudgetBook) -> None:
    import anyio

    while True:
        await anyio.sleep(_LOOK_SECONDS)
        book.ledger.breathe()
