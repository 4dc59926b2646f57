"""The credentials that came with runs: in memory only, until their run ends.

In a stored plan a reference stands in their place, ``{"$secret": "credential:<run>/<number>"}``. It is filled from
here, and nothing can be sent with it once the book has forgotten it.
"""

from __future__ import annotations

from collections.abc import Mapping

from outfitter.basics import Secret, SecretRef

PROVIDER = "credential"


class CredentialBook:
    """Which secret a reference of a run stands for."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, Mapping[SecretRef, Secret]] = {}

    def __repr__(self) -> str:
        """Say how many runs have some, and nothing of them."""
        return f"CredentialBook({len(self._held)} runs)"

    def hold(self, run_id: str, secrets: Mapping[SecretRef, Secret]) -> None:
        """Keep the secrets of a run."""
        if secrets:
            self._held[run_id] = dict(secrets)

    def of(self, run_id: str) -> Mapping[SecretRef, Secret]:
        """The secrets of a run that are still held."""
        return self._held.get(run_id, {})

    def drop(self, run_id: str) -> None:
        """Forget the secrets of a run."""
        self._held.pop(run_id, None)


def reference(run_id: str, number: int) -> SecretRef:
    """The reference that stands for one credential of a run."""
    return SecretRef(f"{run_id}/{number}", PROVIDER)
