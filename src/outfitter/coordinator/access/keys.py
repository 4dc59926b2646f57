"""The public keys of an identity provider: its JWKS, fetched when needed, kept for a while, never asked for too often.

A key that is not known makes it fetch again (keys are rotated), at most once in so many seconds, whatever strangers
send. When the provider is away the known keys go on for a day.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio

from outfitter.errors import OutfitterError, Unavailable
from outfitter.upstream import HttpClient, fetch_document

if TYPE_CHECKING:
    from jwt import PyJWK

_WHERE = "keys of the identity provider"
_MOST_KEYS = 100
_SMALLEST_RSA_CHARACTERS = 342
"""2048 bits as base64 writes them."""
_CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521", "EdDSA": "Ed25519"}
KEY_TYPES = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms with a public key, and the keys they take. Nothing else is an algorithm here: no secret is shared."""


@dataclass(frozen=True, slots=True)
class KeyTimes:
    """Seconds: between two fetches, before known keys are fetched anew, and how long they go on without."""

    between: float = 30.0
    fresh: float = 600.0
    known: float = 24 * 3600.0


@dataclass(slots=True, eq=False)
class KeySet:
    """The keys at one URL. Whoever first misses one fetches; everyone else waits for that."""

    url: str
    client: HttpClient
    times: KeyTimes = KeyTimes()
    clock: Callable[[], float] = time.monotonic
    fetches: int = 0
    _keys: Mapping[str, tuple[Mapping[str, Any], ...]] = field(
        default_factory=dict[str, "tuple[Mapping[str, Any], ...]"]
    )
    _fetched: float = float("-inf")
    _tried: float = float("-inf")
    _fetching: anyio.Lock = field(default_factory=anyio.Lock)

    async def find(self, kid: str, algorithm: str) -> PyJWK | None:
        """The key of this id for this algorithm; None when there is none; Unavailable when the keys cannot be had."""
        # Whoever has a key does not wait for somebody else's fetch.
        if kid not in self._keys or (self._is_old() and not self._fetching.locked()):
            await self._fetch_once(kid)
        if self.clock() - self._fetched > self.times.known:
            raise Unavailable("the keys of the identity provider cannot be fetched", hint="try again later")
        return next((key for one in self._keys.get(kid, ()) if (key := _read_key(one, algorithm)) is not None), None)

    def _is_old(self) -> bool:
        return self.clock() - self._fetched > self.times.fresh

    async def _fetch_once(self, kid: str) -> None:
        async with self._fetching:
            now = self.clock()
            is_needed = kid not in self._keys or self._is_old()
            if not is_needed or now - self._tried < self.times.between:
                return
            self._tried = now
            self.fetches += 1
            try:
                self._keys = _read_set(await fetch_document(self.client, self.url, where=_WHERE))
            except OutfitterError:
                return
            self._fetched = now


def _read_set(document: object) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """The keys that may sign, by id; Unavailable when the document is no key set."""
    listed = cast("Mapping[str, object]", document).get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise Unavailable("the identity provider's document is no key set")
    found: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for one in cast("list[object]", listed)[:_MOST_KEYS]:
        if isinstance(one, dict) and _may_sign(key := cast("dict[str, Any]", one)):
            found[key["kid"]] = (*found.get(key["kid"], ()), key)
    return found


def _may_sign(key: Mapping[str, Any]) -> bool:
    """A public key with an id, not meant for encryption. A set that shows a private part is believed in nothing."""
    return isinstance(key.get("kid"), str) and key.get("use", "sig") == "sig" and "d" not in key and "k" not in key


def _read_key(key: Mapping[str, Any], algorithm: str) -> PyJWK | None:
    """The key, if it is one for this algorithm and for no other."""
    from jwt import PyJWK
    from jwt.exceptions import PyJWTError

    kind = KEY_TYPES[algorithm]
    if key.get("kty") != kind or key.get("alg", algorithm) != algorithm:
        return None
    if kind != "RSA" and key.get("crv") != _CURVES[algorithm]:
        return None
    if kind == "RSA" and len(str(key.get("n")).rstrip("=")) < _SMALLEST_RSA_CHARACTERS:
        return None
    try:
        return PyJWK(dict(key), algorithm)
    except PyJWTError:
        return None
