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
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from outfitter.app.beside import until_welcome
from outfitter.app.news import read_news
from outfitter.app.registry_place import has_registry, reveal_url
from outfitter.app.settings import Settings
from outfitter.basics import Secret, the_one_in
from outfitter.errors import Conflict, Invalid

if TYPE_CHECKING:
    from outfitter.runner import Executor, Figures, OrchestratorServer, Places, Runner, SignIn

_log = logging.getLogger(__name__)
_DATABASE, _FOLDER, _WORK = "runner.sqlite", "runner", "work"
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
    uses_registry: bool = False
    """Whether the service is this machine's own: without a token, its registry gives one."""
    is_beside: bool = False
    """Whether the gateway itself has started it: it ends when its standard input does."""


async def run_runner(
    settings: Settings,
    environment: Mapping[str, str],
    choices: RunnerChoices,
    on_ready: Callable[[str, str], None],
    on_change: Callable[[Figures], None] = lambda _: None,
) -> Figures:
    """Execute runs until told to stop, or until nothing is left to do; ``on_ready`` hears the runner's name.

    And why its agents cannot start agents, if they cannot.
    """
    from outfitter.runner import Desk, Places, Runner, RunnerOptions, empty_folder

    name, places = runner_name(choices.id), Places()
    folder = settings.state.resolve() / _FOLDER / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone(settings, choices, name):
        async with (
            _signed_in(settings, choices, environment, folder) as tokens,
            Desk(choices.server, tokens, is_plain_allowed=choices.is_plain_allowed) as desk,
            _orchestrating(choices, folder, tokens, places) as orchestrator,
        ):
            options = RunnerOptions(
                name, _database(settings, choices), folder, choices.concurrency, choices.grace, is_once=choices.is_once
            )
            await empty_folder(folder / _WORK)
            runner = Runner(desk, options, _executors(folder, environment), orchestrator, on_change, places)
            if choices.uses_registry and choices.token is None and tokens is not None:
                await until_welcome(desk, name, is_beside=choices.is_beside)
            why = "" if orchestrator else _why_alone(choices)
            await _until_told(runner, lambda: on_ready(name, why), hears_input=choices.is_beside)
            return runner.figures


def runner_name(given: str) -> str:
    """The name of this machine's runner."""
    name = given or re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).lstrip("._-")[:64] or "runner"
    if _NAME.fullmatch(name) is None:
        raise Invalid("this is no name for a runner", hint="letters, digits and '._-', at most 64")
    return name


def local_server(settings: Settings) -> str | None:
    """The address of the gateway that runs on this machine, if one does."""
    found = read_news(settings)
    return None if found is None else str(found["url"])


async def _until_told(runner: Runner, on_ready: Callable[[], None], *, hears_input: bool) -> None:
    """Run it; a signal lets runs end within the grace, a second one ends them at once."""
    import anyio

    async def hear(signals: AsyncIterator[signal.Signals]) -> None:
        is_told = False
        async for number in signals:
            _log.info("%s: no more runs are taken; once more ends those that are under way", number.name)
            if is_told:
                runner.hurry()
            runner.close()
            is_told = True

    async def hear_input() -> None:
        await anyio.wait_readable(0)
        runner.close()

    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async with anyio.create_task_group() as group:
                if hears_input:
                    group.start_soon(hear_input)
                group.start_soon(hear, signals)
                await runner.run(on_ready)
                group.cancel_scope.cancel()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


def _executors(folder: Path, environment: Mapping[str, str]) -> dict[str, Executor]:
    from outfitter.runner import PROMPTED, CommandExecutor, PromptedExecutor

    command = CommandExecutor(folder / _WORK, environment)
    return {"command": command, **{kind: PromptedExecutor(command) for kind in PROMPTED}}


@asynccontextmanager
async def _signed_in(
    settings: Settings, choices: RunnerChoices, environment: Mapping[str, str], folder: Path
) -> AsyncGenerator[SignIn | None]:
    """Who the runner is to the coordinator; None for one that asks nobody."""
    from outfitter.runner import ClientCredentials, GivenToken, names_client

    is_client = names_client(environment) and not choices.is_beside
    if choices.token is None and choices.uses_registry and not is_client and has_registry(settings):
        from outfitter.app.local_pass import local_pass

        async with local_pass(settings, folder / "pass.json") as tokens:
            yield tokens
        return
    if choices.token is not None or not is_client:
        yield None if choices.token is None else GivenToken(choices.token)
        return
    from outfitter.upstream import HttpClient

    async with HttpClient() as client:
        yield ClientCredentials.read(environment, client)


@asynccontextmanager
async def _orchestrating(
    choices: RunnerChoices, folder: Path, tokens: SignIn | None, places: Places
) -> AsyncGenerator[OrchestratorServer | None]:
    """The MCP server by which agents start agents, before the first run begins."""
    from outfitter.runner import Orchestrator, OrchestratorOptions

    if not choices.has_orchestrator or tokens is None or find_spec("mcp") is None:
        yield None
        return
    async with Orchestrator(OrchestratorOptions(choices.server, folder), tokens, places) as orchestrator:
        yield orchestrator


def _why_alone(choices: RunnerChoices) -> str:
    """Why there is no orchestrator."""
    if not choices.has_orchestrator:
        return "--no-orchestrator was given"
    if find_spec("mcp") is None:
        return "it needs the library mcp: pip install 'outfitter[runner]'"
    return "it needs a token of the role runner in OUTFITTER_TOKEN"


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
