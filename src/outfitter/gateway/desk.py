"""The gateway without a transport: a request of a visitor goes in, a result comes out."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import anyio

from outfitter.calls import tell_missing
from outfitter.errors import NotFound, OutfitterError, StorageUnavailable
from outfitter.gateway.faults import Rejected
from outfitter.gateway.gate import Turned
from outfitter.gateway.governing import UNGOVERNED, Governing
from outfitter.gateway.limits import Turnstile
from outfitter.gateway.lines import Exchange, Line
from outfitter.gateway.methods import Methods, Request
from outfitter.gateway.parking import ParkingLot
from outfitter.gateway.pins import LIST_CHANGED
from outfitter.gateway.recorder import Recorder
from outfitter.gateway.records import CallRecord, canonical, measure
from outfitter.gateway.searching import is_searched
from outfitter.gateway.seats import SeatBook
from outfitter.gateway.steps.recording import Keeping
from outfitter.gateway.subscribing import Subscriptions
from outfitter.gateway.tokens import TokenSource
from outfitter.gateway.views import View, as_object
from outfitter.gateway.visitors import Principal, Visitor
from outfitter.gateway.visits import VisitBook
from outfitter.resolution import SeenServer
from outfitter.upstream import Agreement, Message

_OFFERED = ("tools", "resources", "prompts", "completions", "logging")


@dataclass(slots=True)
class Desk:
    """Everything a front needs: who may come, what each gets, and who answers."""

    seats: SeatBook
    exchange: Exchange
    methods: Methods
    lot: ParkingLot
    tokens: TokenSource | None = None
    """None lets everyone in: on loopback only."""
    recorder: Recorder = field(default_factory=Recorder)
    turnstile: Turnstile = field(default_factory=Turnstile)
    keeping: Keeping = field(default_factory=Keeping)
    governing: Governing = UNGOVERNED
    visits: VisitBook = field(default_factory=VisitBook)
    subscriptions: Subscriptions = field(init=False)
    closing: anyio.Event = field(default_factory=anyio.Event)
    """Set when the gateway is about to end: streams that only listen end by themselves."""
    _views: dict[tuple[int, str | None], View] = field(default_factory=dict[tuple[int, str | None], View])

    def __post_init__(self) -> None:
        """Subscriptions live as long as parked calls: with the gateway. A visit that ends gives its own up."""
        self.subscriptions = Subscriptions(self.lot.tasks)
        self.visits.on_end = lambda visit: self.subscriptions.drop_all(visit.subscribed)

    def view(self, agent: str, server: str | None) -> View:
        """The endpoint of an agent whose seat is armed; UnknownAgent or UnknownAlias when there is none."""
        seat = self.seats.find(agent)
        view = self._views.get((id(seat), server))
        if view is None or view.seat is not seat:
            # Views of an earlier configuration live as long as the requests that have them.
            self._views = {key: kept for key, kept in self._views.items() if self.seats.is_current(kept.seat)}
            view = self._views[id(seat), server] = View(seat, self.exchange, server, self.governing)
        return view

    async def open_view(self, agent: str, server: str | None) -> View:
        """The endpoint of an agent, its seat armed first if it is not; UnknownAgent or UnknownAlias."""
        await self.seats.arm(agent)
        return self.view(agent, server)

    def look_again(self, keys: Collection[str]) -> None:
        """Have the tools of servers listed again, and every client told: somebody has decided about their pins."""
        for line in {line: None for view in self._views.values() for line in view.lines_with(keys)}:
            line.hear(LIST_CHANGED)

    def forget_runs(self, holds: Callable[[str], bool]) -> None:
        """Let go of everything that runs had whose token, by its id, holds no more."""
        for name in self.seats.forget_runs(holds):
            self.exchange.leave(name)
        self._views = {key: kept for key, kept in self._views.items() if self.seats.is_current(kept.seat)}

    def refuse_call(self, principal: Principal, shown: str) -> tuple[int, float] | None:
        """Status and waiting time for a call that is one too many, which is recorded; None when it may come in."""
        try:
            status, code, wait = self._too_many(self.seats.name_of(principal))
            if not status:
                return None
            self.recorder.prepare()
        except NotFound:
            return None
        except StorageUnavailable:
            return 503, 1.0
        self._record_refused(principal, shown, code, None)
        return status, wait

    @contextmanager
    def witness(self, principal: Principal, message: Message) -> Generator[None]:
        """Record a tool call that is refused in the block: the pipeline, which records all others, never sees it."""
        try:
            yield
        except (Rejected, Turned) as refused:
            self.note_refused(principal, message, refused.rpc_code if isinstance(refused, Rejected) else refused.status)
            raise

    def note_refused(self, principal: Principal, message: Message, code: int) -> None:
        """Record a refused message if it is a tool call; one that cannot be recorded is refused all the same."""
        if message.get("method") != "tools/call":
            return
        params = as_object(message.get("params"))
        shown = params.get("name")
        with suppress(StorageUnavailable):
            self.recorder.prepare()
            self._record_refused(principal, shown if isinstance(shown, str) else "", str(code), params.get("arguments"))

    def _record_refused(self, principal: Principal, shown: str, code: str, arguments: object) -> None:
        bytes_in, digest = (0, "") if arguments is None else measure(canonical(arguments))
        self.recorder.record(
            CallRecord(
                call_id=uuid.uuid4().hex, agent=principal.agent, token_id=principal.token_id, run_id=principal.run_id,
                started_at=time.time(), duration=0.0, outcome="refused", code=code, shown=shown[:256],
                bytes_in=bytes_in, digest=digest,
            )
        )  # fmt: skip

    def close(self) -> None:
        """End what only listens, so that stopping waits for work and for nothing else."""
        self.closing.set()
        for visit in self.visits.all():
            visit.close()

    def _too_many(self, agent: str) -> tuple[int, str, float]:
        if self.turnstile.is_overloaded():
            return 503, "overloaded", 1.0
        wait = self.turnstile.wait_of(self.seats.find(agent).plan)
        return (0, "", 0.0) if wait is None else (429, "too_many_calls", wait)

    async def answer(
        self, view: View, visitor: Visitor, method: str, params: Message,
        headers: Sequence[tuple[str, str]] | None = None,
    ) -> Message:  # fmt: skip
        """The result of one request."""
        return await self.methods.answer(Request(view, visitor, method, params, headers))

    async def introduce(self, view: View, visitor: Visitor) -> tuple[Message, str]:
        """What the endpoint can do, and how to use it: all that its servers say of themselves, merged."""
        capabilities, instructions = await self._introduce(view, visitor)
        if view.result_limit is not None:
            capabilities.setdefault("resources", {})  # what was kept aside can be read as one
        return capabilities, instructions

    async def _introduce(self, view: View, visitor: Visitor) -> tuple[Message, str]:
        if await is_searched(view, visitor):
            return _recall_introduction(view)
        found = await view.gather(visitor, _agreement_of)
        agreed = {alias: one for alias, one in found.items() if isinstance(one, Agreement)}
        agreed = {alias: _as_approved(view, alias, one) for alias, one in agreed.items()}
        return merge_capabilities(agreed.values()), _instructions(view, agreed, found)


def _recall_introduction(view: View) -> tuple[Message, str]:
    """The same as it was last seen, where nobody is started for it; log messages are not among it."""
    seen = {alias: one for alias in view.aliases if (one := view.seen(alias)) is not None}
    said = {alias: replace(one, instructions=view.said_by(alias, one.instructions)) for alias, one in seen.items()}
    capabilities = merge_capabilities(said.values())
    capabilities.pop("logging", None)
    return capabilities, _instructions(view, said, {})


def _as_approved(view: View, alias: str, agreed: Agreement) -> Agreement:
    """What a server says of itself, without instructions that wait for a person."""
    return replace(agreed, instructions=view.said_by(alias, agreed.instructions))


async def _agreement_of(line: Line) -> Agreement:
    return await line.agreement()


def merge_capabilities(agreements: Iterable[Agreement | SeenServer]) -> Message:
    """What at least one server can do; tools are always there, so that a client asks for them."""
    merged: Message = {"tools": {"listChanged": True}}
    for agreement in agreements:
        for name, said in agreement.capabilities.items():
            if name in _OFFERED:
                offered = {key: True for key, is_on in as_object(said).items() if is_on}
                merged[name] = {**as_object(merged.get(name)), **offered}
            elif name == "extensions":
                merged[name] = {**as_object(merged.get(name)), **as_object(said)}
    return merged


def _instructions(view: View, agreed: Mapping[str, Agreement | SeenServer], found: Mapping[str, object]) -> str:
    down = {alias: one for alias, one in found.items() if isinstance(one, OutfitterError)}
    missing = tell_missing(down, {alias: view.fallback_of(alias) for alias in down})
    if view.server is not None:
        only = agreed.get(view.server)
        return only.instructions if only is not None else missing
    texts = [f"{alias}: {one.instructions}" for alias, one in agreed.items() if one.instructions]
    return "\n\n".join((*texts, missing) if missing else texts)
