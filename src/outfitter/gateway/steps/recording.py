"""Every call leaves a record before its answer goes out, whatever came of it. The outermost step."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from outfitter.calls import redact
from outfitter.catalog import NOTHING_KEPT, Agent, RecordRule
from outfitter.errors import OutfitterError, StorageUnavailable, UpstreamError
from outfitter.gateway.asked import OUTCOME, Asked, Next
from outfitter.gateway.faults import UPSTREAM_UNAVAILABLE, Rejected, rpc_error
from outfitter.gateway.kept import OWN
from outfitter.gateway.recorder import Recorder
from outfitter.gateway.records import CallRecord, Result, canonical, measure
from outfitter.gateway.trace import Trace, join_trace
from outfitter.gateway.views import as_object
from outfitter.policy import Allow, Deny
from outfitter.upstream import Message

_LONGEST_KEPT = 64 * 1024
_REFUSED = frozenset({400, 429, 503})
_TOLD: Mapping[str, Result] = {
    "denied": "denied",
    "approval_required": "denied",
    "budget_exceeded": "refused",
    "loop": "refused",
    "approval_expired": "denied",
    "pin_mismatch": "denied",
    "exec_changed": "denied",
    "unpinned_package": "denied",
    "upstream_down": "unavailable",
    "needs_auth": "unavailable",
}


@dataclass(frozen=True, slots=True)
class Keeping:
    """Whose arguments and results are kept, redacted: those of the agents whose own rule says so, and of those here."""

    arguments: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()

    def of(self, agent: Agent) -> RecordRule:
        """What is kept of this agent's calls."""
        name, own = agent.name, agent.records
        return RecordRule(own.arguments or name in self.arguments, own.results or name in self.results)

    def concerns(self, agent: Agent) -> bool:
        """Whether anything of this agent's calls is kept."""
        return self.of(agent) != NOTHING_KEPT


@dataclass(slots=True)
class _Found:
    """What came of a call."""

    outcome: Result
    code: str = ""
    answer: object = None


@dataclass(frozen=True, slots=True)
class Recording:
    """Writes the record of a call."""

    recorder: Recorder
    keeping: Keeping = field(default_factory=Keeping)

    async def __call__(self, asked: Asked, go_on: Next) -> Message:
        """Record what came of the call; a call that cannot be recorded does not happen."""
        try:
            self.recorder.prepare()
        except StorageUnavailable as full:
            raise _unrecorded(full) from None
        began, tick = time.time(), time.perf_counter()
        trace = _join(asked)
        try:
            result = await go_on(asked)
        except OutfitterError as error:
            self._write(asked, _found_of(asked, error), began, tick, trace)
            raise
        except Exception:
            self._write(asked, _Found("failed", "internal"), began, tick, trace)
            raise
        except BaseException:
            with suppress(Rejected):  # nobody waits for the answer any more
                self._write(asked, _Found("cancelled", "cancelled"), began, tick, trace)
            raise
        self._write(asked, _found_in(result), began, tick, trace)
        return result

    def _write(self, asked: Asked, found: _Found, began: float, tick: float, trace: Trace | None) -> None:
        record = self._record(asked, found, began, time.perf_counter() - tick, trace)
        try:
            self.recorder.record(record)
        except StorageUnavailable as full:
            raise _unrecorded(full) from None

    def _record(self, asked: Asked, found: _Found, began: float, took: float, trace: Trace | None) -> CallRecord:
        who, item, arguments = asked.visitor.principal, asked.item, asked.arguments
        text = msgspec.json.encode(found.answer) if found.answer is not None else b""
        bytes_in, digest = measure(canonical(arguments))
        return CallRecord(
            call_id=asked.call_id, agent=who.agent, token_id=who.token_id, run_id=who.run_id,
            started_at=began, duration=took, outcome=found.outcome, code=found.code,
            shown=asked.name[:256], server=item.alias if item else asked.missing or (OWN if asked.own else ""),
            tool=item.name if item else asked.own,
            decision="" if item is None else _word(asked), rule=_why(asked),
            bytes_in=bytes_in, bytes_out=len(text), digest=digest,
            trace_id=trace.trace_id if trace else asked.call_id,
            span_id=trace.span_id if trace else "", parent_id=trace.parent_id if trace else "",
            trace_flags=trace.flags if trace else "",
            arguments=self._kept_arguments(asked), result=self._kept_result(asked, found.answer),
        )  # fmt: skip

    def _kept_arguments(self, asked: Asked) -> msgspec.Raw | None:
        if not self.keeping.of(asked.view.seat.plan.agent).arguments:
            return None
        schema = None if asked.item is None else as_object(asked.item.entry.get("inputSchema"))
        return _kept(redact(asked.arguments, cast("Any", schema)))

    def _kept_result(self, asked: Asked, answer: object) -> msgspec.Raw | None:
        if not self.keeping.of(asked.view.seat.plan.agent).results or not isinstance(answer, dict):
            return None
        return _kept(redact(cast("Message", answer)))


def _kept(value: object) -> msgspec.Raw:
    text = msgspec.json.encode(value)
    return msgspec.Raw(text if len(text) <= _LONGEST_KEPT else b'"(too long to be kept)"')


def _join(asked: Asked) -> Trace | None:
    """Continue the caller's trace, and have the server told of it."""
    joined = join_trace(as_object(asked.params.get("_meta")))
    if joined is None:
        return None
    asked.params = {**asked.params, "_meta": joined[1]}
    return joined[0]


def _word(asked: Asked) -> Any:  # noqa: ANN401 - one of the words of a record
    if asked.decision is None:
        return ""
    return "allow" if isinstance(asked.decision, Allow) else "deny" if isinstance(asked.decision, Deny) else "ask"


def _why(asked: Asked) -> str:
    """In the policy's words; with who has said what of it, where a person was asked."""
    reason = "" if asked.decision is None else asked.decision.reason
    return reason if asked.verdict is None else f"{reason} ({asked.verdict})"


def _found_in(result: Message) -> _Found:
    if not result.get("isError"):
        return _Found("done", "", result)
    code = as_object(as_object(result.get("_meta")).get(OUTCOME)).get("code")
    if not isinstance(code, str):
        return _Found("tool_error", "tool_error", result)
    return _Found(_TOLD.get(code, "failed"), code, result)


def _found_of(asked: Asked, error: OutfitterError) -> _Found:
    shown = rpc_error(error)
    if isinstance(error, Rejected):
        said = as_object(error.data).get("code")
        code = said if isinstance(said, str) else str(error.rpc_code)
        is_refused = asked.decision is None and error.status in _REFUSED
        outcome: Result = "refused" if is_refused else "unknown" if asked.item is None else "failed"
        return _Found(outcome, code, shown)
    if isinstance(error, UpstreamError):
        return _Found("failed", str(error.rpc_code), shown)
    return _Found("failed", error.code, shown)


def _unrecorded(full: StorageUnavailable) -> Rejected:
    data = {"code": "not_recorded", "retryAfter": 1.0}
    return Rejected(full.message, rpc_code=UPSTREAM_UNAVAILABLE, status=503, data=data)
