"""How a secret is held and pointed at.

A ``Secret`` keeps its text out of str, repr, logs, errors and pickles. A ``SecretRef`` says where a secret can be
fetched; fetching is I/O and happens in ``upstream``. ``reveal`` is for the place that opens a connection and no other.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from outfitter.errors import InvalidHeader

MASK = "••••••"


class Secret:
    """A text that does not show itself."""

    __slots__ = ("_text",)
    _text: str

    def __init__(self, text: str) -> None:
        """Hold the text."""
        object.__setattr__(self, "_text", text)

    @classmethod
    def compose(cls, render: Callable[[tuple[str, ...]], str], *parts: str | Secret) -> Secret:
        """A secret made of others and of plain text, without showing any of them."""
        return cls(render(tuple(part.reveal() if isinstance(part, Secret) else part for part in parts)))

    def reveal(self) -> str:
        """The text in clear; only where a connection is opened."""
        return self._text

    def fault(self, check: Callable[[str], str | None]) -> str | None:
        """What a check says is wrong with the text; the check must not quote it."""
        return check(self._text)

    @property
    def fingerprint(self) -> str:
        """Six hex digits that tell two secrets apart and give neither away."""
        return hashlib.blake2s(self._text.encode("utf-8", "surrogatepass"), person=b"outfitte").hexdigest()[:6]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        """Refuse: a secret does not change."""
        raise AttributeError("a Secret cannot be changed")

    def __eq__(self, other: object) -> bool:
        """Compare in constant time."""
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(
            self._text.encode("utf-8", "surrogatepass"), other._text.encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        """Hash like the text."""
        return hash((Secret, self._text))

    def __str__(self) -> str:
        """Show a mask and the fingerprint."""
        return f"{MASK} #{self.fingerprint}"

    def __repr__(self) -> str:
        """Show the fingerprint only."""
        return f"Secret(#{self.fingerprint})"

    def __format__(self, spec: str) -> str:
        """Show the mask, whatever the format."""
        return format(str(self), spec)

    def __reduce__(self) -> NoReturn:
        """Refuse: a secret is not written anywhere."""
        raise TypeError("a Secret cannot be pickled or copied to another process")

    def __copy__(self) -> Secret:
        """Itself: it does not change."""
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        """Itself: it does not change."""
        return self


_SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./@-]{0,199}", re.ASCII)
_PROVIDER_NAME = re.compile(r"[a-z][a-z0-9]{0,31}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret is kept: a provider (``env``, ``file``, ``keyring``, …) and the name it has there."""

    name: str
    provider: str = "default"

    def __post_init__(self) -> None:
        """Refuse names that could climb out of a provider's own space."""
        if _SECRET_NAME.fullmatch(self.name) is None or ".." in self.name.split("/"):
            raise InvalidHeader(
                "invalid secret name", hint="letters, digits and '_./@-', no '..', at most 200 characters"
            )
        if _PROVIDER_NAME.fullmatch(self.provider) is None:
            raise InvalidHeader(
                "invalid secret provider", hint='write {"$secret": "env:NAME"}, "file:name" or "keyring:service/name"'
            )

    @classmethod
    def parse(cls, text: str) -> SecretRef:
        """Read ``provider:name``, or a bare name for the default provider."""
        provider, colon, name = text.partition(":")
        return cls(name, provider) if colon else cls(text)

    def __str__(self) -> str:
        """Write it the way it is read."""
        return self.name if self.provider == "default" else f"{self.provider}:{self.name}"


_SENSITIVE_WORDS = re.compile(
    r"(^|[-_])(authorization|apikey|token|secret|password|passwd|pwd|cookie|credentials?)($|[-_])|api[-_]key|[-_]key$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def looks_sensitive(name: str) -> bool:
    """Whether a header or variable of this name usually holds a secret."""
    return _SENSITIVE_WORDS.search(name) is not None
