"""What a person is asked when a policy answers Ask, what a person may say, and whoever asks one.

A wish says what a yes is bound to: another argument, another definition of the tool or another policy is another wish.
Pure: where wishes wait is ``storage``; who waits for an answer is the gateway, or ``tools`` in our own process.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, cast, runtime_checkable

from outfitter.catalog import JsonValue


@dataclass(frozen=True, slots=True)
class Wish:
    """One call that needs a yes."""

    agent: str
    server: str
    tool: str
    digest: str
    """Of the arguments as they are sent; see ``canonical_digest``."""
    pin: str = ""
    """Digest of the tool's definition."""
    policy: str = ""
    """Digest of the rules that ask."""
    run: str = ""
    reason: str = ""
    """Why a person is asked, in the policy's words."""
    shown: str = ""
    """The name that the model used."""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """With secrets masked: this is what the person sees."""
    asked_by: str = ""
    """Whose call it is: a token, or a session."""

    @property
    def binding(self) -> str:
        """What a yes holds for, as one digest."""
        bound = (self.agent, self.run, self.server, self.tool, self.digest, self.pin, self.policy)
        return canonical_digest(list(bound))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person said, who it was, and where."""

    is_yes: bool
    by: str = ""
    where: str = ""

    def __str__(self) -> str:
        """As it is written down of a call."""
        whom = " ".join(filter(None, (f"by {self.by}" if self.by else "", f"({self.where})" if self.where else "")))
        return f"{'approved' if self.is_yes else 'refused'} {whom or 'by a person'}"


@runtime_checkable
class Approver(Protocol):
    """Who asks a person, from code that blocks and from code that awaits; None when nobody answered in time."""

    def approve(self, wish: Wish, seconds: float) -> Verdict | None:
        """What a person says within so many seconds."""
        ...

    async def aapprove(self, wish: Wish, seconds: float) -> Verdict | None:
        """The same, awaited."""
        ...


Said: TypeAlias = bool | Verdict | None
Approve: TypeAlias = Approver | Callable[[Wish], Said | Awaitable[Said]]
"""Whoever can be asked: an approver, or a function of the wish that says yes, no, or nothing."""


def canonical_digest(value: object) -> str:
    """SHA-256 of a JSON value with sorted keys; what is no JSON is equal to nothing, not even to itself."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_foreign)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _foreign(value: object) -> object:
    return dict(cast("Mapping[str, object]", value)) if isinstance(value, Mapping) else secrets.token_hex(16)
