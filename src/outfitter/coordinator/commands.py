"""Which command an admin has approved: the program, its arguments, its folder, its sandbox, its variables' names.

A digest of exactly that is kept with the entry: of a stdio server, and of an agent whose runs are executed by a program
or with variables of its own (with some variables any program can be made to do anything). Another command has another
digest, and is not started before somebody approves it. Whether the program itself was replaced is noticed where it is
started (``upstream``).
"""

from __future__ import annotations

import hashlib
import json

from outfitter.catalog import Agent, Capability, ServerEntry, StdioTransport
from outfitter.errors import CommandForbidden, NotApproved, OutfitterError
from outfitter.upstream import inline_code_fault, secret_argument


def command_digest(value: ServerEntry | Capability | Agent) -> str | None:
    """What stands for the command of a stdio server or an executor; None for what starts nothing of its own."""
    parts: list[object] | None = None
    if isinstance(value, ServerEntry) and isinstance(value.server.transport, StdioTransport):
        server, transport = value.server, value.server.transport
        parts = [transport.command, transport.args, transport.cwd, server.sandbox, sorted(server.env)]
    elif isinstance(value, Agent) and value.executor is not None:
        executor = value.executor
        if executor.type == "command" or executor.env:
            parts = ["executor", executor.type, executor.command, executor.args, sorted(executor.env)]
    return None if parts is None else hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def command_faults(value: ServerEntry | Agent) -> list[OutfitterError]:
    """Why no admin could approve this command."""
    if isinstance(value, ServerEntry):
        transport = value.server.transport
        if not isinstance(transport, StdioTransport):
            return []
        return _faults(transport.command, transport.args, value.source)
    executor = value.executor
    if executor is None or executor.command is None:
        return []
    return [fault.under("executor") for fault in _faults(executor.command, executor.args, value.source)]


def _faults(command: str, args: tuple[str, ...], where: str) -> list[OutfitterError]:
    faults: list[OutfitterError] = []
    fault = inline_code_fault(command, args)
    if fault is not None:
        faults.append(CommandForbidden(fault, where=where, hint="name the program to run").under("command"))
    variable = secret_argument(args)
    if variable is not None:
        message = f"'{variable}' would stand in the arguments, where everybody on the machine can read it"
        faults.append(CommandForbidden(message, where=where, hint="pass it in env").under("args"))
    return faults


def executor_problem(agent: Agent) -> OutfitterError | None:
    """Why runs of an agent are not executed: nobody has approved the command; None when there is nothing to approve."""
    if agent.executor is None or agent.executor.is_approved:
        return None
    hint = f"an admin has to approve it: outfitter agents approve {agent.name}"
    return NotApproved(f"what executes the runs of agent '{agent.name}' is not approved", hint=hint)
