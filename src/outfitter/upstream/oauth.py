"""OAuth 2 client credentials: a token fetched when first needed, kept until shortly before it ends, renewed once.

This file reveals the client's secret for the one request that needs it, to the token endpoint. Where that may be is for
``guard``; sending is ``http_client``, which also repeats a refused request once. No browser is ever opened here.
"""

from __future__ import annotations

import base64
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote_plus, urlencode

import anyio
import msgspec

from outfitter.basics import Secret
from outfitter.errors import NeedsAuth, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.resolution import ArmedCredentials
from outfitter.upstream.clock import loop_time
from outfitter.upstream.http_client import JSON_TYPE, Endpoint, HttpClient, is_success, read_body
from outfitter.upstream.wire import Message

_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": JSON_TYPE}
_TOKEN = re.compile(r"[\x21-\x7e]+")
_ANSWER_LIMIT = 256 * 1024
_FETCH_SECONDS = 30.0
_DEFAULT_LIFE, _LONGEST_LIFE = 300, 7 * 24 * 3600
_MARGIN_SECONDS, _MARGIN_SHARE = 30.0, 0.1
_REFUSED, _UNAUTHORIZED, _TOO_MANY, _SERVER_FAULT = 400, 401, 429, 500


@dataclass(frozen=True, slots=True)
class _Token:
    """A token as a header, and when it is too old to be sent."""

    header: Secret
    stale_at: float


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the token endpoint said."""

    status: int
    content: Message
    endpoint: Endpoint = field(repr=False)

    @property
    def is_about_client(self) -> bool:
        """Whether the way the client showed itself was refused, so that the other way may help."""
        return self.status == _UNAUTHORIZED or self.content.get("error") == "invalid_client"

    def words(self) -> str:
        """Its error in its own words, without what it repeats of ours."""
        said = [str(self.content[key]) for key in ("error", "error_description") if key in self.content]
        return f"{self.status}" + (f", {self.endpoint.quote(': '.join(said))}" if said else "")


@dataclass(slots=True)
class ClientCredentialsAuthorizer:
    """The token of one client. Whoever first finds it missing or old fetches it; everyone else waits for that."""

    credentials: ArmedCredentials
    client: HttpClient
    clock: Callable[[], float] = loop_time
    _token: _Token | None = None
    _fault: OutfitterError | None = None
    _fetches: int = 0
    _in_body: bool = False
    _fetching: anyio.Lock = field(default_factory=anyio.Lock)

    async def headers(self) -> Mapping[str, Secret]:
        """The token as a header; NeedsAuth says why the token endpoint gives none."""
        token = self._token
        if token is None or self.clock() >= token.stale_at:
            token = await self._renew()
        return {"Authorization": token.header}

    async def challenged(self, status: int, challenge: str, sent: Mapping[str, Secret]) -> bool:  # noqa: ARG002 - a new token is all it can get
        """A new token after 401, unless somebody got one since; no token helps after 403."""
        if status != _UNAUTHORIZED:
            return False
        if self._token is None or self._token.header == sent.get("Authorization"):
            await self._renew()
        return True

    async def _renew(self) -> _Token:
        """The token that the fetch under way brings, or that a fetch of our own brings; its error for all who wait."""
        seen = self._fetches
        async with self._fetching:
            if self._fetches == seen:
                await self._fetch()
            if self._fault is not None:
                raise _copy(self._fault)
            if self._token is None:
                raise NeedsAuth("the token endpoint gave no token")
            return self._token

    async def _fetch(self) -> None:
        """One token request and what came of it; a cancelled one leaves the next in line to try."""
        token, fault = None, None
        try:
            with anyio.fail_after(_FETCH_SECONDS):
                token = self._read(await self._ask_either_way())
        except TimeoutError:
            fault = UpstreamLost(f"the token endpoint did not answer within {_FETCH_SECONDS:.0f} s")
        except OutfitterError as error:
            # Nothing was asked of the server yet: whatever happened here, the call did not run.
            fault = UpstreamLost(f"the token endpoint: {error.message}") if isinstance(error, UpstreamLost) else error
        self._token, self._fault = token, fault
        self._fetches += 1

    async def _ask_either_way(self) -> _Answer:
        """The client's name and secret in a header, and once in the body where that is not understood."""
        answer = await self._ask(in_body=self._in_body)
        if answer.is_about_client and not self._in_body:
            answer = await self._ask(in_body=True)
            self._in_body = is_success(answer.status)
        return answer

    async def _ask(self, *, in_body: bool) -> _Answer:
        endpoint = self._endpoint(in_body=in_body)
        async with self.client.exchange(endpoint, "POST", _FORM, self._form(in_body=in_body)) as response:
            body = await read_body(response, _ANSWER_LIMIT)
            if response.status == _TOO_MANY or response.status >= _SERVER_FAULT:
                raise UpstreamLost(f"it answered {response.status}")
            return _Answer(response.status, _read_object(body), endpoint)

    def _endpoint(self, *, in_body: bool) -> Endpoint:
        known = self.credentials
        url = self.client.guard.admit(known.token_url.reveal(), carries_secrets=True)
        headers = {} if in_body else {"Authorization": Secret.compose(_basic, known.client_id, known.client_secret)}
        hushed = deque([known.client_secret, Secret.compose(_quoted, known.client_secret)])
        return Endpoint(Secret(url), headers, "", self.client.limits.connect, hushed=hushed)

    def _form(self, *, in_body: bool) -> bytes:
        known = self.credentials
        asked = {"scope": known.scope.reveal(), "audience": known.audience.reveal()}
        form = {"grant_type": "client_credentials", **{name: value for name, value in asked.items() if value}}
        if in_body:
            form |= {"client_id": known.client_id.reveal(), "client_secret": known.client_secret.reveal()}
        return urlencode(form).encode()

    def _read(self, answer: _Answer) -> _Token:
        if not is_success(answer.status):
            kind = NeedsAuth if answer.status >= _REFUSED else ProtocolViolation
            raise kind(f"the token endpoint refused the client: {answer.words()}")
        text, kind = answer.content.get("access_token"), answer.content.get("token_type", "Bearer")
        if not isinstance(text, str) or not _TOKEN.fullmatch(text) or str(kind).lower() != "bearer":
            raise ProtocolViolation("the token endpoint's answer holds no bearer token")
        life = _read_life(answer.content.get("expires_in"))
        margin = min(_MARGIN_SECONDS, life * _MARGIN_SHARE)
        return _Token(Secret(f"Bearer {text}"), self.clock() + life - margin)


def _basic(parts: tuple[str, ...]) -> str:
    pair = ":".join(map(quote_plus, parts))
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def _quoted(parts: tuple[str, ...]) -> str:
    return quote_plus(parts[0])


def _read_object(body: bytes) -> Message:
    """The JSON object of an answer; empty when it is none."""
    try:
        value: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return cast("Message", value) if isinstance(value, dict) else {}


def _read_life(value: object) -> float:
    """For how many seconds a token is good, also where the number is written as a text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:12])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _DEFAULT_LIFE
    return float(min(max(value, 0), _LONGEST_LIFE))


def _copy(fault: OutfitterError) -> OutfitterError:
    """The same error for one more who waits: each is told where by its own caller."""
    kind = type(fault) if type(fault) in {NeedsAuth, UpstreamLost, ProtocolViolation} else None
    return fault if kind is None else kind(fault.message, hint=fault.hint)
