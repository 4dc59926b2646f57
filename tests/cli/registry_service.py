"""A real service in a process of its own: the API of a state folder, which notes what it is asked.

Run as a module with the folder. It prints one line of JSON (its URL and the first admin token) and ends with its input.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import uvicorn

from outfitter.app import Settings, budgets_here, lone_probe
from outfitter.coordinator import Office, make_api, open_access, open_coordinator
from outfitter.storage import KeyRing, SqliteAudit, open_database

ASKED = "asked.txt"


async def serve(state: Path) -> None:
    """Serve until standard input ends."""
    async with (
        open_database(f"sqlite:///{state / 'registry.sqlite'}", KeyRing(state / "registry.keys")) as database,
        open_coordinator(database, audit=SqliteAudit(state / "audit.sqlite")) as coordinator,
        open_access(database.tokens) as access,
    ):
        probe = lone_probe(Settings(state=state), os.environ, lambda: coordinator.live.catalog)
        budgets = budgets_here(Settings(state=state))
        office = Office(coordinator, access, probe=probe, budgets=budgets)
        api = make_api(office)

        async def noted(scope: dict[str, Any], receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
            with (state / ASKED).open("a") as file:
                file.write(f"{scope['method']} {scope['path']}\n")
            await api(scope, receive, send)

        token = await access.tokens.first_admin()
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            bound.listen()
            told = {"url": f"http://127.0.0.1:{bound.getsockname()[1]}", "token": token}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
            options = uvicorn.Config(
                cast("Any", noted), http="httptools", lifespan="off", log_level="warning", ws="none", access_log=True
            )
            server = uvicorn.Server(options)
            async with anyio.create_task_group() as group:
                group.start_soon(server.serve, [bound])
                await anyio.to_thread.run_sync(sys.stdin.read)
                office.closing.set()
                server.should_exit = True


if __name__ == "__main__":
    anyio.run(serve, Path(sys.argv[1]))
