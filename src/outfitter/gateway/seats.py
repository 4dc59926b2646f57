"""An agent's place at the gateway: its plan and its servers, armed. Immutable; a new configuration makes new seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import anyio
import anyio.to_thread

from outfitter.catalog import Budgets
from outfitter.errors import OutfitterError, UnknownAgent
from outfitter.gateway.visitors import Principal
from outfitter.resolution import ArmedServer, PlannedServer, RunPlan


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """What one agent gets, with each server armed or the reason why it is not."""

    plan: RunPlan
    servers: Mapping[str, ArmedServer | OutfitterError]
    run: str = ""
    """Of which token of which run it is; empty for the agent's own."""
    above: tuple[tuple[str, Budgets], ...] = ()
    """The runs that its run stands below, and the budgets of their agents."""

    @property
    def is_whole(self) -> bool:
        """Whether every server is armed."""
        return not any(isinstance(server, OutfitterError) for server in self.servers.values())

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.plan.agent.name

    @property
    def name(self) -> str:
        """Under which name it is kept."""
        return self.run or self.agent

    def planned(self, alias: str) -> PlannedServer:
        """The plan of one server."""
        return self.plan.servers[alias]


MakeSeat = Callable[[str], Seat]
"""Makes an agent's seat; it may wait for providers of secrets, so it is called off the loop."""
_AT_A_TIME = 16
_MARK = "#"
"""What no name of an agent holds."""


class RunSeats(Protocol):
    """Who knows what a run was given."""

    async def make(self, agent: str, run_id: str) -> Seat:
        """The seat of a run that goes on; UnknownRun for any other, Unavailable when it cannot be known now."""
        ...

    async def holder(self, run_id: str) -> str | None:
        """The mark of the worker that holds the credentials of a run; None when any worker can serve it."""
        ...

    async def look_again(self) -> None:
        """Learn of tokens that another process has just made."""
        ...


@dataclass(slots=True)
class SeatBook:
    """The seats of one configuration, each armed when its agent first comes.

    Arming may take long: it is done in a thread, once for all who wait for the same seat, and holds up nobody else. A
    token of a run has a seat of its own: what the run was given, not what its agent has.
    """

    make: MakeSeat
    runs: RunSeats | None = None
    """Without it there are no runs: a token that names one is like any other of its agent."""
    generation: int = 0
    """Another number for every configuration."""
    _seats: dict[str, Seat] = field(default_factory=dict[str, Seat])
    _arming: dict[str, anyio.Event] = field(default_factory=dict[str, anyio.Event])
    _room: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_AT_A_TIME))

    def name_of(self, principal: Principal) -> str:
        """Under which name the seat of a client is kept: that of its agent, or one of its run's own."""
        if principal.run_id is None or self.runs is None:
            return principal.agent
        return _MARK.join((principal.token_id, principal.agent, principal.run_id))

    def forget_runs(self, holds: Callable[[str], bool]) -> tuple[str, ...]:
        """Let go of the seats of runs whose token, by its id, holds no more; their names."""
        gone = tuple(name for name in self._seats if _MARK in name and not holds(name.partition(_MARK)[0]))
        for name in gone:
            del self._seats[name]
        return gone

    def find(self, agent: str) -> Seat:
        """The seat of this name if it is armed already; UnknownAgent otherwise."""
        seat = self._seats.get(agent)
        if seat is None:
            raise UnknownAgent(f"no seat of agent '{agent}' is armed")
        return seat

    async def arm(self, agent: str) -> Seat:
        """The seat of this name, armed now if it was not; UnknownAgent or UnknownRun when there is none."""
        while (seat := self._seats.get(agent)) is None:
            under_way = self._arming.get(agent)
            if under_way is None:
                await self._arm(agent)
            else:
                await under_way.wait()
        return seat

    async def _arm(self, agent: str) -> None:
        make, done = self.make, anyio.Event()
        self._arming[agent] = done
        try:
            # Not broken off: what was fetched for one who has left is for the next.
            if _MARK in agent:
                seat = await self._make_run(agent)
            else:
                seat = await anyio.to_thread.run_sync(make, agent, limiter=self._room)
            if make is self.make:
                self._seats[agent] = seat
        finally:
            if self._arming.get(agent) is done:
                del self._arming[agent]
            done.set()

    async def _make_run(self, name: str) -> Seat:
        _, agent, run_id = name.split(_MARK, 2)
        if self.runs is None:
            raise UnknownAgent("there are no runs here")
        return replace(await self.runs.make(agent, run_id), run=name)

    def swap(self, make: MakeSeat) -> None:
        """Use another configuration from now on; requests under way keep the seat they have."""
        waiting = self._arming.values()
        self.make, self._seats, self._arming = make, {}, {}
        self.generation += 1
        for done in waiting:
            done.set()  # nobody waits for a seat of a configuration that is gone

    def is_current(self, seat: Seat) -> bool:
        """Whether the seat is of the configuration in use."""
        return self._seats.get(seat.name) is seat

    def has(self, agent: str) -> bool:
        """Whether the agent's seat is armed already."""
        return agent in self._seats
