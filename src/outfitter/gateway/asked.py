"""A tool call on its way through the pipeline: what was asked, and what the steps have found so far."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.gateway.views import Item, View, as_object
from outfitter.gateway.visitors import Visitor
from outfitter.policy import Decision, Verdict
from outfitter.upstream import Message


@dataclass(slots=True)
class Asked:
    """One tools/call. ``item`` is None until the tool is found, ``decision`` until the policies were asked."""

    view: View
    visitor: Visitor
    params: Message = field(repr=False)
    call_id: str
    headers: Sequence[tuple[str, str]] | None = field(default=None, repr=False)
    """Those of a modern request over HTTP, which repeat what the body says; None where there are none."""
    item: Item | None = None
    decision: Decision | None = None
    verdict: Verdict | None = None
    """What a person said of the call, where a rule asks."""
    missing: str = ""
    """The server that may have the tool and could not be asked for it."""
    own: str = ""
    """The tool of the gateway itself that is called; no server has it."""

    @property
    def name(self) -> str:
        """The name the client used; empty when it is no text."""
        given = self.params.get("name")
        return given if isinstance(given, str) else ""

    @property
    def arguments(self) -> Message:
        """The arguments as given."""
        return as_object(self.params.get("arguments"))


OUTCOME = "outfitter/outcome"
"""Where the gateway's own results say what went wrong; nobody else's result says anything there."""
Next: TypeAlias = Callable[[Asked], Awaitable[Message]]
Step: TypeAlias = Callable[[Asked, Next], Awaitable[Message]]


def told(text: str, *, code: str, **details: object) -> Message:
    """A result that tells the model what went wrong; programs find the code in ``_meta``."""
    return {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {OUTCOME: {"code": code, **details}},
    }
