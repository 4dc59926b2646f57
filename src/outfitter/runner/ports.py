"""What the runner needs of others: an orchestrator, and who executes a run; and what an orchestrator needs of it.

Each is one small shape, so that the runner knows neither the agent SDKs nor the MCP server that agents start other
agents with. ``app`` brings the real ones together. How a runner signs in is ``credentials``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

if TYPE_CHECKING:
    from outfitter.runner.orders import Ended, Offer, WorkOrder

Report: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""Takes one event of a run: its type and its data. It is kept at once and sent later, in order."""


class OrchestratorServer(Protocol):
    """The MCP server by which agents start other agents: entered before the first run, left after the last."""

    def url_for(self, session_id: str, run_id: str) -> str:
        """Where it listens for one run of a session, known once it is entered: an address of this machine."""
        ...

    async def __aenter__(self) -> Self:
        """Listen."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no more."""
        ...


class Presence(Protocol):
    """Which runs are executed here, and which of them wait; see ``Places``."""

    def is_active(self, run_id: str) -> bool:
        """Whether a run is executed here now."""
        ...

    def waiting(self, run_id: str, other: Offer, *, is_pending: bool) -> AbstractContextManager[None]:
        """A run waits for another one as long as the block lasts, and has no place meanwhile."""
        ...


class Executor(Protocol):
    """Executes runs of one type. Cancelling it ends everything that it started."""

    async def execute(self, order: WorkOrder, report: Report) -> Ended:
        """How the run ended; what went wrong with the run is told there and not raised."""
        ...
