"""What does a fault make of a reply? And whom does it strike?

Pure: replies in, utterances out. An utterance is a message, or raw bytes that are to be written as they are. Dying,
resetting and answering with bare statuses is left to the servers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from outfitter.testing.exchange import Ledger, Message, part
from outfitter.testing.faults import DuplicateReply, Garbage, Huge, RequestFault, Slow, WrongId
from outfitter.testing.script import Script

_PIECE = 1 << 16


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes in place of a message: a head, so many filling bytes, a tail; in pieces with pauses if so wished."""

    head: bytes
    fill: int = 0
    tail: bytes = b""
    framed: bool = True
    piece: int = _PIECE
    interval: float = 0.0

    def pieces(self) -> Iterator[bytes]:
        """What is to be written, piece by piece; the filling is never held whole."""
        yield from _cut(self.head, self.piece)
        for start in range(0, self.fill, self.piece):
            yield b"x" * min(self.piece, self.fill - start)
        yield from _cut(self.tail, self.piece)


Utterance: TypeAlias = Message | Raw


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def encode(message: Message) -> bytes:
    """A message as JSON on one line."""
    return json.dumps(message, separators=(",", ":")).encode()


def is_reply(message: Message) -> bool:
    """Whether a message answers a request."""
    return "method" not in message


def strike(script: Script, ledger: Ledger, message: Message) -> RequestFault | None:
    """The fault that strikes this message, if any. Counts it for every fault that waits for requests like it."""
    struck: RequestFault | None = None
    method, params = str(message.get("method")), part(message, "params")
    name = params.get("name", params.get("uri"))
    for index, fault in enumerate(script.faults):
        if isinstance(fault, RequestFault) and fault.when.fits(method, name):
            ledger.strikes[index] += 1
            if struck is None and fault.when.strikes(ledger.strikes[index]):
                struck = fault
    return struck


def twist(fault: RequestFault | None, reply: Message) -> tuple[Utterance, ...]:
    """What is said in place of a reply."""
    match fault:
        case WrongId():
            return ({**reply, "id": "nobody-asked"},)
        case DuplicateReply():
            return (reply, reply)
        case Garbage():
            return (Raw(fault.text.encode("utf-8", "surrogateescape")),)
        case Slow():
            return (Raw(encode(reply), piece=fault.bytes_per_interval, interval=fault.interval),)
        case Huge():
            return (_huge(fault, reply),)
        case _:
            return (reply,)


def _huge(fault: Huge, reply: Message) -> Raw:
    if not fault.framed:
        return Raw(b"", fault.size, framed=False)
    result = {"resultType": "complete", "isError": False, "content": [{"type": "text", "text": "@"}]}
    head, _, tail = encode({"jsonrpc": "2.0", "id": reply.get("id"), "result": result}).partition(b"@")
    return Raw(head, fault.size, tail)
