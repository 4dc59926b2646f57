"""Tokens of an identity provider (OIDC, Auth0 machine to machine and others): a signed JWT becomes an identity.

Pinned by whoever runs the coordinator: issuer, audience, algorithms and where the keys are. Nothing in a token chooses
any of them: key addresses and keys in its header are not read. Which claim says which role is written in ``JwtRules``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from outfitter.coordinator.access.identity import Identity
from outfitter.coordinator.access.keys import KEY_TYPES, KeySet, KeyTimes
from outfitter.coordinator.access.roles import ROLES, Role, is_role
from outfitter.errors import Forbidden, Invalid
from outfitter.upstream import HttpClient

if TYPE_CHECKING:
    from jwt import PyJWK

_LONGEST_TOKEN = 16 * 1024
_LONGEST_NAME = 255
_LONGEST_KID = 256
_REQUIRED = ("exp", "iat", "iss", "aud", "sub")
ROLE_CLAIMS = ("permissions", "scope")
"""Auth0 lists an API's permissions in ``permissions``, and in ``scope`` for machines without them."""
ROLE_NAMES: Mapping[str, Role] = MappingProxyType({f"outfitter:{role}": role for role in ROLES if role != "agent"})


@dataclass(frozen=True, slots=True)
class JwtRules:
    """What is pinned. Clock differences of ``leeway`` seconds are forgiven.

    ``claims`` are looked at in order and the first that a token has counts: a list, or words in a text. A name with a
    slash in front is a JSON pointer (``/realm_access/roles``). ``roles`` says which word means which role.
    """

    issuer: str
    audience: str
    jwks_url: str = ""
    """Where the keys are; when left out, ``.well-known/jwks.json`` below the issuer."""
    algorithms: tuple[str, ...] = ("RS256",)
    claims: tuple[str, ...] = ROLE_CLAIMS
    roles: Mapping[str, Role] = field(default_factory=lambda: ROLE_NAMES)
    leeway: float = 30.0

    def __post_init__(self) -> None:
        """Refuse rules that would let in anyone, or nobody."""
        if not self.issuer or not self.audience:
            raise Invalid("tokens of an identity provider need an issuer and an audience")
        unknown = [name for name in self.algorithms if name not in KEY_TYPES]
        if unknown or not self.algorithms:
            hint = f"some of {', '.join(KEY_TYPES)}"
            raise Invalid(f"these algorithms cannot be used: {', '.join(unknown) or 'none given'}", hint=hint)
        wrong = [role for role in self.roles.values() if not is_role(role) or role == "agent"]
        if wrong:
            raise Invalid(
                "an identity provider gives the roles admin, editor, viewer and runner", hint="issue tokens for agents"
            )

    @property
    def keys_url(self) -> str:
        """Where the keys are."""
        return self.jwks_url or f"{self.issuer.rstrip('/')}/.well-known/jwks.json"


@dataclass(frozen=True, slots=True)
class JwtVerifier:
    """Judges tokens by the rules and the provider's keys."""

    rules: JwtRules
    keys: KeySet

    @classmethod
    def make(cls, rules: JwtRules, client: HttpClient, times: KeyTimes | None = None) -> JwtVerifier:
        """A verifier that fetches the keys with this client, whose guard says where they may be."""
        return cls(rules, KeySet(rules.keys_url, client, times or KeyTimes()))

    async def verify(self, token: str) -> Identity | None:
        """Whom the token stands for; None when it does not hold, for whatever reason.

        Forbidden when it holds and gives no role here; Unavailable when the keys cannot be had.
        """
        header = _read_header(token)
        if header is None or header[0] not in self.rules.algorithms:
            return None
        algorithm, kid = header
        key = await self.keys.find(kid, algorithm)
        claims = None if key is None else self._claims(token, key, algorithm)
        return None if claims is None else self._identity(claims)

    def _claims(self, token: str, key: PyJWK, algorithm: str) -> Mapping[str, Any] | None:
        import jwt

        try:
            return jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self.rules.audience,
                issuer=self.rules.issuer,
                leeway=self.rules.leeway,
                options={"require": list(_REQUIRED), "enforce_minimum_key_length": True},
            )
        except (jwt.PyJWTError, ValueError, TypeError, OverflowError):
            return None

    def _identity(self, claims: Mapping[str, Any]) -> Identity | None:
        name = str(claims["sub"])
        if not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
            return None
        role = self._role(claims)
        if role is None:
            raise Forbidden("this identity has no role here", hint="the identity provider gives roles")
        return Identity(name, role, ends=float(claims["exp"]) + self.rules.leeway)

    def _role(self, claims: Mapping[str, Any]) -> Role | None:
        found = next((value for name in self.rules.claims if (value := _claim(claims, name)) is not None), None)
        given = {self.rules.roles[word] for word in _words(found) if word in self.rules.roles}
        return next((role for role in ROLES if role in given), None)


def _read_header(token: str) -> tuple[str, str] | None:
    """The algorithm and the key id that a token names; None when it cannot hold anyway."""
    import jwt

    if len(token) > _LONGEST_TOKEN or not token.isascii():
        return None
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(kid, str) or len(kid) > _LONGEST_KID:
        return None
    # Extensions that must be understood are understood by nobody here.
    return None if "crit" in header or "b64" in header else (algorithm, kid)


def _claim(claims: Mapping[str, Any], name: str) -> object:
    if not name.startswith("/"):
        return claims.get(name)
    found: object = claims
    for part in name[1:].split("/"):
        found = cast("Mapping[str, object]", found).get(part) if isinstance(found, dict) else None
    return found


def _words(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return value.split()
    return [one for one in cast("list[object]", value) if isinstance(one, str)] if isinstance(value, list) else ()
