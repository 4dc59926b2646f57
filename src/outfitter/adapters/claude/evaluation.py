"""One evaluation with Claude Code: the client, what its hooks are told, and the response.

Owner of everything is the task that calls ``go``. The hooks and the tools of ``wink`` run in tasks of the SDK, which
end with the client; calls that Claude Code makes itself run in a group of this task. A failure in any of them is kept
in ``_failure`` and ends the conversation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar, cast

import anyio
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    ToolResultBlock,
    UserMessage,
)

from outfitter.adapters.claude.abroad import Abroad, cli_name
from outfitter.adapters.claude.config import ClaudeAgentSDKClientConfig
from outfitter.adapters.claude.endings import read_ending
from outfitter.adapters.claude.faults import is_foreign, of_program, of_result
from outfitter.adapters.claude.guests import Guests
from outfitter.adapters.claude.hooks import Hooks
from outfitter.adapters.claude.place import Place, private_place
from outfitter.adapters.claude.tree import end_all, tree_of
from outfitter.adapters.claude.turns import Turns
from outfitter.adapters.claude.wink import WINK, wink_server
from outfitter.adapters.conversation import ToolUse
from outfitter.adapters.forms import output_form
from outfitter.adapters.outfit import Outfit
from outfitter.adapters.response import PromptResponse, StopReason
from outfitter.adapters.tally import Tally
from outfitter.errors import OutfitterError, Unavailable
from outfitter.prompt import OpenedSections
from outfitter.tools import Tool

T = TypeVar("T")
_UNREAD = "__unparsedToolInput"
_LINES = 50


class Evaluation(Generic[T]):
    """One prompt while it is evaluated."""

    def __init__(self, model: str, config: ClaudeAgentSDKClientConfig, outfit: Outfit[T], tally: Tally) -> None:
        """Nothing is started yet."""
        self._model = model
        self._config = config
        self._outfit = outfit
        self._turns = Turns(tally)
        self._scope = anyio.CancelScope()
        self._failure: OutfitterError | None = None
        self._words: deque[str] = deque(maxlen=_LINES)
        self._keys: tuple[str, ...] = ()

    @property
    def _where(self) -> str:
        return f"claude, model '{self._model}'"

    # ── its course ──

    async def go(self) -> PromptResponse[T]:
        """The response; an OutfitterError when Claude Code or its provider fails."""
        reached = self._turns.tally.reached()
        if reached is not None:
            return self._ended(*reached)
        with anyio.move_on_after(self._outfit.limits.seconds):
            async with private_place(self._config) as place:
                return await self._in(place)
        return self._ended(StopReason.DEADLINE, "the model did not answer before the deadline")

    async def _in(self, place: Place) -> PromptResponse[T]:
        self._keys = tuple(place.env.get(name, "") for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"))
        response: PromptResponse[T] | None = None
        async with anyio.create_task_group() as group:
            guests = Guests(self._outfit, group)
            abroad = Abroad(self._config, place, guests)
            self._hooks = Hooks(self._outfit, self._turns, guests, abroad)
            self._abroad = abroad
            with self._scope:
                try:
                    response = await self._converse(place)
                except OutfitterError as error:  # not through the group, which would wrap it
                    self._failure = self._failure or error
            group.cancel_scope.cancel()
        if self._failure is not None:
            raise self._failure
        return cast("PromptResponse[T]", response)

    def _fail(self, error: OutfitterError) -> None:
        self._failure = self._failure or error
        self._scope.cancel()

    async def _converse(self, place: Place) -> PromptResponse[T]:
        try:
            async with self._running(place) as client:
                missing = await self._abroad.connect(client, self._outfit.servers)
                self._outfit.toolbox()  # two tools of one name are found now, not in the middle
                await client.query("\n\n".join(filter(None, (self._outfit.text, missing))))
                return await self._listen(client)
        except Exception as error:
            if not is_foreign(error):
                raise
            # The cause stays out: its text may hold the environment.
            raise of_program(error, last_words=self._words, where=self._where, keys=self._keys) from None

    @asynccontextmanager
    async def _running(self, place: Place) -> AsyncGenerator[ClaudeSDKClient]:
        """The client, connected; when this is left, no process of it is."""
        client = ClaudeSDKClient(self._options(place))
        self._hooks.client = client
        is_over = False
        try:
            await client.connect()
            yield client
            is_over = True
        finally:
            processes = tree_of(place.pid)
            with anyio.CancelScope(shield=True):
                if not is_over:  # in the middle of something it would take seconds to leave by itself
                    await end_all(processes)
                await client.disconnect()
                await end_all(processes)

    def _options(self, place: Place) -> ClaudeAgentOptions:
        form = self._outfit.rendered.structured_output
        # Servers are held in its bounds one by one; these hold the commands of Claude Code's own tools.
        sandbox = self._config.isolation.settings() if self._config.tools else None
        return ClaudeAgentOptions(
            model=self._model,
            system_prompt=self._config.system_prompt,
            tools=list(self._config.tools),
            mcp_servers=cast("Any", {WINK: wink_server(self._list_tools, self._call_tool)}),
            strict_mcp_config=True,
            setting_sources=[],
            verbatim_prompts=True,
            include_partial_messages=True,
            hooks=self._hooks.table(),
            output_format=None if form is None else {"type": "json_schema", "schema": output_form(form)},
            sandbox=cast("Any", sandbox),
            env=dict(place.env),
            cwd=place.cwd,
            cli_path=place.program,
            stderr=self._words.append,
        )

    # ── what the server in this process is asked ──

    def _list_tools(self) -> tuple[Tool[Any, Any], ...]:
        self._hooks.listed = self._outfit.tools()
        return self._hooks.listed

    async def _call_tool(self, name: str, arguments: dict[str, Any], call_id: str) -> tuple[str, bool]:
        outfit = self._outfit
        try:
            answer = await outfit.call(ToolUse(call_id, name, arguments))
            told = answer.text
            if answer.result.success and isinstance(answer.result.value, OpenedSections):
                missing = await self._abroad.connect(self._hooks.connected, outfit.servers)
                outfit.toolbox()  # as in the beginning: no two tools of one name
                parts = (answer.result.message, f"It reads now:\n\n{outfit.rendered.text}", answer.note or missing)
                told = "\n\n".join(filter(None, parts))
        except OutfitterError as error:
            self._fail(error)
            return str(error), False
        return told, answer.result.success

    # ── what comes back ──

    async def _listen(self, client: ClaudeSDKClient) -> PromptResponse[T]:
        async for message in client.receive_messages():
            self._turns.hear(message)
            if isinstance(message, UserMessage):
                await self._record_unmade(message)
            elif isinstance(message, ResultMessage):
                return self._response(message)
        raise Unavailable("Claude Code ended without an answer", where=self._where)

    async def _record_unmade(self, message: UserMessage) -> None:
        """Leave the event of calls that Claude Code refused by itself: no hook was told of them."""
        blocks = message.content if isinstance(message.content, list) else []
        for block in blocks:
            if not isinstance(block, ToolResultBlock) or not block.is_error or block.tool_use_id in self._hooks.seen:
                continue
            asked = self._turns.calls.get(block.tool_use_id)
            if asked is None:
                continue
            unread = asked.input.get(_UNREAD)
            arguments = str(unread.get("raw")) if isinstance(unread, dict) else asked.input  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
            use = ToolUse(asked.id, asked.name.removeprefix(cli_name(WINK, "")), arguments)
            if isinstance(arguments, str) or use.name not in self._outfit.toolbox().tools:
                await self._outfit.call(use)  # refused there too, with its event

    def _response(self, result: ResultMessage) -> PromptResponse[T]:
        if self._hooks.stopped is not None:
            return self._ended(*self._hooks.stopped)
        ending = read_ending(result, self._turns, self._outfit.rendered.structured_output)
        if ending is None:
            raise of_result(result, where=self._where, keys=self._keys)
        return self._ended(ending.reason, ending.detail, text=ending.text, output=ending.output)

    def _ended(
        self,
        reason: StopReason,
        detail: str = "",
        *,
        text: str | None = None,
        output: Any = None,  # noqa: ANN401 - the form's own type
    ) -> PromptResponse[T]:
        tally, order = self._turns.tally, list(self._turns.calls)
        place = {call_id: index for index, call_id in enumerate(order)}
        made = sorted(self._outfit.made, key=lambda call: place.get(call.call_id, len(order)))
        said = self._turns.text if text is None else text
        return PromptResponse(said, output, tuple(made), tally.usage, tally.rounds, reason, detail)
