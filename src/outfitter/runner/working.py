"""One run at this runner: begun at the coordinator, executed, its events sent, its end told.

    execute ──▶ begin ──▶ executor ──▶ Ended          finish ──▶ events drained ──▶ end told ──▶ files gone
                  │           └ stop, time-out, taken over by another: the executor is cancelled
                  └ not ours: nothing is done and nothing is told

``engine`` makes this durable: ``execute`` is not done again once its answer is kept, ``finish`` may be. Whether an
earlier attempt may have done something is told by ``engine`` too; such a run is lost unless its executor says that it
may be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from outfitter.errors import Conflict, Forbidden, Invalid, NotFound, OutfitterError
from outfitter.runner.desk import Desk, patiently
from outfitter.runner.folders import name_of
from outfitter.runner.leftovers import end_run
from outfitter.runner.orders import ELSEWHERE, ENDED, Ended, Fault, Offer, RunShown, WorkOrder
from outfitter.runner.outbox import Outbox
from outfitter.runner.places import Active, Places
from outfitter.runner.ports import Executor, OrchestratorServer
from outfitter.runner.refusals import Refusals
from outfitter.runner.texts import MOST_ERROR, cut

_log = logging.getLogger(__name__)
_ORCHESTRATOR = "orchestrator_mcp_url"


@dataclass(slots=True)
class Work:
    """All runs of one runner. ``places`` has those that are executed now."""

    desk: Desk
    runner: str
    folder: Path
    """Where the events of each run are kept until they are sent."""
    executors: Mapping[str, Executor]
    orchestrator: OrchestratorServer | None = None
    places: Places = field(default_factory=Places)
    given_up: dict[str, int] = field(default_factory=dict[str, int])
    """Runs whose end the coordinator does not take, with the attempt; such an attempt is not begun again here."""
    refusals: Refusals = field(default_factory=Refusals)
    is_closing: bool = False
    """Whether nothing more is begun."""

    # ── what the engine calls ──

    async def execute(self, offer: Offer, *, is_repeated: bool) -> Ended:
        """Execute a run unless it is somebody else's; ``is_repeated``: an earlier attempt may have done something."""
        run_id = offer.run_id
        active = self.places.active.setdefault(run_id, Active(offer.agent))
        if active.is_begun:
            return ELSEWHERE
        active.is_begun = True
        try:
            ended = await self._execute(offer, active, is_repeated=is_repeated)
            if ended.state is not None:
                self.places.end_waiting_for(run_id)
            return ended
        finally:
            del self.places.active[run_id]
            self.places.changed()

    async def _execute(self, offer: Offer, active: Active, *, is_repeated: bool) -> Ended:
        """The same, for a run that has its place."""
        order: WorkOrder | None = None
        if self.is_closing:
            active.end("closing")
        with active.scope:
            await anyio.lowlevel.checkpoint()
            values = self._values(offer)
            taken = await self._take(offer.run_id, values)
            if isinstance(taken, Ended):
                return taken
            order = self._learn(taken.order, values)
            is_repeated = order.attempt > 1 and (is_repeated or taken.is_taken_over)
            return await self._attempt(order, active, is_repeated=is_repeated)
        return await self._after_the_end(order, active)

    async def finish(self, run_id: str, ended: Ended) -> None:
        """Send what is left of the events and tell the end, however long the coordinator is away."""
        path = self._path(run_id)
        if ended.state is not None:
            if Outbox.exists(path):
                await self._drain(path, run_id, ended.attempt)
            await self._tell_end(run_id, ended)
        Outbox.remove(path)

    async def _tell_end(self, run_id: str, ended: Ended) -> None:
        """Say how it ended; a result that is refused makes it a failed run, whose end can be told."""
        try:
            try:
                await patiently(lambda: self.desk.finish(run_id, ended))
            except Invalid as error:
                _log.warning("the result of run %s was refused: %s", run_id, error)
                why = f"the coordinator refused how it ended ({ended.state}): {cut(str(error), MOST_ERROR)}"
                refused = Ended("failed", ended.attempt, error=Fault("result_refused", why))
                await patiently(lambda: self.desk.finish(run_id, refused))
        except (Conflict, NotFound, Invalid, Forbidden) as error:
            _log.warning("the end of run %s (%s) was not taken: %s", run_id, ended.state, error)
            self.given_up[run_id] = ended.attempt

    # ── taking ──

    async def _take(self, run_id: str, values: Mapping[str, str]) -> _Taken | Ended:
        """The order to execute a run, or how it ended already."""
        try:
            return _Taken(await patiently(lambda: self.desk.begin(run_id, self.runner, values)))
        except (NotFound, Invalid, Forbidden) as error:
            return self._refused(run_id, error)
        except Conflict as error:
            why = error
        try:
            run = await patiently(lambda: self.desk.run(run_id))
            if run.state == "pending":  # it is nobody's, and still not ours: another token speaks for this runner
                return self._refused(run_id, why)
            return await self._take_over(run, values)
        except (Conflict, NotFound, Invalid, Forbidden):
            return ELSEWHERE

    def _refused(self, run_id: str, why: OutfitterError) -> Ended:
        """It is not begun now; it stays pending, and is asked for again later."""
        count, wait = self.refusals.note(run_id)
        _log.warning("run %s cannot be begun (%d times); asked again in %g s: %s", run_id, count, wait, why)
        return ELSEWHERE

    async def _take_over(self, run: RunShown, values: Mapping[str, str]) -> _Taken | Ended:
        """The order for a run that was begun before, if whoever did is gone."""
        owner = run.owner
        if run.state in ENDED or owner is None or (owner != self.runner and await self._lives(owner)):
            return ELSEWHERE
        if run.state == "stopping":
            await anyio.to_thread.run_sync(end_run, run.id)
            return Ended("stopped", run.attempt)
        if owner == self.runner:
            return ELSEWHERE
        begin = lambda: self.desk.begin(run.id, self.runner, values, instead_of=owner)  # noqa: E731 - asked again
        return _Taken(await patiently(begin), is_taken_over=True)

    async def _lives(self, runner: str) -> bool:
        return any(one.id == runner and one.is_alive for one in await patiently(self.desk.runners))

    # ── executing ──

    async def _attempt(self, order: WorkOrder, active: Active, *, is_repeated: bool) -> Ended:
        run, spec = order.run, order.agent.executor
        active.agent, active.attempt = order.agent.name, order.attempt
        if is_repeated:
            await anyio.to_thread.run_sync(end_run, run.id)  # what a killed runner of this machine left
            if spec is None or not spec.recover:
                why = Fault("runner_lost", "the runner that executed it is gone; what it did until then is not known")
                return Ended("lost", order.attempt, error=why)
        box = Outbox.open(self._path(run.id), run.id, await self._first_number(order))
        try:
            ended = await self._run_beside_its_events(order, box, active)
            return msgspec.structs.replace(ended, attempt=order.attempt)
        finally:
            box.close()

    async def _run_beside_its_events(self, order: WorkOrder, box: Outbox, active: Active) -> Ended:
        """Execute, and send events meanwhile; whoever has taken over ends it."""

        async def send(scope: anyio.CancelScope) -> None:
            try:
                with scope:
                    await box.send_on(self.desk, order.attempt)
            except (Conflict, NotFound):
                active.end("superseded")
            except OutfitterError as error:
                _log.warning("the events of run %s are not taken: %s", order.run.id, error)

        if order.attempt > 1:
            box.put("outfitter.attempt", {"attempt": order.attempt, "runner": self.runner})
        sending, ended = anyio.CancelScope(), ELSEWHERE
        async with anyio.create_task_group() as group:
            group.start_soon(send, sending)
            try:
                ended = await self._within_its_time(order, box)
            finally:
                sending.cancel()
        return ended

    async def _within_its_time(self, order: WorkOrder, box: Outbox) -> Ended:
        spec = order.agent.executor
        if spec is None:
            return Ended.failed("no_executor", f"agent '{order.agent.name}' does not say how it is executed")
        executor = self.executors.get(spec.type)
        if executor is None:
            known = ", ".join(sorted(self.executors))
            return Ended.failed("unknown_executor", f"runner '{self.runner}' has no executor '{spec.type}': {known}")
        try:
            with anyio.move_on_after(order.seconds):
                return await executor.execute(order, box.put)
        except OutfitterError as error:
            return Ended.failed(error.code, str(error))
        except Exception:  # noqa: BLE001 - the edge of foreign code: one bad executor must not end the runner
            _log.exception("the executor of run %s broke", order.run.id)
            return Ended.failed("executor_broke", "the executor itself broke; the runner's log says how")
        return Ended.failed("timeout", f"it took longer than {order.seconds:g} s and was ended")

    async def _after_the_end(self, order: WorkOrder | None, active: Active) -> Ended:
        """What is told of a run that was ended from here."""
        if active.why == "closing" and (order is None or (order.agent.executor and order.agent.executor.recover)):
            # Nothing is kept of it, so that whoever comes next executes it again.
            active.is_left = True
            self.places.changed()
            await anyio.sleep_forever()
        if active.why == "superseded" or order is None:
            _log.warning("a run is no longer executed here: it was taken over or ended by somebody else")
            return ELSEWHERE
        if active.why == "stopped":
            return Ended("stopped", order.attempt)
        return Ended("lost", order.attempt, error=Fault("runner_stopped", "its runner was stopped before it ended"))

    # ── small things ──

    def _values(self, offer: Offer) -> dict[str, str]:
        """What this runner fills in at the gateway: where the orchestrator listens for this run."""
        if self.orchestrator is None:
            return {}
        return {_ORCHESTRATOR: self.orchestrator.url_for(offer.session_id, offer.run_id)}

    def _learn(self, order: WorkOrder, values: Mapping[str, str]) -> WorkOrder:
        """The order with what this runner adds; how many of its kind may run is remembered."""
        spec = order.agent.executor
        self.places.limits[order.agent.name] = None if spec is None else spec.concurrency
        self.places.changed()
        return msgspec.structs.replace(order, orchestrator_url=values.get(_ORCHESTRATOR))

    async def _first_number(self, order: WorkOrder) -> int:
        if order.attempt == 1 or Outbox.exists(self._path(order.run.id)):
            return 1
        return 1 + await patiently(lambda: self.desk.last_event(order.run.id))

    async def _drain(self, path: Path, run_id: str, attempt: int) -> None:
        box = Outbox.open(path, run_id)
        try:
            await box.drain(self.desk, attempt)
        except (Conflict, NotFound, Invalid, Forbidden) as error:
            _log.warning("the last events of run %s were not taken: %s", run_id, error)
        finally:
            box.close()

    def _path(self, run_id: str) -> Path:
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self.folder / f"{name_of(run_id)}.events"


@dataclass(frozen=True, slots=True)
class _Taken:
    order: WorkOrder
    is_taken_over: bool = False
