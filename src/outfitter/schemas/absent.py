"""How a field says that it was not given at all, which is something else than ``None``: JSON has a null of its own."""

from __future__ import annotations

from typing import Final, final


@final
class Absent:
    """The type of ABSENT; there is one instance, in every copy and after every pickle."""

    __slots__ = ()

    def __bool__(self) -> bool:
        """Nothing was given."""
        return False

    def __repr__(self) -> str:
        """Its name."""
        return "ABSENT"

    def __reduce__(self) -> str:
        """Found again by its name, so that a copy is the same object."""
        return "ABSENT"


ABSENT: Final = Absent()
"""The value of an optional field that was not given; it is false and never sent."""
