"""Interactive OAuth lent by the official SDK, so that the suite's sign-in scenarios can drive Outfitter's wire.

The SDK writes its flow as a generator that yields requests and wants their responses. ``SdkAuthorizer`` runs it for one
refused request: it hands in the refusal, sends what the flow asks for, and stops when the flow gives the refused
request back with its new header. A browser that follows the first redirect plays the person who agrees.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from outfitter.basics import Secret

_REDIRECT = AnyUrl("http://localhost:3000/callback")
_METADATA_URL = "https://conformance-test.local/client-metadata.json"
_SECONDS = 20.0
_HEADER = "Authorization"


@dataclass(slots=True)
class Memory:
    """Where the SDK keeps its tokens: nowhere but here."""

    tokens: OAuthToken | None = None
    info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens of the last sign-in."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep the tokens."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Who we are at the authorization server."""
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep who we are."""
        self.info = client_info


@dataclass(slots=True)
class _Browser:
    """The person who agrees to everything: remembers what the redirect back said."""

    said: dict[str, str] = field(default_factory=dict[str, str])

    async def visit(self, url: str) -> None:
        async with httpx2.AsyncClient(timeout=_SECONDS) as http:
            reply = await http.get(url, follow_redirects=False)
        query = parse_qs(urlsplit(reply.headers["location"]).query)
        self.said = {name: values[0] for name, values in query.items()}

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=self.said["code"], state=self.said.get("state"), iss=self.said.get("iss"))


def make_provider(url: str, context: Mapping[str, Any]) -> OAuthClientProvider:
    """The SDK's flow for a server; a client that the scenario registered beforehand is used."""
    store, browser = Memory(), _Browser()
    client_id, secret = context.get("client_id"), context.get("client_secret")
    if client_id:
        method = "client_secret_basic" if secret else "none"
        store.info = OAuthClientInformationFull(
            client_id=client_id, client_secret=secret, redirect_uris=[_REDIRECT], token_endpoint_auth_method=method
        )
    metadata = OAuthClientMetadata(
        client_name="outfitter-conformance",
        redirect_uris=[_REDIRECT],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    return OAuthClientProvider(
        url, metadata, store, browser.visit, browser.come_back, client_metadata_url=_METADATA_URL
    )


@dataclass(slots=True)
class SdkAuthorizer:
    """An ``Authorizer`` on top of the SDK's flow."""

    url: str
    provider: httpx2.Auth
    version: str
    _header: Secret | None = None
    _signing_in: anyio.Lock = field(default_factory=anyio.Lock)

    async def headers(self) -> Mapping[str, Secret]:
        """What the last sign-in gave; nothing before the first."""
        return {} if self._header is None else {_HEADER: self._header}

    async def challenged(self, status: int, challenge: str, sent: Mapping[str, Secret]) -> bool:
        """Sign in, unless somebody did since; False when the flow gives up."""
        async with self._signing_in:
            if self._header is not None and self._header != sent.get(_HEADER):
                return True
            try:
                with anyio.fail_after(_SECONDS):
                    self._header = await self._sign_in(status, challenge)
            except (OAuthFlowError, httpx2.HTTPError, TimeoutError) as error:
                print(f"sign-in failed: {error!r}", file=sys.stderr)
                return False
            return self._header is not None

    async def _sign_in(self, status: int, challenge: str) -> Secret | None:
        refused = httpx2.Request("POST", self.url, headers={"MCP-Protocol-Version": self.version})
        answer = httpx2.Response(status, headers={"WWW-Authenticate": challenge}, request=refused)
        flow = self.provider.async_auth_flow(refused)
        try:
            return await self._drive(flow, refused, answer)
        finally:
            await flow.aclose()

    async def _drive(
        self, flow: AsyncGenerator[httpx2.Request, httpx2.Response], refused: httpx2.Request, answer: httpx2.Response
    ) -> Secret | None:
        """Feed the refusal and every response, until the flow gives the refused request back a second time."""
        is_told = False
        asked = await anext(flow)
        async with httpx2.AsyncClient(timeout=_SECONDS) as http:
            while not (asked is refused and is_told):
                if asked is refused:
                    is_told, response = True, answer
                else:
                    response = await http.send(asked, auth=None, follow_redirects=False)
                try:
                    asked = await flow.asend(response)
                except StopAsyncIteration:
                    return None
        return Secret(refused.headers[_HEADER])
