"""Prompts evaluated with GitHub Copilot, by its SDK and its program.

The program runs the loop; every call of a tool goes through ``Outfit`` all the same. The SDK is imported when a prompt
is evaluated, and the program is gone when the evaluation ends.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import ClassVar, TypeVar

from anyio import to_thread

from outfitter.adapters.copilot.config import NAME, CopilotClientConfig, Route
from outfitter.adapters.outfit import Fitting, Limits, Outfit, Way
from outfitter.adapters.port import Adapter
from outfitter.adapters.response import PromptResponse
from outfitter.adapters.tally import Tally
from outfitter.bridge import BridgeOptions
from outfitter.errors import Unavailable
from outfitter.prompt import Prompt
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline

T = TypeVar("T")
_EVALUATION = "outfitter.adapters.copilot.evaluation"
_WAYS: dict[Route, Way] = {"bridge": "bridge", "ignore": "ignore", "native": "leave", "gateway": "leave"}


@dataclass(frozen=True, slots=True)
class CopilotAdapter(Adapter):
    """Evaluates prompts with Copilot, whose program runs the loop. ``route`` says who connects the MCP servers.

    * ``bridge``: Outfitter, in this process; Copilot learns no command, header or secret. The default: a prompt has the
      same tools, names, checks and limits here as with every other adapter.
    * ``native``: Copilot itself. Its hooks keep every call on the one path of all calls (policies, events,
      transactions). Servers of a section that is opened later cannot be connected in this way.
    * ``gateway``: Copilot connects to an Outfitter gateway, which knows the servers by their names.
    * ``ignore``: nobody.
    """

    name: ClassVar[str] = NAME
    model: str
    _: KW_ONLY
    client_config: CopilotClientConfig = field(default_factory=CopilotClientConfig)
    route: Route = "bridge"

    def __post_init__(self) -> None:
        """Refuse what this adapter cannot do."""
        self.client_config.check(self.route)

    async def aevaluate(
        self,
        prompt: Prompt[T],
        *,
        session: Session | None = None,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[T]:
        """The response to the prompt, awaited."""
        config = self.client_config
        bridging = BridgeOptions(config.description_limit)
        fitting = Fitting(self.name, _WAYS[self.route], tuple(config.mcp_servers), config.pool, bridging)
        outfit = Outfit(prompt, fitting, session=session, limits=Limits.of(deadline, budget))
        if find_spec("copilot") is None:
            raise Unavailable("the GitHub Copilot SDK is not installed", hint="pip install 'outfitter[copilot]'")
        found = await to_thread.run_sync(import_module, _EVALUATION)  # the SDK takes seconds, once
        async with outfit:
            tally = Tally(outfit.limits, config.max_rounds)
            return await found.Evaluation(self.model, config, outfit, tally).go()
