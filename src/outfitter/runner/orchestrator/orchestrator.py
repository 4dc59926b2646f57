"""The orchestrator of one runner, from its start to its end: what belongs together, opened and closed together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from outfitter.basics import the_one_in
from outfitter.errors import Unavailable
from outfitter.runner.credentials import SignIn
from outfitter.runner.orchestrator.agents import Agents
from outfitter.runner.orchestrator.bounds import BOUNDS, Bounds
from outfitter.runner.orchestrator.callbacks import Callbacks
from outfitter.runner.orchestrator.client import CoordinatorClient
from outfitter.runner.orchestrator.family import Family
from outfitter.runner.orchestrator.hearing import Hearing
from outfitter.runner.orchestrator.ledger import Ledger
from outfitter.runner.orchestrator.runs import Runs
from outfitter.runner.ports import Presence
from outfitter.runner.rest import RestClient

LEDGER = "callbacks.sqlite"


@dataclass(frozen=True, slots=True)
class OrchestratorOptions:
    """Where the coordinator is, where callbacks are remembered, and what agents may start."""

    coordinator: str
    """The URL of the service, without a path."""
    state: Path
    bounds: Bounds = BOUNDS
    patience: float = 30.0
    """For how many seconds a coordinator that is away is waited for in a call."""


class Orchestrator:
    """An MCP server for agents that start agents, while the block lasts. Enter and leave it in one task."""

    def __init__(self, options: OrchestratorOptions, tokens: SignIn | None, presence: Presence) -> None:
        """Keep the choices; nothing is opened yet. ``presence``: which runs are executed here now."""
        self._block: AbstractAsyncContextManager[Callable[[str, str], str]] = _open(options, tokens, presence)
        self._make_url: Callable[[str, str], str] | None = None

    async def __aenter__(self) -> Self:
        """Itself, answering."""
        self._make_url = await self._block.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Answer no more; what is owed stays in the ledger."""
        self._make_url = None
        await self._block.__aexit__(kind, error, trace)

    def url_for(self, session_id: str, run_id: str) -> str:
        """Its URL for one run of a session, as ``${AGENT_ORCHESTRATOR_MCP_URL}``: worth nothing to any other.

        Nor is it when that run has ended.
        """
        if self._make_url is None:
            raise Unavailable("the orchestrator is not running")
        return self._make_url(session_id, run_id)


@asynccontextmanager
async def _open(
    options: OrchestratorOptions, tokens: SignIn | None, presence: Presence
) -> AsyncGenerator[Callable[[str, str], str]]:
    from outfitter.runner.orchestrator.server import serving  # the SDK takes a second to load

    try:
        async with RestClient(options.coordinator.rstrip("/"), tokens) as rest, anyio.create_task_group() as group:
            client = CoordinatorClient(rest, options.patience)
            hearing, family = Hearing(client), Family(client)
            runs = Runs(client, hearing)
            callbacks = Callbacks(Ledger(options.state / LEDGER), runs, family, hearing, group)
            group.start_soon(hearing.run)
            await callbacks.begin()
            agents = Agents(client, family, runs, callbacks, options.bounds)
            async with serving(agents, presence) as make_url:
                yield make_url
            group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None
