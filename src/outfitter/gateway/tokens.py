"""Who may come in: tokens for agents, kept as digests.

A token is shown once, when it is issued. It names one agent, and one server of it when it is bound to that endpoint; it
may end by itself and can be revoked. The file is read again when it changes, so a running gateway follows.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, cast

from outfitter.errors import InvalidDocument, NotFound, StorageUnavailable
from outfitter.gateway.visitors import Principal
from outfitter.storage import write_private

_PREFIX = "oft"
_LOOK_SECONDS = 0.05
"""How long a token may go on after another process has revoked it."""


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """What is kept of a token; times are ISO texts in UTC."""

    id: str
    digest: str
    agent: str
    created_at: str
    server: str | None = None
    run_id: str | None = None
    label: str = ""
    expires_at: str | None = None
    revoked_at: str | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it lets anyone in at this moment."""
        return self.revoked_at is None and now.timestamp() < self.ends

    @property
    def ends(self) -> float:
        """When it ends by itself, in seconds since 1970."""
        return float("inf") if self.expires_at is None else datetime.fromisoformat(self.expires_at).timestamp()

    @property
    def principal(self) -> Principal:
        """Whom it stands for."""
        return Principal(self.agent, self.id, self.server, self.run_id, self.ends)


class TokenSource(Protocol):
    """Where the gate looks tokens up; it must not block."""

    def look(self, now: float) -> int:
        """A number that is another one whenever a token was added, ended or changed; ``now`` is monotonic."""
        ...

    def find(self, token: str) -> TokenRecord | None:
        """The valid record of a token; None for anything else."""
        ...


def new_token(ident: str) -> str:
    """A token that nobody can guess; its id stands in it, so that people can tell which one it is."""
    return f"{_PREFIX}_{ident}_{secrets.token_urlsafe(32)}"


def is_ours(text: str) -> bool:
    """Whether a text has a token of ours in it, by its looks."""
    return f"{_PREFIX}_" in text


def token_digest(token: str) -> str:
    """What is kept instead of the token; it is random enough that nothing slower is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(slots=True)
class TokenBook:
    """The tokens in one file, readable by its owner only."""

    path: Path
    generation: int = 0
    """Another number whenever a token was added, ended or changed; see ``look``."""
    _records: dict[str, TokenRecord] = field(default_factory=dict[str, TokenRecord])
    _seen: tuple[int, int] | None = None
    _looked: float = float("-inf")

    def issue(self, agent: str, *, server: str | None = None, run_id: str | None = None, label: str = "",
              expires_at: datetime | None = None) -> tuple[str, TokenRecord]:  # fmt: skip
        """A new token, in clear for this once, and what is kept of it."""
        self._load()
        ident = secrets.token_hex(4)
        token = new_token(ident)
        ending = None if expires_at is None else expires_at.astimezone(UTC).isoformat()
        record = TokenRecord(
            ident, token_digest(token), agent, datetime.now(UTC).isoformat(), server, run_id, label, ending
        )
        self._records[record.digest] = record
        self._save()
        return token, record

    def revoke(self, ident: str) -> TokenRecord:
        """End a token now; NotFound when there is none of this id."""
        self._load()
        for record in self._records.values():
            if record.id == ident:
                ended = TokenRecord(**{**asdict(record), "revoked_at": datetime.now(UTC).isoformat()})
                self._records[record.digest] = ended
                self._save()
                return ended
        raise NotFound(f"no token '{ident}'", hint="outfitter token list shows them")

    def find(self, token: str, now: datetime | None = None) -> TokenRecord | None:
        """The valid record of a token; None for anything else."""
        self.look(time.monotonic())
        record = self._records.get(token_digest(token))
        return record if record is not None and record.is_valid(now or datetime.now(UTC)) else None

    def look(self, now: float) -> int:
        """The generation, after a look at the file when the last one was a while ago."""
        if now - self._looked > _LOOK_SECONDS:
            self._load()
            self._looked = now
        return self.generation

    def records(self) -> tuple[TokenRecord, ...]:
        """Every token ever issued, oldest first."""
        self._load()
        return tuple(self._records.values())

    def _load(self) -> None:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._take({}, None)
            return
        except OSError as error:
            raise StorageUnavailable(f"the tokens cannot be read: {error.strerror}", where=str(self.path)) from None
        if self._seen == (stat.st_mtime_ns, stat.st_size):
            return
        self._take({record.digest: record for record in _read(self.path)}, (stat.st_mtime_ns, stat.st_size))

    def _take(self, records: dict[str, TokenRecord], seen: tuple[int, int] | None) -> None:
        if records != self._records:
            self.generation += 1
        self._records, self._seen = records, seen

    def _save(self) -> None:
        self.generation += 1
        write_private(self.path, json.dumps([asdict(record) for record in self._records.values()], indent=1))
        stat = self.path.stat()
        self._seen = (stat.st_mtime_ns, stat.st_size)


def _read(path: Path) -> list[TokenRecord]:
    try:
        entries = cast("list[Mapping[str, Any]]", json.loads(path.read_text(encoding="utf-8")))
        return [TokenRecord(**entry) for entry in entries]
    except (ValueError, TypeError, OSError):
        hint = "restore it, or remove it and issue new tokens"
        raise InvalidDocument("this is not a file of tokens", source=str(path), hint=hint) from None
