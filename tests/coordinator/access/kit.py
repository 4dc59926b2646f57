"""A coordinator's access on a real database, and an identity provider on loopback that signs and rotates."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from outfitter.coordinator import Access, JwtRules, JwtVerifier, KeyTimes, open_access
from outfitter.storage import KeyRing, open_database
from outfitter.upstream import HttpClient

AUDIENCE = "https://outfitter.example/api"
AT_ONCE = KeyTimes(between=0.0)


@asynccontextmanager
async def access_to(
    url: str, folder: Path, *, verifier: JwtVerifier | None = None, is_open: bool = False
) -> AsyncGenerator[Access]:
    """The access of one coordinator; open it twice for two of them."""
    async with (
        open_database(url, KeyRing(folder / "registry.keys")) as database,
        open_access(database.tokens, verifier=verifier, is_open=is_open) as access,
    ):
        yield access


async def until(claim: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something holds that nobody tells of."""
    with anyio.fail_after(seconds):
        while not claim():  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.01)


def bearer(token: str) -> str:
    """The header of a token."""
    return f"Bearer {token}"


def new_rsa(bits: int = 2048) -> rsa.RSAPrivateKey:
    """A fresh key."""
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def public_jwk(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, kid: str, **more: str) -> dict[str, Any]:
    """The public half as a provider publishes it."""
    if isinstance(key, rsa.RSAPrivateKey):
        shown = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        shown = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**shown, "kid": kid, "use": "sig", **more}


@dataclass(slots=True)
class Provider:
    """An identity provider: what it publishes can be changed while it runs."""

    issuer: str = ""
    key: rsa.RSAPrivateKey = field(default_factory=new_rsa)
    keys: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    body: str | None = None
    is_away: bool = False
    asked: int = 0

    async def answer(self, _request: web.Request) -> web.Response:
        """The key set."""
        self.asked += 1
        if self.is_away:
            return web.Response(status=503)
        return web.Response(text=self.body or json.dumps({"keys": self.keys}), content_type="application/json")

    def rotate(self, kid: str) -> None:
        """Sign with a new key and forget the old ones."""
        self.key = new_rsa()
        self.keys = [public_jwk(self.key, kid)]

    def claims(self, **changed: object) -> dict[str, Any]:
        """What Auth0 writes into a token for a machine; None leaves a claim out."""
        now = int(time.time())
        said = {
            "iss": self.issuer, "sub": "abc123@clients", "aud": AUDIENCE, "iat": now, "exp": now + 3600,
            "azp": "abc123", "gty": "client-credentials", "scope": "outfitter:editor read:other",
        }  # fmt: skip
        return {name: value for name, value in {**said, **changed}.items() if value is not None}

    def sign(self, claims: dict[str, Any] | None = None, **headers: object) -> str:
        """A token, signed with the newest key."""
        return jwt.encode(claims or self.claims(), self.key, "RS256", {"kid": "one", **headers})

    def rules(self) -> JwtRules:
        """What a coordinator pins for this provider."""
        return JwtRules(self.issuer, AUDIENCE)

    def public_pem(self) -> bytes:
        """The public key as a text, which is no secret."""
        return self.key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@asynccontextmanager
async def provider() -> AsyncGenerator[Provider]:
    """A running provider with one key of the id ``one``."""
    made = Provider()
    made.keys = [public_jwk(made.key, "one")]
    app = web.Application()
    app.router.add_get("/.well-known/jwks.json", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.issuer = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        yield made
    finally:
        await runner.cleanup()


@asynccontextmanager
async def verifier_of(
    made: Provider, times: KeyTimes | None = None, rules: JwtRules | None = None
) -> AsyncGenerator[JwtVerifier]:
    """A verifier that trusts this provider."""
    async with HttpClient() as client:
        yield JwtVerifier.make(rules or made.rules(), client, times)


def forge(header: dict[str, Any], claims: dict[str, Any], secret: bytes | None = None) -> str:
    """A token that no library would make: unsigned, or signed with HMAC by any key."""
    parts = b".".join(_encode(json.dumps(part).encode()) for part in (header, claims))
    signature = b"" if secret is None else _encode(hmac.digest(secret, parts, hashlib.sha256))
    return (parts + b"." + signature).decode()


def _encode(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
