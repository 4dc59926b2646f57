"""Is there anything left to spend? A call is counted before it is sent; what it has used is counted when it has ended.

A call that the fast lane has begun was counted there. A budget that is used up is a result that the model can read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import msgspec

from outfitter.errors import StorageUnavailable
from outfitter.gateway.asked import Asked, Next, told
from outfitter.gateway.budgets import Accounts
from outfitter.gateway.faults import UPSTREAM_UNAVAILABLE, Rejected
from outfitter.gateway.kept import OWN
from outfitter.gateway.records import canonical
from outfitter.policy import Deny, Meter, Refusal
from outfitter.upstream import BEGUN, Message

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Spending:
    """Counts a call against the budgets of its agent."""

    accounts: Accounts

    async def __call__(self, asked: Asked, go_on: Next) -> Message:
        """Refuse a call whose budget is used up; count what any other uses."""
        if asked.item is None and not asked.own:
            raise TypeError("a call is counted after its tool is found")
        server, tool = (OWN, asked.own) if asked.item is None else (asked.item.alias, asked.item.name)
        meter = self.accounts.meter_of(asked.view.seat, server, tool)
        if meter is None:
            return await go_on(asked)
        arguments = canonical(asked.arguments)
        refused = None if BEGUN.get() is not None else _spend(meter, arguments)
        if refused is not None:
            self.accounts.note_refusal(asked.view.seat.agent, refused)
            asked.decision = Deny(refused.text)
            return told(f"'{asked.name}' was refused: {refused.text}", code=refused.code, **refused.data)
        size = len(arguments)
        try:
            result = await go_on(asked)
            size += len(_encode(result))
        finally:
            _charge(meter, size)
        return result


def _spend(meter: Meter, arguments: bytes) -> Refusal | None:
    try:
        return meter.spend(arguments)
    except StorageUnavailable as error:
        data = {"code": "not_counted", "retryAfter": 1.0}
        raise Rejected(error.message, rpc_code=UPSTREAM_UNAVAILABLE, status=503, data=data) from None


def _charge(meter: Meter, size: int) -> None:
    """The call has happened: one that cannot be counted is told in the log, and its answer goes out."""
    try:
        meter.charge(size)
    except StorageUnavailable as error:
        _log.error("%d bytes of a call were not counted: %s", size, error)
