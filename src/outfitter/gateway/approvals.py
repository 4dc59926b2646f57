"""Where calls wait for a person: the port that ``storage`` fills. What is asked is ``wishes``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from outfitter.policy import Verdict, Wish

if TYPE_CHECKING:
    from outfitter.storage import Approval


class Approvals(Protocol):
    """Where wishes wait for a person. All but ``look`` may block for a moment."""

    @property
    def wait(self) -> float:
        """The seconds that a call waits."""
        ...

    def ask(self, wish: Wish, seconds: float) -> Approval | None:
        """A wish that waits now, or what is known of an equal one; None when nobody can be asked."""
        ...

    def look(self, ident: str) -> str:
        """How a wish stands."""
        ...

    def take(self, ident: str) -> Approval:
        """Use the yes of a wish, if there is one; it is used once."""
        ...

    def answer(self, ident: str, verdict: Verdict) -> Approval:
        """Take what the person at the client said, unless somebody was first."""
        ...

    def leave(self, ident: str) -> None:
        """Nobody waits for it any more."""
        ...


@dataclass(frozen=True, slots=True)
class _Nobody:
    """Nobody is there to be asked."""

    wait: float = 0.0

    def ask(self, wish: Wish, seconds: float) -> Approval | None:
        """Nothing."""
        del wish, seconds

    def look(self, ident: str) -> str:
        """Expired."""
        del ident
        return "expired"

    def take(self, ident: str) -> Approval:
        """Nothing was asked."""
        raise LookupError(ident)

    def answer(self, ident: str, verdict: Verdict) -> Approval:
        """Nothing was asked."""
        del verdict
        raise LookupError(ident)

    def leave(self, ident: str) -> None:
        """Nothing to leave."""
        del ident


NOBODY: Approvals = _Nobody()
