"""What a network error of the HTTP client's library is called here: words of ours, without the URL and the headers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from outfitter.errors import OutfitterError, ProtocolViolation, UpstreamLost

if TYPE_CHECKING:
    import aiohttp


def failure_of(error: Exception, seconds: float, where: str) -> OutfitterError:
    """A network error in words, without the URL and the headers that the library's own text would show."""
    import aiohttp
    from aiohttp.http_exceptions import ContentEncodingError

    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return UpstreamLost(f"no connection within {seconds:g} s", where=where)
    if isinstance(error, aiohttp.ClientConnectorError):
        return UpstreamLost(f"cannot connect to {error.host}: {_connect_words(error)}", where=where)
    if isinstance(error, aiohttp.ClientResponseError | aiohttp.InvalidURL):
        return ProtocolViolation("the server does not speak HTTP", where=where)
    if isinstance(error.__cause__, ContentEncodingError):
        return ProtocolViolation("the server's answer cannot be decompressed", where=where)
    return UpstreamLost("the connection broke before the answer was whole", may_have_run=True, where=where)


def _connect_words(error: aiohttp.ClientConnectorError) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "the name has no address"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not trusted"
    if isinstance(error, aiohttp.ClientSSLError):
        return "TLS failed"
    number = error.os_error.errno
    return "no address answered" if number is None else os.strerror(number).lower()
