"""Runs executed by a program: one document on its standard input, events and a result on its standard output.

The program and its arguments are a list that an administrator wrote; nothing of the run stands in it, so no prompt can
become a flag. The same rules as for stdio servers say what may be started and with which variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import msgspec

from outfitter.basics import SecretRef, looks_sensitive
from outfitter.catalog import Agent, Catalog, InlineServer, MCPServer
from outfitter.errors import Invalid, OutfitterError, Refused
from outfitter.resolution import Variable, arm_each, parse_template, resolve, server_wants
from outfitter.runner.executors.hearing import Hearing
from outfitter.runner.folders import TEMPORARY, PrivateFolder, client_files
from outfitter.runner.orders import Ended, ExecutorSpec, WorkOrder
from outfitter.runner.ports import Report
from outfitter.runner.processes import Exit, Program, run_program
from outfitter.runner.texts import last_words
from outfitter.upstream import Launch, SpawnRules, fetch_supply, make_providers, prepare_launch, secrets_folder

_NAME = "executor"
_SHORTEST_SECRET, _SHORTEST_LINE = 4, 16


@dataclass(frozen=True, slots=True)
class CommandExecutor:
    """Starts the program that the agent's document names. ``environment`` is what its variables are filled from."""

    folder: Path
    """Where each run gets a private folder while it lasts."""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    rules: SpawnRules = field(default_factory=SpawnRules)

    async def execute(self, order: WorkOrder, report: Report) -> Ended:
        """How the run ended; the program is gone by then, with everything it started."""
        spec = order.agent.executor
        if spec is None or not spec.command:
            return Ended.failed("no_command", f"the executor of agent '{order.agent.name}' names no command")
        try:
            launch = await anyio.to_thread.run_sync(self.launch, spec, order.agent.name)
        except OutfitterError as error:
            return Ended.failed(error.code, str(error))
        return await self.run(order, launch, document_of(order), report)

    async def run(self, order: WorkOrder, launch: Launch, document: Mapping[str, Any], report: Report) -> Ended:
        """Have a program execute the order, whoever chose it."""
        hearing = Hearing(report, _secrets(order, launch))
        with PrivateFolder(self.folder, order.run.id) as folder:
            files = client_files(order, folder)
            own = {name: value for name, value in launch.env.items() if name in TEMPORARY and name in _written(order)}
            env = {**launch.env, **files, **own}
            program = Program(order.run.id, launch.argv, env, launch.cwd)
            try:
                done = await run_program(program, msgspec.json.encode(document), hearing.hear)
                return _ended(done, hearing.result(), (*hearing.hidden, *launch.hidden))
            except OutfitterError as error:
                return Ended.failed(error.code, str(error))

    def launch(self, spec: ExecutorSpec, agent: str) -> Launch:
        """What to start, with this machine's variables and secrets filled in; an error says why it may not be."""
        try:
            server = MCPServer.stdio(_NAME, spec.command or "", spec.args, env=_variables(spec.env))
            plan = resolve(Agent(_NAME, servers={_NAME: InlineServer(server)}), Catalog())
            wants = server_wants(plan.servers[_NAME])
            providers = make_providers(self.environment, secrets_folder(self.environment))
            armed = arm_each(plan, fetch_supply(wants, self.environment, providers))[_NAME]
            if isinstance(armed, OutfitterError):
                raise armed
            return prepare_launch(armed, self.rules, self.environment)
        except OutfitterError as error:
            found = error.problems[0] if isinstance(error, Refused) and len(error.problems) == 1 else error
            found.where = f"agent '{agent}', its executor"
            raise found from None


def document_of(order: WorkOrder) -> dict[str, Any]:
    """What a program is told about its run."""
    run, gateway = order.run, order.gateway
    return {
        "run_id": run.id,
        "session_id": run.session_id,
        "parent_session_id": run.parent_session_id,
        "agent": order.agent.name,
        "prompt": run.prompt,
        "system_prompt": order.agent.system_prompt,
        "mcp": {"url": gateway.url, "servers": dict(gateway.servers), "token": gateway.token},
        "orchestrator_url": order.orchestrator_url,
    }


def _secrets(order: WorkOrder, launch: Launch) -> tuple[str, ...]:
    """What no event and no result may show: the token, the orchestrator's address, and variables that are secret."""
    values = {launch.env[name] for name, value in _written(order).items() if _is_secret(name, value)}
    lines = {line for value in values for line in value.splitlines() if len(line) >= _SHORTEST_LINE}
    found = {order.gateway.token, order.orchestrator_url or "", *values, *lines}
    return tuple(sorted((text for text in found if len(text) >= _SHORTEST_SECRET), key=len, reverse=True))


def _is_secret(name: str, value: object) -> bool:
    """Whether a variable is one by its name, by what it is filled from, or because its document says so."""
    if not isinstance(value, str):
        return True
    parts = (part for part in parse_template(value) if isinstance(part, Variable))
    return looks_sensitive(name) or any(looks_sensitive(part.name) for part in parts)


def _written(order: WorkOrder) -> Mapping[str, Any]:
    """The variables as the agent's document has them."""
    return {} if order.agent.executor is None else order.agent.executor.env


def _variables(written: Mapping[str, Any]) -> dict[str, str | SecretRef]:
    return {name: _variable(name, value) for name, value in written.items()}


def _variable(name: str, value: object) -> str | SecretRef:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if list(fields) == ["$secret"] and isinstance(fields["$secret"], str):
            return SecretRef.parse(fields["$secret"])
    raise Invalid(f"the variable {name!a} is neither a text nor a secret")


def _ended(done: Exit, result: object, hidden: tuple[str, ...]) -> Ended:
    if done.code == 0:
        return Ended("done", result=result)
    how = f"exited with code {done.code}" if done.code > 0 else f"was killed by signal {-done.code}"
    words = last_words(done.stderr, hidden)
    return Ended.failed("executor_failed", f"the program {how}{f'; stderr: {words}' if words else ''}")
