"""The words between runner and coordinator: a work order, how a run ended, who else executes runs.

Read from JSON; what the runner has no use for is not read. ``desk`` asks, ``working`` does what an order says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

EndState: TypeAlias = Literal["done", "failed", "stopped", "lost"]
ENDED = frozenset({"done", "failed", "stopped", "lost"})
NO_SECONDS = 3600.0
"""How long a run may take when its executor does not say."""


class RunShown(msgspec.Struct, frozen=True):
    """A run as the coordinator tells it."""

    id: str
    agent_name: str
    prompt: str
    session_id: str
    state: str
    parent_session_id: str | None = None
    owner: str | None = None
    attempt: int = 0


class ExecutorSpec(msgspec.Struct, frozen=True):
    """What the agent's document says about how it is executed."""

    type: str
    model: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, Any] = {}
    timeout: float | None = None
    recover: bool = False
    concurrency: int | None = None


class AgentShown(msgspec.Struct, frozen=True):
    """The agent that is to be executed."""

    name: str
    description: str | None = None
    role: str | None = None
    system_prompt: str | None = None
    executor: ExecutorSpec | None = None


class GatewayAccess(msgspec.Struct, frozen=True):
    """Where the run reaches its MCP servers, and the token that is valid for this run."""

    url: str
    token: str
    servers: Mapping[str, str] = {}
    expires_at: str | None = None

    def __repr__(self) -> str:
        """Without the token."""
        return f"GatewayAccess({self.url!r})"


class WorkOrder(msgspec.Struct, frozen=True):
    """One attempt at one run, given to one runner."""

    run: RunShown
    attempt: int
    agent: AgentShown
    gateway: GatewayAccess
    orchestrator_url: str | None = None

    @property
    def seconds(self) -> float:
        """How long it may take."""
        spec = self.agent.executor
        return NO_SECONDS if spec is None or spec.timeout is None else spec.timeout


class Fault(msgspec.Struct, frozen=True):
    """Why a run did not succeed, with a stable code."""

    code: str
    message: str


class Ended(msgspec.Struct, frozen=True):
    """How one attempt ended. Without a state it is no longer this runner's affair, and nothing is told."""

    state: EndState | None
    attempt: int = 0
    result: Any = None
    error: Fault | None = None

    @classmethod
    def failed(cls, code: str, message: str) -> Ended:
        """It did not succeed, for this reason."""
        return cls("failed", error=Fault(code, message))


ELSEWHERE = Ended(None)
"""The run has ended already, or is somebody else's."""


class RunnerShown(msgspec.Struct, frozen=True):
    """Another runner, or this one, as the coordinator sees it."""

    id: str
    is_alive: bool


class Beat(msgspec.Struct, frozen=True):
    """The answer to a heartbeat: which runs are to be stopped, and when the next one is due."""

    stop: tuple[str, ...] = ()
    seconds: float = 15.0


class News(msgspec.Struct, frozen=True):
    """Something happened to a run."""

    what: str
    run_id: str = ""
    agent: str = ""
    session_id: str = ""


class Offer(msgspec.Struct, frozen=True):
    """A run that could be executed, as far as it must be known before it is begun."""

    run_id: str
    agent: str
    session_id: str
    is_new: bool = True
    """Whether it was pending when it was seen: nobody has executed it yet."""
