"""Which command an admin has approved: the program, its arguments, its folder, its sandbox, its variables' names.

A digest of exactly that is kept with the entry. Another command has another digest, and is not started before somebody
approves it. Whether the program itself was replaced is noticed where it is started (``upstream``).
"""

from __future__ import annotations

import hashlib
import json

from outfitter.catalog import ServerEntry, StdioTransport
from outfitter.errors import CommandForbidden, OutfitterError
from outfitter.upstream import inline_code_fault, secret_argument


def command_digest(entry: ServerEntry) -> str | None:
    """What stands for the command of a stdio server; None for a remote one."""
    transport = entry.server.transport
    if not isinstance(transport, StdioTransport):
        return None
    parts = [transport.command, transport.args, transport.cwd, entry.server.sandbox, sorted(entry.server.env)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def command_faults(entry: ServerEntry) -> list[OutfitterError]:
    """Why no admin could approve this command."""
    transport = entry.server.transport
    if not isinstance(transport, StdioTransport):
        return []
    faults: list[OutfitterError] = []
    fault = inline_code_fault(transport.command, transport.args)
    if fault is not None:
        faults.append(CommandForbidden(fault, where=entry.source, hint="name the program to run").under("command"))
    variable = secret_argument(transport.args)
    if variable is not None:
        message = f"'{variable}' would stand in the arguments, where everybody on the machine can read it"
        faults.append(CommandForbidden(message, where=entry.source, hint="pass it in env").under("args"))
    return faults
