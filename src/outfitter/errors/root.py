"""The root of the tree: what every error carries."""

from __future__ import annotations

from typing import ClassVar, Self


class OutfitterError(Exception):
    """The root: catch this to catch everything Outfitter raises on purpose."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        """Keep the parts apart, so that each door can lay them out its own way."""
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint
        self.trail: tuple[str | int, ...] = ()

    def under(self, *keys: str | int) -> Self:
        """The same error, found deeper: readers add the keys they came through while it rises."""
        self.trail = (*keys, *self.trail)
        return self

    def locate(self, source: str, line: int | None, path: str) -> None:
        """Say in which file, at which line and JSON pointer it was found."""
        place = source if line is None else f"{source}:{line}"
        self.where = f"{place} at {path}" if path else place

    def __str__(self) -> str:
        """Say where, what, and what to do, on one line."""
        start = f"{self.where}: " if self.where else ""
        end = f" ({self.hint})" if self.hint else ""
        return f"{start}{self.message}{end}"
