"""Prompts evaluated with any provider that LiteLLM speaks to: ``anthropic/…``, ``gemini/…``, ``ollama/…`` and more.

LiteLLM is imported when a prompt is evaluated, without a look at the network. MCP servers are bridged: the provider
never connects to one and never sees a header or secret of one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from types import ModuleType
from typing import Any, ClassVar, TypeVar, cast

from anyio import to_thread

from outfitter.adapters.chat import CHAT
from outfitter.adapters.exchange import ApiConversation
from outfitter.adapters.forms import Json
from outfitter.adapters.litellm.library import STAYS, load
from outfitter.adapters.loop import DEFAULT_ROUNDS, converse
from outfitter.adapters.outfit import Fitting, Limits, McpMode, Outfit
from outfitter.adapters.port import Adapter
from outfitter.adapters.reading import items
from outfitter.adapters.response import PromptResponse
from outfitter.adapters.servers import check_fitting
from outfitter.bridge import BridgeOptions, McpConnectionPool
from outfitter.catalog import MCPServer
from outfitter.prompt import Prompt
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LiteLLMClientConfig:
    """How the provider is reached; what is None is LiteLLM's own default or the provider's environment variable."""

    api_base: str | None = None
    api_key: str | None = field(default=None, repr=False)
    api_version: str | None = None
    max_retries: int | None = None
    """How often a request is repeated, where LiteLLM reaches the provider by OpenAI's SDK."""
    timeout: float | None = None
    """Seconds for one request."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent to the provider with every request."""

    def options(self) -> dict[str, Any]:
        """What is not left to LiteLLM."""
        known = {
            "api_base": self.api_base,
            "api_key": self.api_key,
            "api_version": self.api_version,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
            "extra_headers": dict(self.headers) or None,
        }
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LiteLLMAdapter(Adapter):
    """Evaluates prompts with a model of any provider; ``model`` is written as LiteLLM writes it, ``openai/gpt-5``.

    ``mcp_servers`` are connected besides those of the prompt, and win over them. ``params`` go with every request.
    """

    name: ClassVar[str] = "litellm"
    model: str
    _: KW_ONLY
    client_config: LiteLLMClientConfig = field(default_factory=LiteLLMClientConfig)
    mcp: McpMode = "bridge"
    mcp_servers: Sequence[MCPServer] = ()
    pool: McpConnectionPool | None = field(default=None, repr=False)
    """Where connections are shared; without one, each evaluation connects and disconnects its servers."""
    description_limit: int | None = None
    max_rounds: int = DEFAULT_ROUNDS
    params: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def __post_init__(self) -> None:
        """Refuse what this adapter cannot do."""
        check_fitting(self.mcp, self.mcp_servers, self.name)

    async def aevaluate(
        self,
        prompt: Prompt[T],
        *,
        session: Session | None = None,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[T]:
        """The response to the prompt, awaited."""
        library = await to_thread.run_sync(load)  # it takes seconds, once
        bridging = BridgeOptions(self.description_limit)
        fitting = Fitting(self.name, self.mcp, tuple(self.mcp_servers), self.pool, bridging)
        outfit = Outfit(prompt, fitting, session=session, limits=Limits.of(deadline, budget))
        params = {**self.client_config.options(), **self.params}
        async with STAYS.stay(library), outfit:
            conversation = ApiConversation(self.model, partial(self._send, library), CHAT, params)
            return await converse(outfit, conversation, max_rounds=self.max_rounds)

    async def _send(self, library: ModuleType, request: Json) -> Json:
        from outfitter.adapters.litellm.faults import understood

        faults = (library.exceptions.openai.OpenAIError, *library.exceptions.LITELLM_EXCEPTION_TYPES)
        try:
            answer = await library.acompletion(**request)
        except faults as error:
            # The cause stays out: its text may quote the key.
            where = f"{self.name}, model '{self.model}'"
            raise understood(error, where=where, key=self.client_config.api_key) from None
        return _as_sent(cast("Json", answer.to_dict()))


def _as_sent(answer: Json) -> Json:
    """LiteLLM keeps a refusal apart, with the fields that only one provider has."""
    for choice in items(answer.get("choices")):
        message: Json = choice.get("message") or {}
        own: Json = message.get("provider_specific_fields") or {}
        message.setdefault("refusal", own.get("refusal"))
    return answer
