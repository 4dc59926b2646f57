"""The form of a promise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """One sentence a user may rely on, and the document it comes from."""

    id: str
    sentence: str
    document: str
