"""Runs as the orchestrator makes and follows them: under ids of its own, so that asking twice makes one."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

import anyio
import msgspec

from outfitter.errors import Conflict, Invalid, NotFound
from outfitter.runner.orchestrator.client import CoordinatorClient, Json
from outfitter.runner.orchestrator.hearing import Hearing
from outfitter.runner.orchestrator.shaping import shown_error, shown_result
from outfitter.runner.orders import ENDED

PATIENCE_TOLD, PATIENCE_UNTOLD = 600.0, 25.0
"""How long is waited when nobody says how long: with progress to tell, and without, where a call may last 30 s."""
_MOST_BYTES = 240 * 1024
_BEAT = 5.0
"""How often whoever waits is told that it still does."""
OnWait = Callable[[float, float, str], Awaitable[None]]
"""Hears for how many seconds was waited, how many there are in all, and the state of the run."""


@dataclass(frozen=True, slots=True)
class Waiter:
    """How a call can wait: whether its client hears of progress, how it is told, and what becomes of its place."""

    hears: bool
    tell: OnWait
    rest: Callable[[Json], AbstractContextManager[None]]
    """Whoever calls takes no place at the runner while it waits for this run."""

    def patience(self, asked: float | None) -> float:
        """For how many seconds to wait."""
        return asked if asked is not None else PATIENCE_TOLD if self.hears else PATIENCE_UNTOLD


def new_id(what: str) -> str:
    """An id that nobody else has."""
    return f"{what}-{uuid.uuid4().hex}"


def has_ended(run: Mapping[str, object]) -> bool:
    """Whether a run, or a session, has come to its end."""
    return run["state"] in ENDED


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of the coordinator."""

    client: CoordinatorClient
    hearing: Hearing

    async def get(self, run_id: str) -> Json:
        """A run; NotFound when there is none."""
        return await self.client.get(f"/runs/{run_id}")

    async def make(self, document: Mapping[str, object]) -> Json:
        """The run of a request that names its ``run_id``; made once, however often it is asked for."""
        if len(msgspec.json.encode(document)) > _MOST_BYTES:
            raise Invalid(f"the prompt is longer than {_MOST_BYTES // 1024} KiB", hint="say it shorter")
        try:
            return await self.client.post("/runs", document)
        except Conflict:
            # The answer to an earlier try may have been lost on its way; then the run is there.
            try:
                found = await self.get(str(document["run_id"]))
            except NotFound:
                found = None
            if found is None:
                raise
            return found

    async def stop(self, run_id: str) -> Json:
        """The run, asked to end; one that has ended stays as it is."""
        try:
            return await self.client.post(f"/runs/{run_id}/stop", {})
        except Conflict:
            return await self.get(run_id)

    async def wait(self, run_id: str, seconds: float, waiter: Waiter) -> Json:
        """The run when it has ended, or as it is after so many seconds."""
        began = anyio.current_time()
        with self.hearing.listening({f"runs/{run_id}"}) as ear:
            run = await self.get(run_id)
            if has_ended(run) or not seconds:
                return run
            with waiter.rest(run):
                while not has_ended(run) and (waited := anyio.current_time() - began) < seconds:
                    await waiter.tell(waited, seconds, str(run["state"]))
                    await ear.wait(min(_BEAT, seconds - waited))
                    run = await self.get(run_id)
                return run


def shown_run(run: Mapping[str, object]) -> Json:
    """A run as the agent that started it sees it: its result cut and escaped, none while it goes on."""
    shown: Json = {
        "session_id": run["session_id"],
        "run_id": run["id"],
        "agent": run["agent_name"],
        "state": run["state"],
    }
    if has_ended(run):
        shown |= shown_result(run.get("result"))
    return shown | shown_error(run.get("error"))
