"""The credentials that came with runs: in memory only, until their run ends or nobody has asked for them in a day.

In a stored plan a reference stands in their place, ``{"$secret": "credential:<run>/<number>"}``. It is filled from
here, and nothing can be sent with it once the book has forgotten it.
"""

from __future__ import annotations

from collections.abc import Mapping

from outfitter.basics import Secret, SecretRef

PROVIDER = "credential"


HELD_SECONDS = 24 * 3600.0
"""How long credentials that nobody asks for are held: a run whose end is never told does not keep them for ever."""


class CredentialBook:
    """Which secret a reference of a run stands for. Times are seconds of a clock that only goes on."""

    __slots__ = ("_asked", "_held")

    def __init__(self) -> None:
        self._held: dict[str, Mapping[SecretRef, Secret]] = {}
        self._asked: dict[str, float] = {}

    def __repr__(self) -> str:
        """Say how many runs have some, and nothing of them."""
        return f"CredentialBook({len(self._held)} runs)"

    def runs(self, now: float) -> frozenset[str]:
        """The runs whose secrets are still held."""
        for run_id in [run_id for run_id, asked in self._asked.items() if asked + HELD_SECONDS < now]:
            self.drop(run_id)
        return frozenset(self._held)

    def hold(self, run_id: str, secrets: Mapping[SecretRef, Secret], now: float) -> None:
        """Keep the secrets of a run."""
        if secrets:
            self._held[run_id], self._asked[run_id] = dict(secrets), now

    def of(self, run_id: str, now: float) -> Mapping[SecretRef, Secret]:
        """The secrets of a run that are still held."""
        if run_id not in self.runs(now):
            return {}
        self._asked[run_id] = now
        return self._held[run_id]

    def drop(self, run_id: str) -> None:
        """Forget the secrets of a run."""
        self._held.pop(run_id, None)
        self._asked.pop(run_id, None)


def reference(run_id: str, number: int) -> SecretRef:
    """The reference that stands for one credential of a run."""
    return SecretRef(f"{run_id}/{number}", PROVIDER)
