"""An agent's place at the gateway: its plan and its servers, armed. Immutable; a new configuration makes new seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from outfitter.errors import OutfitterError, UnknownAgent
from outfitter.resolution import ArmedServer, PlannedServer, RunPlan


@dataclass(frozen=True, slots=True, eq=False)
class Seat:
    """What one agent gets, with each server armed or the reason why it is not."""

    plan: RunPlan
    servers: Mapping[str, ArmedServer | OutfitterError]

    @property
    def agent(self) -> str:
        """The agent's name."""
        return self.plan.agent.name

    def planned(self, alias: str) -> PlannedServer:
        """The plan of one server."""
        return self.plan.servers[alias]


MakeSeat = Callable[[str], Seat]


@dataclass(slots=True)
class SeatBook:
    """The seats of one configuration, each made when its agent first comes."""

    make: MakeSeat
    generation: int = 0
    """Another number for every configuration."""
    _seats: dict[str, Seat] = field(default_factory=dict[str, Seat])

    def find(self, agent: str) -> Seat:
        """The agent's seat; UnknownAgent when the configuration has none."""
        seat = self._seats.get(agent)
        if seat is None:
            seat = self._seats[agent] = self.make(agent)
        return seat

    def swap(self, make: MakeSeat) -> None:
        """Use another configuration from now on; requests under way keep the seat they have."""
        self.make, self._seats = make, {}
        self.generation += 1

    def is_current(self, seat: Seat) -> bool:
        """Whether the seat is of the configuration in use."""
        return self._seats.get(seat.agent) is seat

    def has(self, agent: str) -> bool:
        """Whether there is such an agent."""
        try:
            self.find(agent)
        except UnknownAgent:
            return False
        return True
