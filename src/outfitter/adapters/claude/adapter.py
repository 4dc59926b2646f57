"""Prompts evaluated with Claude Code, by the Claude Agent SDK.

The SDK runs the loop; every call of a tool goes through ``Outfit`` all the same. The SDK is imported when a prompt is
evaluated, and its program is gone when the evaluation ends, with everything it started.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from importlib.util import find_spec
from typing import ClassVar, TypeVar

from outfitter.adapters.claude.config import ClaudeAgentSDKClientConfig, Route
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
_WAYS: dict[Route, Way] = {"bridge": "bridge", "ignore": "ignore", "native": "leave", "gateway": "leave"}


@dataclass(frozen=True, slots=True)
class ClaudeAgentSDKAdapter(Adapter):
    """Evaluates prompts with Claude Code and a model of its provider, or of an endpoint that speaks Messages."""

    name: ClassVar[str] = "claude"
    model: str
    _: KW_ONLY
    client_config: ClaudeAgentSDKClientConfig = field(default_factory=ClaudeAgentSDKClientConfig)

    async def aevaluate(
        self,
        prompt: Prompt[T],
        *,
        session: Session | None = None,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[T]:
        """The response to the prompt, awaited."""
        outfit = Outfit(prompt, self._fitting(), session=session, limits=Limits.of(deadline, budget))
        if find_spec("claude_agent_sdk") is None:
            raise Unavailable("the Claude Agent SDK is not installed", hint="pip install 'outfitter[claude]'")
        from outfitter.adapters.claude.evaluation import Evaluation

        async with outfit:
            evaluation = Evaluation(self.model, self.client_config, outfit, Tally(outfit.limits, self._rounds))
            return await evaluation.go()

    @property
    def _rounds(self) -> int:
        return self.client_config.max_rounds

    def _fitting(self) -> Fitting:
        config = self.client_config
        # The gateway knows the servers by their names; what the definitions say of hosts and programs is not used.
        confine = None if config.route == "gateway" else config.isolation.confine
        bridging = BridgeOptions(config.description_limit)
        return Fitting(self.name, _WAYS[config.route], tuple(config.mcp_servers), config.pool, bridging, confine)
