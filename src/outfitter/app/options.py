"""How ``outfitter up`` is to be run: the choices of the command line as one value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from outfitter.app.sharing import ALONE, Share

if TYPE_CHECKING:
    from outfitter.gateway import Address, Recorder, Watch

BeforeEnd = Callable[[], Awaitable[None]]
"""What is to be done when the gateway was told to stop, before it does."""
FIRST_TOKEN = "This registry is new. Its admin token, shown this once:"  # noqa: S105 - a sentence


async def at_once() -> None:
    """Nothing is to be done before the end."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How the gateway is to be run."""

    host: str = "127.0.0.1"
    port: int = 8700
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    is_open: bool = False
    """Let everyone on this machine in without a token."""
    keep_arguments: tuple[str, ...] = ()
    """Agents whose arguments are kept in the records, redacted."""
    keep_results: tuple[str, ...] = ()
    """Agents whose results are kept in the records, redacted."""
    concurrent_calls: int = 256
    calls_per_second: float | None = None
    most_memory: int | None = None
    """Bytes above which no new calls are taken."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    uses_files: bool = False
    """Serve the catalog folder as it is, without a registry and its API."""
    squad: Path | None = None
    """Serve the squad file of this folder instead, without a registry and its API."""
    jwt_issuer: str | None = None
    """The identity provider whose tokens the API takes; with its audience."""
    jwt_audience: str | None = None
    jwt_keys: str | None = None
    """Where the provider's keys are, if they are not where they usually are."""

    @property
    def has_no_registry(self) -> bool:
        """Whether files are served as they are."""
        return self.uses_files or self.squad is not None

    @property
    def address(self) -> Address:
        """Where it listens."""
        from outfitter.gateway import Address

        return Address(self.host, self.port, self.tls_cert, self.tls_key)

    def watch(self, recorder: Recorder, share: Share = ALONE) -> Watch:
        """Who records and counts."""
        from outfitter.gateway import Keeping, Limits, Turnstile, Watch

        rate = None if self.calls_per_second is None else share.of_rate(self.calls_per_second)
        limits = Limits(share.of_calls(self.concurrent_calls), rate)
        keeping = Keeping(frozenset(self.keep_arguments), frozenset(self.keep_results))
        return Watch(recorder, Turnstile(limits, self.most_memory), keeping)


@dataclass(frozen=True, slots=True)
class Started:
    """What whoever started it is told when it listens."""

    address: Address
    agents: tuple[str, ...] = ()
    has_tokens: bool = True
    admin_token: str | None = None
    """The first admin token of a new registry: shown this once."""
