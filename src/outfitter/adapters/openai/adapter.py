"""Prompts evaluated with OpenAI's models, or with anything that speaks one of OpenAI's two APIs.

The SDK is imported when a prompt is evaluated. Requests are repeated by the SDK, as it is configured. MCP servers are
bridged: the provider never connects to one and never sees a header or secret of one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from outfitter.adapters.chat import CHAT
from outfitter.adapters.exchange import ApiConversation
from outfitter.adapters.forms import Json
from outfitter.adapters.loop import DEFAULT_ROUNDS, converse
from outfitter.adapters.openai.responses import RESPONSES
from outfitter.adapters.outfit import Fitting, Limits, McpMode, Outfit
from outfitter.adapters.port import Adapter
from outfitter.adapters.reading import read_answer
from outfitter.adapters.response import PromptResponse
from outfitter.adapters.servers import check_fitting
from outfitter.bridge import BridgeOptions, McpConnectionPool
from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, NeedsAuth, Unavailable
from outfitter.prompt import Prompt
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
_APIS = ("responses", "chat")
_READY = ("input", "messages", "tools")


@dataclass(frozen=True, slots=True)
class OpenAIClientConfig:
    """How the SDK's client is made; what is None is the SDK's own default or its environment variable."""

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    max_retries: int | None = None
    timeout: float | None = None
    """Seconds for one request."""

    def options(self) -> dict[str, Any]:
        """What is not left to the SDK."""
        known = {
            "base_url": self.base_url,
            "api_key": self.api_key,
            "max_retries": self.max_retries,
            "timeout": self.timeout,
        }
        return {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True, slots=True)
class OpenAIAdapter(Adapter):
    """Evaluates prompts with a model behind the Responses API, or Chat Completions with ``api="chat"``.

    ``mcp_servers`` are connected besides those of the prompt, and win over them. A ``client`` of yours is used as it
    is and stays open; it belongs to one loop, so it is for ``aevaluate``. ``params`` go with every request.
    """

    name: ClassVar[str] = "openai"
    model: str
    _: KW_ONLY
    api: Literal["responses", "chat"] = "responses"
    client_config: OpenAIClientConfig = field(default_factory=OpenAIClientConfig)
    client: AsyncOpenAI | None = field(default=None, repr=False)
    mcp: McpMode = "bridge"
    mcp_servers: Sequence[MCPServer] = ()
    pool: McpConnectionPool | None = field(default=None, repr=False)
    """Where connections are shared; without one, each evaluation connects and disconnects its servers."""
    description_limit: int | None = None
    max_rounds: int = DEFAULT_ROUNDS
    params: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    def __post_init__(self) -> None:
        """Refuse what this adapter cannot do."""
        if self.api not in _APIS:
            raise Invalid(f"no API '{self.api}'", where="OpenAIAdapter", hint=f"one of {', '.join(_APIS)}")
        check_fitting(self.mcp, self.mcp_servers, self.name)

    def check_blocking(self) -> None:
        """Refuse a client that belongs to somebody's loop."""
        if self.client is not None:
            raise Invalid("a client of your own belongs to your loop", where=self.name, hint="await aevaluate(…)")

    async def aevaluate(
        self,
        prompt: Prompt[T],
        *,
        session: Session | None = None,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[T]:
        """The response to the prompt, awaited."""
        bridging = BridgeOptions(self.description_limit)
        fitting = Fitting(self.name, self.mcp, tuple(self.mcp_servers), self.pool, bridging)
        outfit = Outfit(prompt, fitting, session=session, limits=Limits.of(deadline, budget))
        async with self._connected() as client, outfit:
            form = CHAT if self.api == "chat" else RESPONSES
            conversation = ApiConversation(self.model, partial(self._send, client), form, self.params)
            return await converse(outfit, conversation, max_rounds=self.max_rounds)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AsyncOpenAI]:
        if self.client is not None:
            yield self.client
            return
        async with self._made() as client:
            yield client

    def _made(self) -> AsyncOpenAI:
        try:
            import openai
        except ImportError:
            raise Unavailable("the OpenAI SDK is not installed", hint="pip install 'outfitter[openai]'") from None
        try:
            return openai.AsyncOpenAI(**self.client_config.options())
        except openai.OpenAIError:
            hint = "set OPENAI_API_KEY, or give OpenAIClientConfig(api_key=…)"
            raise NeedsAuth("there is no API key for the model provider", where=self.name, hint=hint) from None

    async def _send(self, client: AsyncOpenAI, request: Json) -> Json:
        import openai

        from outfitter.adapters.openai.faults import understood

        api: Any = client.chat.completions if self.api == "chat" else client.responses
        where = f"{self.name}, model '{self.model}'"
        try:
            # The plain JSON is read here: making the SDK's objects of it would cost more than all the rest.
            answer = await api.with_raw_response.create(**_as_body(request))
        except openai.OpenAIError as error:
            # The cause stays out: its text may quote the key.
            raise understood(error, where=where, key=client.api_key) from None
        return read_answer(answer.content, where)


def _as_body(request: Json) -> Json:
    """The request with all that has its form already where the SDK does not look at it, item by item, every turn."""
    ready = {name: request[name] for name in _READY if name in request}
    needed: Json = {"messages": []} if "messages" in ready else {}
    rest = {name: value for name, value in request.items() if name not in ready}
    return {**needed, **rest, "extra_body": {**ready, **rest.get("extra_body", {})}}
