"""A public JSON document from a URL that an operator wrote, under the same rules as a connection to a server.

For documents such as the key set of an identity provider. No header of ours goes along, and clear text is for loopback
only: whoever could change the document on its way would be believed.
"""

from __future__ import annotations

from typing import Any

import anyio
import msgspec

from outfitter.basics import Secret
from outfitter.errors import OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.upstream.http_client import JSON_TYPE, Endpoint, HttpClient, is_success, read_body

_FETCH_SECONDS = 10.0
_DOCUMENT_LIMIT = 512 * 1024


async def fetch_document(client: HttpClient, url: str, *, where: str) -> object:
    """What the document says; Unavailable or Forbidden says why it cannot be had."""
    try:
        endpoint = Endpoint(Secret(client.guard.admit(url, carries_secrets=True)), {}, where, client.limits.connect)
        with anyio.fail_after(_FETCH_SECONDS):
            return await _fetch(client, endpoint)
    except TimeoutError:
        raise UpstreamLost(f"no answer within {_FETCH_SECONDS:.0f} s", where=where) from None
    except OutfitterError as error:
        error.where = error.where or where
        raise


async def _fetch(client: HttpClient, endpoint: Endpoint) -> object:
    async with client.exchange(endpoint, "GET", {"Accept": JSON_TYPE}) as response:
        body = await read_body(response, _DOCUMENT_LIMIT)
        if not is_success(response.status):
            raise UpstreamLost(f"it answered {response.status}")
    try:
        document: Any = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        raise ProtocolViolation("the document is not JSON") from None
    return document
