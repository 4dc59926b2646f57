"""A public JSON document from a URL that an operator wrote, under the same rules as a connection to a server.

For documents such as the key set of an identity provider, or the list of a registry of servers. No header goes along
but those that are given, and clear text is for loopback only: whoever could change the document on its way would be
believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import msgspec

from outfitter.basics import Secret
from outfitter.errors import NeedsAuth, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.upstream.http_client import JSON_TYPE, Endpoint, HttpClient, is_success, read_body

_FETCH_SECONDS = 10.0
_LIMIT = 512 * 1024
_NOT_FOUND, _REFUSED = 404, frozenset({401, 403})


async def fetch_document(client: HttpClient, url: str, *, where: str) -> object:
    """What the document says; Unavailable or Forbidden says why it cannot be had."""
    found = await find_document(client, url, where=where)
    if found is None:
        raise UpstreamLost(f"it answered {_NOT_FOUND}", where=where)
    return found


async def find_document(
    client: HttpClient, url: str, *, where: str, headers: Mapping[str, Secret] | None = None, limit: int = _LIMIT
) -> object | None:
    """What the document says; None when there is none. NeedsAuth when other credentials are wanted."""
    try:
        address = Secret(client.guard.admit(url, carries_secrets=True))
        endpoint = Endpoint(address, headers or {}, where, client.limits.connect)
        with anyio.fail_after(_FETCH_SECONDS):
            return await _fetch(client, endpoint, limit)
    except TimeoutError:
        raise UpstreamLost(f"no answer within {_FETCH_SECONDS:.0f} s", where=where) from None
    except OutfitterError as error:
        error.where = error.where or where
        raise


async def _fetch(client: HttpClient, endpoint: Endpoint, limit: int) -> object | None:
    async with client.exchange(endpoint, "GET", {"Accept": JSON_TYPE}) as response:
        body = await read_body(response, limit)
        if response.status == _NOT_FOUND:
            return None
        if response.status in _REFUSED:
            raise NeedsAuth(f"it answered {response.status}", hint="it wants a token, or another one")
        if not is_success(response.status):
            raise UpstreamLost(f"it answered {response.status}")
    try:
        document: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        raise ProtocolViolation("the document is not JSON") from None
    return document
