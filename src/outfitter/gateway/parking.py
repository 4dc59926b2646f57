"""Calls that wait for their client: a modern client is asked by an answer and comes back with the next request.

A handshake-era server asks in the middle of a call. The call goes on waiting here, in a task of its own, while the
client gets ``input_required`` with a sealed handle. The handle is bound to the client and the request; a call that
nobody comes back for ends by its time limit.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from outfitter.gateway.faults import INVALID_PARAMS, Rejected
from outfitter.gateway.views import as_object
from outfitter.gateway.visitors import Principal
from outfitter.upstream import Message

WAIT_SECONDS = 300.0
MOST_PARKED = 1000
_MARK = "outfitter1."


@dataclass(slots=True, eq=False)
class Parked:
    """One call, whose client may come and go."""

    owner: str
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    outcome: Message | Exception | None = None
    question: tuple[str, Message] | None = None
    _changed: anyio.Event = field(default_factory=anyio.Event)
    _answered: anyio.Event = field(default_factory=anyio.Event)
    _answer: Message | None = None

    async def ask(self, method: str, params: Message) -> Message:
        """Put a question and wait for the client to come back with the answer."""
        self.question, self._answer, self._answered = (method, params), None, anyio.Event()
        self._tell()
        with anyio.move_on_after(WAIT_SECONDS):
            await self._answered.wait()
        if self._answer is None:
            raise Rejected(f"the client did not come back to answer {method}", rpc_code=INVALID_PARAMS)
        return self._answer

    def answer(self, responses: Message) -> None:
        """Take what the client brought."""
        self.question = None
        self._answer = as_object(responses.get("question"))
        self._answered.set()

    async def next_word(self) -> None:
        """Wait until the call has ended or asks something."""
        while self.outcome is None and self.question is None:
            await self._changed.wait()

    def end(self, outcome: Message | Exception) -> None:
        """The call has ended."""
        self.outcome = outcome
        self._tell()

    def _tell(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


@dataclass(slots=True)
class ParkingLot:
    """The calls that wait; their tasks belong to the gateway, not to a request."""

    tasks: TaskGroup
    mark: str = ""
    """What every handle begins with: it says which worker has the call."""
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _parked: dict[str, Parked] = field(default_factory=dict[str, Parked])

    def start(self, owner: str, job: Callable[[Parked], Awaitable[Message]]) -> Parked:
        """Begin a call that may be parked."""
        parked = Parked(owner)

        async def run() -> None:
            with parked.scope:
                try:
                    parked.end(await job(parked))
                except Exception as error:  # noqa: BLE001 - handed to the request that waits for it
                    parked.end(error)

        self.tasks.start_soon(run)
        return parked

    def park(self, parked: Parked) -> str:
        """The sealed handle under which the call waits."""
        if len(self._parked) >= MOST_PARKED:
            oldest = next(iter(self._parked))
            self._parked.pop(oldest).scope.cancel()
        handle = self.mark + secrets.token_hex(16)
        self._parked[handle] = parked
        return f"{_MARK}{handle}.{self._seal(handle, parked.owner)}"

    def find(self, state: object, owner: str) -> Parked | None:
        """The call behind a handle; None when the state is not one of ours, Rejected when it is not the caller's."""
        named = handle_of(state)
        if named is None:
            return None
        handle, _, seal = named.partition(".")
        parked = self._parked.get(handle)
        if not hmac.compare_digest(seal, self._seal(handle, owner)) or parked is None or parked.owner != owner:
            raise Rejected("the request state is not valid, or its call has ended", rpc_code=INVALID_PARAMS, status=400)
        del self._parked[handle]
        return parked

    def _seal(self, handle: str, owner: str) -> str:
        digest = hmac.new(self._key, f"{handle}\0{owner}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def handle_of(state: object) -> str | None:
    """The handle in a request state, with its seal; None when the state is not one of ours."""
    return state.removeprefix(_MARK) if isinstance(state, str) and state.startswith(_MARK) else None


def owner_of(principal: Principal, method: str, params: Message) -> str:
    """What a parked call is bound to: the client, the method, and what it asked for."""
    asked = params.get("name") if "name" in params else params.get("uri")
    return f"{principal.agent}\0{principal.token_id}\0{method}\0{asked}"
