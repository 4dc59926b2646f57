"""Who a runner is to its coordinator: a token it was given, or client credentials of an identity provider (Auth0).

The token endpoint is asked by ``upstream``, which keeps a token until shortly before it ends and fetches one at a time
for everyone who waits. Here stand only which variables name the client, and the one port that whoever talks to the
coordinator uses. No text of a secret is known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from outfitter.basics import Secret
from outfitter.catalog import Auth0M2M
from outfitter.errors import Refused, UnresolvedPlaceholder
from outfitter.resolution import ArmedCredentials, RuntimeValue, parse_template
from outfitter.upstream import ClientCredentialsAuthorizer, HttpClient

_BEARER = "Bearer "
_UNAUTHORIZED = 401
_FIELDS = ("token_url", "client_id", "client_secret", "scope", "audience")


class SignIn(Protocol):
    """How a runner shows who it is to the coordinator. Both methods may be asked from any task."""

    async def token(self) -> Secret:
        """The token to send now; NeedsAuth or Unavailable when there is none to be had."""
        ...

    async def renew(self, refused: Secret) -> bool:
        """A request with this token was answered 401: True when there is another one now."""
        ...


@dataclass(frozen=True, slots=True)
class GivenToken:
    """A token of the coordinator's own, of the role ``runner``."""

    given: Secret

    async def token(self) -> Secret:
        """The token."""
        return self.given

    async def renew(self, refused: Secret) -> bool:
        """False: there is no other."""
        del refused
        return False


class ClientCredentials:
    """The tokens of one client at its identity provider, fetched when needed and kept as long as they are good."""

    def __init__(self, credentials: ArmedCredentials, client: HttpClient) -> None:
        """Ask with this client, whose guard says where a token endpoint may be."""
        self._authorizer = ClientCredentialsAuthorizer(credentials, client)

    @classmethod
    def read(
        cls, environment: Mapping[str, str], client: HttpClient, *, auth: Auth0M2M | None = None
    ) -> ClientCredentials:
        """The client that the AUTH0_… variables name; Refused with each one that is missing."""
        written = (auth or Auth0M2M()).as_credentials()
        values = [str(getattr(written, name)) for name in _FIELDS]
        missing = [name for name in dict.fromkeys(_variables(values)) if not environment.get(name)]
        if missing:
            problems = [UnresolvedPlaceholder(f"{name} is not set") for name in missing]
            raise Refused("the runner cannot sign in at the identity provider", problems, where="environment")
        return cls(ArmedCredentials(*(_fill(value, environment) for value in values)), client)

    def __repr__(self) -> str:
        """Nothing of them."""
        return "ClientCredentials()"

    async def token(self) -> Secret:
        """A token that is good for a while yet; NeedsAuth or Unavailable say why there is none."""
        return Secret.compose(_without_scheme, (await self._authorizer.headers())["Authorization"])

    async def renew(self, refused: Secret) -> bool:
        """Fetch another token, unless somebody has since this one was taken."""
        sent = {"Authorization": Secret.compose(_with_scheme, refused)}
        return await self._authorizer.challenged(_UNAUTHORIZED, "", sent)


def names_client(environment: Mapping[str, str]) -> bool:
    """Whether the environment names a client of an identity provider."""
    return bool(environment.get("AUTH0_CLIENT_ID"))


def _variables(values: list[str]) -> list[str]:
    return [part.name for value in values for part in parse_template(value) if not isinstance(part, str)]


def _fill(text: str, environment: Mapping[str, str]) -> Secret:
    parts = [
        part if isinstance(part, str) else "" if isinstance(part, RuntimeValue) else environment.get(part.name, "")
        for part in parse_template(text)
    ]
    return Secret("".join(parts))


def _without_scheme(parts: tuple[str, ...]) -> str:
    return parts[0].removeprefix(_BEARER)


def _with_scheme(parts: tuple[str, ...]) -> str:
    return f"{_BEARER}{parts[0]}"
