"""One prompt evaluated by Copilot's program: started, told, listened to, stopped.

Owner: the task that calls ``go``. The program runs the loop and tells what happens by events (``listening``); calls
come in as hooks and as calls of tools of this process (``calls``). The limits are held wherever something would be
begun, and by the time of the whole.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup
from copilot import CopilotClient, CopilotSession, RuntimeConnection, Tool, ToolInvocation, ToolResult

from outfitter.adapters.conversation import ToolUse
from outfitter.adapters.copilot.calls import Calls
from outfitter.adapters.copilot.config import NAME, CopilotClientConfig
from outfitter.adapters.copilot.faults import keys_of, sdk_errors, understood
from outfitter.adapters.copilot.listening import Ear
from outfitter.adapters.copilot.peek import Peeked, joined, peek
from outfitter.adapters.copilot.place import Place, private_place
from outfitter.adapters.copilot.setup import TASK, agents_of, check_standing, session_options
from outfitter.adapters.forms import Json, arguments_form, output_form
from outfitter.adapters.outfit import Outfit
from outfitter.adapters.reading import items, read_arguments
from outfitter.adapters.response import PromptResponse, StopReason
from outfitter.adapters.tally import Tally
from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, InvalidArguments, OutfitterError, UpstreamTimeout

T = TypeVar("T")
_GOODBYE_SECONDS = 10.0


class Evaluation(Generic[T]):
    """One evaluation while it goes on."""

    def __init__(self, model: str, config: CopilotClientConfig, outfit: Outfit[T], tally: Tally) -> None:
        """Nothing is started yet."""
        self.model = model
        self.config = config
        self.outfit = outfit
        self.tally = tally
        self.where = f"{NAME}, model '{model}'"
        self._keys = keys_of(config.provider)
        self._calls = Calls(outfit, give_up=self._give_up)
        self._ear = Ear(tally, self._calls)
        self._session: CopilotSession | None = None
        self._fault: OutfitterError | None = None
        self._response: PromptResponse[T] | None = None

    async def go(self) -> PromptResponse[T]:
        """The response to the outfit's prompt; an OutfitterError when Copilot or its provider fails."""
        if (reached := self.tally.reached()) is not None:
            return self._ended(*reached)
        seconds = self.outfit.limits.seconds
        with anyio.move_on_after(self.config.timeout if seconds is None else seconds):
            await self._run()
        if self._fault is not None:
            raise self._fault
        if self._response is not None:
            return self._response
        if seconds is not None:
            return self._ended(StopReason.DEADLINE, "Copilot did not come to an end before the deadline")
        message = f"Copilot did not come to an end in {self.config.timeout:.0f} s"
        raise UpstreamTimeout(message, where=NAME, hint="CopilotClientConfig(timeout=…), or give a deadline")

    async def _run(self) -> None:
        async with anyio.create_task_group() as group:
            try:
                self._response = await self._evaluated(group)
            except OutfitterError as fault:
                self._fault = self._fault or fault
            group.cancel_scope.cancel()

    def _give_up(self, fault: OutfitterError) -> None:
        """Whatever happens now, the evaluation ends with this."""
        self._fault = fault
        self._ear.woken.set()

    # ── the program ──

    async def _evaluated(self, group: TaskGroup) -> PromptResponse[T]:
        config = self.config
        servers = self._reached(self.outfit.servers)
        of_agents = [self._reached(agent.mcp_servers) for agent in config.agents if agent.mcp_servers]
        own = [tool.name for tool in self.outfit.tools()]
        peeked = await peek(joined(servers, *of_agents), self.outfit.fitting.bridging, own)
        self._calls.open(group, peeked.tools, free=[TASK] if config.agents else (), may_go_on=self._ear.may_go_on)
        async with private_place(config) as place, self._started(place, peeked) as client:
            told = peeked.told.servers
            options = session_options(config, {each.name: told[each.name] for each in servers if each.name in told})
            options["custom_agents"] = agents_of(config.agents, [*own, *peeked.tools], told)
            options["hooks"] = self._calls.hooks(config.hooks)
            with sdk_errors("opening a session", self._keys):
                session = self._session = await client.create_session(
                    model=self.model,
                    tools=self._tools(),
                    on_event=self._ear.hear,
                    **options,
                )
                standing = [server for server in servers if server.name in told]
                await check_standing(session, standing, config.start_seconds)
            return await self._answered(session, peeked.missing)

    def _reached(self, servers: Sequence[MCPServer]) -> tuple[MCPServer, ...]:
        """The servers as Copilot reaches them; none where they are not Copilot's business."""
        if self.outfit.fitting.mcp != "leave":
            return ()
        return tuple(servers) if self.config.gateway is None else self.config.gateway.through(servers)

    @asynccontextmanager
    async def _started(self, place: Place, peeked: Peeked) -> AsyncGenerator[CopilotClient]:
        client = CopilotClient(
            connection=RuntimeConnection.for_stdio(path=place.program),
            env={**place.env, **peeked.told.env},
            working_directory=place.cwd,
            base_directory=place.home,
            use_logged_in_user=self.config.provider is None,
            log_level="none",
            mode="empty",
        )
        try:
            with sdk_errors("starting its program", self._keys), anyio.fail_after(self.config.start_seconds):
                await client.start()
            yield client
        finally:
            with anyio.CancelScope(shield=True):
                await _stopped(client)

    # ── the conversation ──

    async def _answered(self, session: CopilotSession, missing: str) -> PromptResponse[T]:
        said, is_repaired = "\n\n".join(filter(None, (self.outfit.text, missing))), False
        while True:
            if (reached := await self._say(session, said)) is not None:
                return self._ended(*reached)
            form = self.outfit.rendered.structured_output
            if form is None:
                return self._ended(StopReason.DONE)
            try:
                return self._ended(StopReason.DONE, output=form.parse(self._ear.text))
            except InvalidArguments as fault:
                if is_repaired:
                    return self._ended(StopReason.INVALID_OUTPUT, fault.message)
                is_repaired = True
                said = f"{fault.message}. Answer again, with the JSON that was asked for and nothing else."

    async def _say(self, session: CopilotSession, said: str) -> tuple[StopReason, str] | None:
        """Have Copilot work on a message until it rests; why it was stopped, if it was."""
        ear, form = self._ear, self.outfit.rendered.structured_output
        ear.begin()
        with sdk_errors("being told the prompt", self._keys):
            await session.send(said, response_schema=None if form is None else _strict(output_form(form)))
        await ear.woken.wait()
        if self._fault is not None or ear.stopped is not None:
            with sdk_errors("being stopped", self._keys), anyio.move_on_after(_GOODBYE_SECONDS):
                await session.abort()
                await ear.resting.wait()
        if self._fault is not None:
            raise self._fault
        if ear.stopped is not None:
            return ear.stopped
        if ear.error is not None and ear.is_refused:
            return StopReason.REFUSED, "the model's provider withheld the answer"
        if ear.error is not None:
            raise understood(ear.error, where=self.where, keys=self._keys)
        return None

    def _ended(self, reason: StopReason, detail: str = "", *, output: Any = None) -> PromptResponse[T]:  # noqa: ANN401 - the form's own type
        made, tally = tuple(self.outfit.made), self.tally
        return PromptResponse(self._ear.text, output, made, tally.usage, tally.rounds, reason, detail)

    # ── tools of this process ──

    def _tools(self) -> list[Tool]:
        return [
            Tool(
                tool.name,
                tool.description,
                self._call,
                arguments_form(tool.input_schema),
                overrides_built_in_tool=True,
                skip_permission=True,
                defer="never",
            )
            for tool in self.outfit.tools()
        ]

    async def _call(self, invocation: ToolInvocation) -> ToolResult:
        if self._ear.may_go_on() is not None:
            await anyio.sleep_forever()  # an answer would have the model asked again; it is being stopped
        shown = self.outfit.rendered
        use = ToolUse(invocation.tool_call_id, invocation.tool_name, read_arguments(invocation.arguments))
        answer = await self._calls.call(use)
        told = answer.text
        if self.outfit.rendered is not shown and self._session is not None:
            self._check_opened(shown.mcps)
            await self._session.set_tools(self._tools())
            told = f"{told}\n\nThe prompt reads now:\n\n{self.outfit.rendered.text}"
        return ToolResult(told, "success" if answer.result.success else "failure")

    def _check_opened(self, before: Sequence[MCPServer]) -> None:
        late = [server.name for server in self.outfit.rendered.mcps if server not in before]
        if late and self.outfit.fitting.mcp == "leave":
            message = f"an opened section brings servers ({', '.join(late)}), which Copilot cannot connect any more"
            fault = Invalid(message, where=NAME, hint="route='bridge', or show the section from the beginning")
            self._give_up(fault)
            raise fault


async def _stopped(client: CopilotClient) -> None:
    """Have the program gone, by a word or by force."""
    process: Any = getattr(client, "_cli_process", None)
    with anyio.move_on_after(_GOODBYE_SECONDS) as scope:
        try:
            await client.stop()
        except Exception:  # noqa: BLE001 - whatever it says, it is ended next
            scope.cancel()
    if scope.cancelled_caught or scope.cancel_called:
        await client.force_stop()
    for pipe in (getattr(process, name, None) for name in ("stdin", "stdout", "stderr")):
        if pipe is not None:  # the SDK leaves them open, which Python warns of
            pipe.close()


def _strict(form: Json) -> Json | None:
    """The form, if it is one that Copilot may ask for: it always asks for a strict one. The prompt has it in words."""
    named: Json = form.get("properties") or {}
    defined: Json = form.get("$defs") or {}
    is_open = form.get("additionalProperties") is not False or set(form.get("required") or ()) != set(named)
    if form.get("type") == "object" and is_open:
        return None
    parts = items([*named.values(), *defined.values(), form.get("items")])
    return None if any(_strict(part) is None for part in parts) else form
