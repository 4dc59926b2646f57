"""Which tokens the gate knows now: those of a snapshot until the registry is open, then the registry's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outfitter.gateway import TokenRecord, TokenSource

_TURN = 1 << 48


@dataclass(frozen=True, slots=True)
class KnownTokens:
    """Tokens that do not change; one that ends by itself ends all the same."""

    records: Mapping[str, TokenRecord] = field(default_factory=dict[str, "TokenRecord"])

    @classmethod
    def of(cls, records: Iterable[TokenRecord]) -> KnownTokens:
        """These and no others."""
        return cls({record.digest: record for record in records})

    def look(self, now: float) -> int:
        """Never another number."""
        del now
        return 0

    def find(self, token: str) -> TokenRecord | None:
        """The valid record of a token; None for anything else."""
        from outfitter.gateway import token_digest

        record = self.records.get(token_digest(token))
        return record if record is not None and record.is_valid(datetime.now(UTC)) else None


@dataclass(slots=True)
class Passes:
    """A source of tokens that can be exchanged for another while the gateway runs."""

    source: TokenSource = field(default_factory=KnownTokens)
    _turns: int = 0

    def use(self, source: TokenSource) -> None:
        """Ask this one from now on."""
        self.source = source
        self._turns += 1

    def look(self, now: float) -> int:
        """A number that is another one whenever a token has changed, or the source."""
        return self._turns * _TURN + self.source.look(now)

    def find(self, token: str) -> TokenRecord | None:
        """The valid record of a token; None for anything else."""
        return self.source.find(token)
