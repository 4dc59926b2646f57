"""What a row of the registry holds: a server template, the headers it accepts, their defaults, and how it signs in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from outfitter.basics import Secret, SecretRef, quote
from outfitter.catalog.headers import HeaderSchema, HeaderSettings, check_no_twins, check_settings, name_fault
from outfitter.catalog.servers import MCPServer
from outfitter.errors import InvalidHeader, InvalidServer


@dataclass(frozen=True, slots=True)
class NoAuth:
    """Headers are all there is."""


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """OAuth 2 client credentials: a token is fetched and kept fresh by whoever connects."""

    token_url: str
    client_id: str
    client_secret: str | SecretRef | Secret = field(repr=False)
    scope: str = ""
    audience: str = ""


@dataclass(frozen=True, slots=True)
class Auth0M2M:
    """The runner's own machine-to-machine sign-in, for the orchestrator server. AUTH0_… variables name the client."""

    audience: str = ""

    def as_credentials(self) -> ClientCredentials:
        """The client credentials it stands for."""
        places = ("https://${AUTH0_DOMAIN}/oauth/token", "${AUTH0_CLIENT_ID}", "${AUTH0_CLIENT_SECRET}")
        return ClientCredentials(*places, audience=self.audience or "${AUTH0_AUDIENCE}")


Auth: TypeAlias = NoAuth | ClientCredentials | Auth0M2M
NO_AUTH = NoAuth()


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """A row of the registry. Its id is the server's name."""

    server: MCPServer
    title: str = ""
    header_schema: Mapping[str, HeaderSchema] = field(default_factory=dict[str, HeaderSchema])
    default_headers: HeaderSettings = field(default_factory=dict[str, str], repr=False)
    auth: Auth = NO_AUTH
    known_tools: tuple[str, ...] | None = None
    is_approved: bool = True
    """False: an admin has to approve the command before it may be started."""
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Refuse headers that could never be sent, and headers on a server that has none."""
        if self.server.remote is not None and self.server.remote.headers:
            raise InvalidServer("an entry's headers go into default_headers", where=self.source)
        if not self.header_schema and not self.default_headers:
            return
        if self.server.remote is None:
            raise InvalidServer("a stdio server takes no headers", where=self.source, hint="pass values in env")
        for name in self.header_schema:
            fault = name_fault(name)
            if fault is not None:
                message = f"header {quote(name)}: {fault}"
                raise InvalidHeader(message, where=self.source).under("header_schema", name)
        check_no_twins(self.header_schema, "header_schema", where=self.source)
        check_settings(self.default_headers, "default_headers", where=self.source)

    @property
    def id(self) -> str:
        """The name that refs use."""
        return self.server.name
