"""How runs of an agent are executed: by which SDK or program, with which model, for how long.

Whether the command of a program is approved is for whoever keeps the agent; one of a file is, by being there. Nothing
is executed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from outfitter.catalog.servers import EnvValue
from outfitter.catalog.transports import StdioTransport, check_env
from outfitter.errors import Invalid

ExecutorType: TypeAlias = Literal["claude-code", "copilot", "openai", "litellm", "command"]
EXECUTORS: tuple[ExecutorType, ...] = ("claude-code", "copilot", "openai", "litellm", "command")


@dataclass(frozen=True, slots=True)
class Executor:
    """What executes the runs of an agent.

    ``timeout`` is in seconds, for a whole run. ``recover`` says that a run whose runner died is executed again; without
    it such a run is lost. ``concurrency`` is how many runs of the agent one runner executes at a time.
    """

    type: ExecutorType
    model: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, EnvValue] = field(default_factory=dict[str, EnvValue], repr=False)
    timeout: float | None = None
    recover: bool = False
    concurrency: int | None = None
    is_approved: bool = field(default=True, compare=False)
    """Whether an admin has approved the command, where that is needed."""

    def __post_init__(self) -> None:
        """Refuse what could never be executed."""
        if self.type not in EXECUTORS:
            raise Invalid(f"'type' must be one of {', '.join(EXECUTORS)}").under("type")
        self._check_command()
        if self.timeout is not None and not (math.isfinite(self.timeout) and self.timeout > 0):
            raise Invalid("a time limit is a number of seconds above 0").under("timeout")
        if self.concurrency is not None and self.concurrency < 1:
            raise Invalid("at least 1 run is executed at a time").under("concurrency")
        try:
            check_env(self.env)
        except Invalid as error:
            raise error.under("env") from None

    def _check_command(self) -> None:
        if self.type == "command":
            if not self.command:
                raise Invalid("an executor of type 'command' needs a command", hint="name the program in 'command'")
            try:
                StdioTransport(self.command, self.args)
            except Invalid as error:
                raise error.under("command") from None
            return
        for name in ("command", "args"):
            if getattr(self, name):
                raise Invalid(f"'{name}' belongs to executors of type 'command'").under(name)
