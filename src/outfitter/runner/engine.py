"""Runs as durable workflows: one for each, with the run's id, so that nothing is done twice and nothing forgotten.

The library is DBOS, on a SQLite file of this runner or on a PostgreSQL that several share. A workflow notes that it has
begun, executes, keeps the answer, and tells it. After a death the workflows of this runner's name go on where they
were; those of another runner that is gone are taken over by ``adopt``. Who really may write is decided by the
coordinator's attempt number, not here. One engine for each process: DBOS has one instance. No admin port, no telemetry.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.to_thread
import msgspec

from outfitter.errors import StorageUnavailable, Unavailable
from outfitter.runner.orders import Ended, Offer
from outfitter.runner.working import Work

if TYPE_CHECKING:
    from dbos import DBOSConfig, Serializer

_log = logging.getLogger(__name__)
_APPLICATION, _PROTOCOL, _WORKFLOW, _SCHEMA = "outfitter-runner", "1", "outfitter.run", "outfitter_runner"
_OVER = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
_PURGE = 200
_THREADS = 32


@dataclass(slots=True)
class Engine:
    """The workflows of one runner. Enter it once everything that ``work`` needs is open."""

    database: str = field(repr=False)
    """A PostgreSQL, or ``sqlite:///`` and a file."""
    work: Work
    flights: set[str] = field(default_factory=set[str])
    """The runs whose workflow is under way here, from its first step until its end is told."""
    ends: dict[str, int] = field(default_factory=dict[str, int])
    """How many runs have ended in each state."""
    _workflow: Callable[..., Any] | None = None
    _over: list[str] = field(default_factory=list[str])

    async def __aenter__(self) -> Self:
        """Launch it; the workflows that this runner left are taken up again."""
        try:
            from dbos import DBOS
        except ImportError:
            hint = "pip install 'outfitter[runner]'"
            raise Unavailable("the engine of the runner is not installed", hint=hint) from None
        await anyio.to_thread.run_sync(_prepare, self.database)

        async def fly(offered: dict[str, Any]) -> str | None:
            return await self._flight(offered)

        DBOS(config=self._config())
        self._workflow = DBOS.workflow(name=_WORKFLOW, max_recovery_attempts=None)(fly)
        try:
            DBOS.launch()
            await self._purge_all()
        except Exception as error:  # whatever a driver raises
            await self._close()
            kind = type(error).__name__
            raise StorageUnavailable(f"the runner's database cannot be used ({kind})", where=_place(self)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave it; what is under way is taken up by the next life."""
        await self._close()

    @property
    def is_own(self) -> bool:
        """Whether the database is this runner's alone."""
        return self.database.startswith("sqlite:")

    async def start(self, offer: Offer, is_left: Callable[[str], Awaitable[bool]]) -> bool:
        """Start the workflow of a run; False when there is one already, here or at another runner.

        One that is at a runner of which ``is_left`` says that it is gone is taken up again, and has no place kept.
        """
        from dbos import DBOS, SetWorkflowID
        from dbos import error as faults

        if self._workflow is None:
            raise Unavailable("the engine is not open")
        for _ in range(2):
            try:
                with SetWorkflowID(offer.run_id, workflow_id_reuse_policy="reject"):
                    await DBOS.start_workflow_async(self._workflow, msgspec.to_builtins(offer))
            except faults.DBOSWorkflowIDInUseError as taken:
                if taken.workflow_status not in _OVER:
                    await self._take_up(offer.run_id, is_left)
                    return False
                await DBOS.delete_workflows_async([offer.run_id])
            except faults.DBOSException as error:
                raise StorageUnavailable(f"a run cannot be kept: {type(error).__name__}", where=offer.run_id) from None
            else:
                return True
        return False

    async def _take_up(self, run_id: str, is_left: Callable[[str], Awaitable[bool]]) -> None:
        """Resume a workflow that was begun by a runner that is gone."""
        from dbos import DBOS

        found = await DBOS.list_workflows_async(
            workflow_ids=[run_id], status="PENDING", name=_WORKFLOW, load_input=False, load_output=False
        )
        executor = found[0].executor_id if found else None
        if executor is None or executor == self.work.runner or run_id in self.flights or not await is_left(executor):
            return
        _log.warning("run %s of runner '%s', which is gone, is taken up", run_id, executor)
        await DBOS.resume_workflows_async([run_id])

    async def adopt(self, runners: Sequence[str]) -> int:
        """Have the living take up the workflows of runners that are gone; how many there were."""
        from dbos import DBOS

        found = await DBOS.list_workflows_async(
            status="PENDING", executor_id=list(runners), name=_WORKFLOW, load_input=False, load_output=False
        )
        ids = [one.workflow_id for one in found if one.workflow_id not in self.flights]
        if ids:
            await DBOS.resume_workflows_async(ids)
        return len(ids)

    async def purge(self) -> None:
        """Forget workflows that are over; the coordinator has all there is to know of them."""
        from dbos import DBOS

        while self._over:
            batch, self._over = self._over[:_PURGE], self._over[_PURGE:]
            over = await DBOS.list_workflows_async(
                workflow_ids=batch, status=_OVER, load_input=False, load_output=False
            )
            ids = [one.workflow_id for one in over]
            if ids:
                await DBOS.delete_workflows_async(ids)

    # ── the workflow ──

    async def _flight(self, offered: dict[str, Any]) -> str | None:
        """The steps of one run. What is kept of each is small, and holds no token."""
        from dbos import DBOS

        offer = msgspec.convert(offered, Offer)
        run_id = offer.run_id
        if run_id in self.flights:
            return None
        self.flights.add(run_id)
        try:
            is_first = False

            async def note() -> bool:
                nonlocal is_first
                is_first = True
                return True

            async def execute() -> Any:  # noqa: ANN401 - JSON
                is_repeated = not (is_first and offer.is_new)
                return msgspec.to_builtins(await self.work.execute(offer, is_repeated=is_repeated))

            await DBOS.run_step_async({"name": "note"}, note)
            kept = await DBOS.run_step_async({"name": "execute"}, execute)
            ended = msgspec.convert(kept, Ended)
            await self.work.finish(run_id, ended)
            if ended.state is not None:
                self.ends[ended.state] = self.ends.get(ended.state, 0) + 1
        finally:
            self.flights.discard(run_id)
            self._over.append(run_id)
            self.work.places.changed()
        return ended.state

    # ── its life ──

    def _config(self) -> DBOSConfig:
        return {
            "name": _APPLICATION,
            "system_database_url": self.database,
            "dbos_system_schema": _SCHEMA,
            "application_version": _PROTOCOL,
            "executor_id": self.work.runner,
            "serializer": _make_serializer(),
            "log_level": "ERROR",
            "enable_otlp": False,
            "max_executor_threads": _THREADS,
        }

    async def _purge_all(self) -> None:
        from dbos import DBOS

        over = await DBOS.list_workflows_async(
            status=_OVER, name=_WORKFLOW, load_input=False, load_output=False, limit=10 * _PURGE
        )
        self._over = [one.workflow_id for one in over]
        await self.purge()

    async def _close(self) -> None:
        from dbos import DBOS

        self._workflow = None
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: DBOS.destroy(destroy_registry=True))


def _place(engine: Engine) -> str:
    """Where the database is, without a password."""
    return engine.database if engine.is_own else "PostgreSQL"


def _prepare(url: str) -> None:
    """A SQLite file for its owner only, which is read while it is written to."""
    if not url.startswith("sqlite:///"):
        return
    path = Path(url.removeprefix("sqlite:///"))
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        with closing(sqlite3.connect(path, timeout=30)) as connection:
            connection.execute("PRAGMA journal_mode=WAL")
    except (OSError, sqlite3.Error) as error:
        raise StorageUnavailable(f"the runner's database cannot be used: {error}", where=str(path)) from None


def _make_serializer() -> Serializer:
    """Values are kept as JSON: what comes out of a shared database is data, never a program."""
    from dbos import Serializer as Base

    class JsonSerializer(Base):
        def serialize(self, data: Any) -> str:  # noqa: ANN401 - DBOS's shape
            return json.dumps(data, default=str, separators=(",", ":"))

        def deserialize(self, serialized_data: str) -> Any:  # noqa: ANN401 - DBOS's shape
            with suppress(ValueError):
                return json.loads(serialized_data)
            return None

        def name(self) -> str:
            return "outfitter_json"

    return JsonSerializer()
