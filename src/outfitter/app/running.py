"""The runner of this machine put together: who it is, where it keeps things, who executes, and what it is called.

What it does is ``outfitter.runner``; here the settings meet it. One runner at a time uses a state folder's database;
several share a PostgreSQL, each under its own name.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from outfitter.app.news import read_news
from outfitter.app.registry_place import reveal_url
from outfitter.app.settings import Settings
from outfitter.basics import Secret, the_one_in
from outfitter.errors import Conflict, Invalid

if TYPE_CHECKING:
    from outfitter.runner import Executor, Figures, OrchestratorServer, Runner, SignIn

_log = logging.getLogger(__name__)
_DATABASE, _FOLDER = "runner.sqlite", "runner"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True)
class RunnerChoices:
    """How ``outfitter runner`` is to be run."""

    server: str
    token: Secret | None = None
    """The runner's token; without it, the client that the environment names signs in, if it names one."""
    id: str = ""
    """Its name, which must stay the same so that it takes up its own runs again; the machine's name if left out."""
    database: Secret | None = field(default=None, repr=False)
    concurrency: int = 4
    grace: float = 30.0
    is_once: bool = False
    is_plain_allowed: bool = False
    has_orchestrator: bool = True


async def run_runner(
    settings: Settings,
    environment: Mapping[str, str],
    choices: RunnerChoices,
    on_ready: Callable[[str], None],
    on_change: Callable[[Figures], None] = lambda _: None,
) -> Figures:
    """Execute runs until told to stop, or until nothing is left to do; ``on_ready`` hears the runner's name."""
    from outfitter.runner import Desk, Runner, RunnerOptions

    name = runner_name(choices.id)
    folder = settings.state.resolve() / _FOLDER / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(settings, choices, name):
        async with (
            _signed_in(choices, environment) as tokens,
            Desk(choices.server, tokens, is_plain_allowed=choices.is_plain_allowed) as desk,
            _orchestrating(choices, folder, tokens) as orchestrator,
        ):
            options = RunnerOptions(
                name, _database(settings, choices), folder, choices.concurrency, choices.grace, is_once=choices.is_once
            )
            runner = Runner(desk, options, _executors(folder, environment), orchestrator, on_change)
            await _until_told(runner, lambda: on_ready(name))
            return runner.figures


def runner_name(given: str) -> str:
    """The name of this machine's runner."""
    name = given or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).lstrip("._-")[:64] or "runner"
    if _NAME.fullmatch(name) is None:
        raise Invalid("this is no name for a runner", hint="letters, digits and '._-', at most 64")
    return name


def local_server(settings: Settings) -> str | None:
    """The address of the gateway that runs on this machine, if one does."""
    found = read_news(settings.state / "gateway.json")
    return None if found is None else str(found["url"])


async def _until_told(runner: Runner, on_ready: Callable[[], None]) -> None:
    """Run it; a signal lets runs end within the grace."""
    import anyio

    async def hear(signals: AsyncIterator[signal.Signals]) -> None:
        async for _ in signals:
            runner.close()

    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as group:
                group.start_soon(hear, signals)
                await runner.run(on_ready)
                group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


def _executors(folder: Path, environment: Mapping[str, str]) -> dict[str, Executor]:
    from outfitter.runner import PROMPTED, CommandExecutor, PromptedExecutor

    command = CommandExecutor(folder / "work", environment)
    return {"command": command, **{kind: PromptedExecutor(command) for kind in PROMPTED}}


@asynccontextmanager
async def _signed_in(choices: RunnerChoices, environment: Mapping[str, str]) -> AsyncGenerator[SignIn | None]:
    """Who the runner is to the coordinator; None for one that asks nobody."""
    from outfitter.runner import ClientCredentials, GivenToken, names_client

    if choices.token is not None or not names_client(environment):
        yield None if choices.token is None else GivenToken(choices.token)
        return
    from outfitter.upstream import HttpClient

    async with HttpClient() as client:
        yield ClientCredentials.read(environment, client)


@asynccontextmanager
async def _orchestrating(
    choices: RunnerChoices, folder: Path, tokens: SignIn | None
) -> AsyncGenerator[OrchestratorServer | None]:
    """The MCP server by which agents start agents, before the first run begins."""
    from importlib.util import find_spec

    from outfitter.runner import Orchestrator, OrchestratorOptions

    if not choices.has_orchestrator or tokens is None or find_spec("mcp") is None:
        yield None
        return
    async with Orchestrator(OrchestratorOptions(choices.server, folder), tokens) as orchestrator:
        yield orchestrator


def _database(settings: Settings, choices: RunnerChoices) -> str:
    if choices.database is not None:
        return reveal_url(choices.database)
    return f"sqlite:///{settings.state.resolve() / _DATABASE}"


@contextmanager
def _alone(settings: Settings, choices: RunnerChoices, name: str) -> Generator[None]:
    """Keep a second runner from the same database file, or from the same name, on this machine."""
    lock = settings.state / (f"runner-{name}.lock" if choices.database is not None else "runner.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(descriptor, str(lock))
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, place: str) -> None:
    try:
        import fcntl
    except ImportError:  # there is none on Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        hint = "stop it, or give this one another state folder, or --database and --id of its own"
        raise Conflict("a runner runs here already", where=place, hint=hint) from None
