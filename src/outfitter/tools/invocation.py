"""One call from its beginning to its event: what it checks, what it guards, what it leaves behind.

Not here: how the handler is run (``running``) and in which order the steps go (``execution``).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self, cast

from outfitter.calls import (
    Call,
    Done,
    Failed,
    Outcome,
    Refused,
    TimedOut,
    ToolInvoked,
    ToolResult,
    for_the_log,
    outcome_of_error,
    redact,
)
from outfitter.catalog import JsonValue
from outfitter.errors import InvalidArguments, OutfitterError
from outfitter.policy import Approve, Ask, Deny, Verdict, Wish, canonical_digest
from outfitter.session import Transaction
from outfitter.tools.context import ToolContext
from outfitter.tools.enforcement import judge_call, notify, spend_call
from outfitter.tools.limits import Deadline
from outfitter.tools.tool import Tool

_MOST_FAULTS = 8
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Invocation:
    """The state of one call; ``outcome`` is set when it has one."""

    tool: Tool[Any, Any]
    given: object
    context: ToolContext
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.perf_counter)
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    params: object = None
    shown: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The arguments with secrets masked, as they were before the handler could touch them."""
    decision: str = "unasked"
    outcome: Outcome | None = None
    wish: Wish | None = None
    """What a person is to be asked before it may begin."""
    has_begun: bool = False

    def __post_init__(self) -> None:
        """Give the call its id and its earliest deadline."""
        context = self.context
        own = context.call_id if context.call_id != context.begun_as else ""
        self.context = context.for_call(own or secrets.token_hex(16), _earliest(context))

    @property
    def call(self) -> Call:
        """The call as policies see it."""
        tool, context = self.tool, self.context
        return Call(
            tool.name,
            tool.tool,
            self.arguments,
            tool.server,
            context.call_id,
            context.session.session_id,
            read_only=tool.reads_only,
        )

    @property
    def is_free(self) -> bool:
        """Whether no policy has a say."""
        return self.tool.is_free or (not self.context.policies and not self.tool.policies)

    # ── before the handler ──

    def may_begin(self) -> bool:
        """Whether the handler may be run; otherwise the outcome says why not."""
        self.outcome = self._unfit() or self._late() or self._forbidden() or self._broke()
        return self.outcome is None

    def _unfit(self) -> Refused | None:
        try:
            told = self._load()
        except OutfitterError as error:
            return Refused(str(error), error.code)
        except Exception as error:  # noqa: BLE001 - whatever a shape cannot take, the tool must not get
            told = f"they cannot be read ({type(error).__name__})"
        return Refused(f"invalid arguments for '{self.tool.name}': {told}", "invalid_arguments") if told else None

    def _load(self) -> str:
        """Fill in the parameters; what is wrong with the arguments, or nothing."""
        shape, given = self.tool.params, self.given
        arguments: object = {} if given is None else given
        if not isinstance(arguments, dict | Mapping):
            arguments = shape.dump(arguments)
        if not isinstance(arguments, dict | Mapping):
            return "they must be an object"
        named = dict(cast("Mapping[str, JsonValue]", arguments))
        self.shown = redact(named, self.tool.secret_marks)
        if self.shown.keys() != named.keys():
            return "their names must be text"
        self.arguments = named
        try:
            self.params = shape.load(named)
        except InvalidArguments as error:
            return "; ".join(map(str, shape.faults(named)[:_MOST_FAULTS])) or str(error)
        return ""

    def _late(self) -> TimedOut | None:
        if self.context.deadline is None or self.context.deadline.remaining() > 0.0:
            return None
        return TimedOut(f"the deadline has passed; '{self.tool.name}' was not begun")

    def _forbidden(self) -> Refused | None:
        if self.is_free:
            self.decision = "allow"
            return None
        decision, policy = judge_call(self.tool, self.call, self.context)
        if decision.allowed:
            self.decision = "allow"
            return None
        if isinstance(decision, Ask):
            self.decision = "ask"
            self.wish = None if self.approver is None else self._wish(decision, policy)
            return Refused(f"policy '{policy}': {decision.reason}: a person must approve it first", "approval_required")
        self.decision = "deny"
        return Refused(f"policy '{policy}': {decision.reason}", "denied")

    @property
    def approver(self) -> Approve | None:
        """Who is asked where a policy asks."""
        return self.context.approver or self.context.session.approver

    @property
    def approval_seconds(self) -> float:
        """How long a person is waited for."""
        left = None if self.context.deadline is None else self.context.deadline.remaining()
        return self.context.approval_wait if left is None else min(left, self.context.approval_wait)

    def hear(self, verdict: Verdict | None) -> bool:
        """Whether the handler may run after what a person said; the policies are asked again, for time has passed."""
        if verdict is None:
            reason = "" if self.wish is None else self.wish.reason
            self.outcome = Refused(f"nobody approved '{self.tool.name}' in time: {reason}", "approval_expired")
        elif not verdict.is_yes:
            self.outcome = Refused(f"'{self.tool.name}' was {verdict}", "denied")
        else:
            self.outcome = self._late() or self._denied_now() or self._broke()
            self.decision = str(verdict) if self.outcome is None else self.decision
        return self.outcome is None

    def _wish(self, asks: Ask, policy: str) -> Wish:
        """What a yes is bound to: this session, the tool as it is defined, these arguments, the rule that asks."""
        tool, session = self.tool, self.context.session.session_id
        return Wish(
            agent=self.context.adapter,
            run=session,
            server=tool.server or "native",
            tool=tool.tool,
            digest=canonical_digest(dict(self.arguments)),
            pin=canonical_digest([tool.name, tool.description, dict(tool.input_schema)]),
            policy=canonical_digest([policy, asks.reason, repr(asks.rule)]),
            reason=asks.reason,
            shown=tool.name,
            arguments=self.shown,
            asked_by=session,
        )

    def _denied_now(self) -> Refused | None:
        decision, policy = judge_call(self.tool, self.call, self.context)
        return Refused(f"policy '{policy}': {decision.reason}", "denied") if isinstance(decision, Deny) else None

    def _broke(self) -> Refused | None:
        told = None if self.context.budget is None else self.context.budget.spend_call()
        if told is not None:
            return Refused(told, "budget_spent")
        refused = None if self.is_free else spend_call(self.tool, self.call, self.context)
        if refused is not None and self.context.budget is not None:
            self.context.budget.take_back_call()
        return refused

    @property
    def limit(self) -> float | None:
        """The seconds the handler has; None without a limit."""
        own, deadline = self.tool.timeout, self.context.deadline
        if deadline is None:
            return own
        left = deadline.remaining()
        return left if own is None else min(own, left)

    # ── around the handler ──

    def begin(self) -> Transaction:
        """The block in which the handler runs: what it changes of the session's state is kept or undone as one."""
        return self.context.session.transaction()

    def end(self, outcome: Outcome, transaction: Transaction) -> None:
        """Take what came of the handler; its changes stay only when it says that it worked."""
        self.outcome, self.has_begun = outcome, True
        if not isinstance(outcome, Done):
            transaction.rollback()

    def __enter__(self) -> Self:
        """Begin a block that ends in one event, however it ends."""
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        """Leave the event; only what is no Exception goes on rising."""
        if isinstance(error, Exception):
            self.outcome = outcome_of_error(error, server=self.tool.server, fallback=self.tool.fallback)
        elif error is not None:
            self.outcome = Failed(ToolResult("the call was cancelled", None, success=False, code="cancelled"))
        self._leave(self.settled)
        return isinstance(error, Exception)

    @property
    def settled(self) -> Outcome:
        """The outcome of a call that has ended."""
        return self.outcome or Failed(ToolResult("the call has no outcome", None, success=False, code="tool_error"))

    def _leave(self, outcome: Outcome) -> None:
        """Tell the policies and leave the event."""
        if not self.is_free:
            notify(self.tool, self.call, outcome, self.context)
        try:
            self.context.session.dispatch(self._event(outcome))
        except Exception:  # noqa: BLE001 - a dispatcher may be foreign; the call has ended already
            _log.exception("the event of '%s' could not be dispatched", self.tool.name)

    def _event(self, outcome: Outcome) -> ToolInvoked:
        server = self.tool.server
        return ToolInvoked(
            name=self.tool.name,
            adapter=self.context.adapter if server is None else f"mcp:{server}",
            params=self.shown,
            outcome=for_the_log(outcome),
            source=self.tool.source,
            created_at=self.created_at,
            duration=time.perf_counter() - self.started,
            call_id=self.context.call_id,
            mcp_server=server,
            session_id=self.context.session.session_id,
            decision=self.decision,
        )


def _earliest(context: ToolContext) -> Deadline | None:
    if context.budget is None or context.budget.budget.deadline is None:
        return context.deadline
    other = context.budget.budget.deadline
    return other if context.deadline is None else min(context.deadline, other, key=lambda each: each.expires_at)
