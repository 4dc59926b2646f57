"""Where a definition may point: what would be refused when it is connected to is refused when it is written.

The rules are ``upstream.Guard``'s. Here an address must also be written plainly: one in disguise (``127.1``,
``0x7f.1``) is there to get around somebody's rule. Names are judged when they are connected to, after their lookup.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import urlsplit

from outfitter.errors import DestinationForbidden, OutfitterError, SsrfBlocked
from outfitter.upstream import Guard

_START = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*")


def destination_fault(url: str, guard: Guard) -> OutfitterError | None:
    """Why this URL would not be connected to; None when it may be, or when a placeholder hides it still."""
    start = _START.match(url)
    if start is None or "${" in start[0]:
        return None
    try:
        admitted = guard.admit(f"{start[0]}/", carries_secrets=False)
    except DestinationForbidden as error:
        return SsrfBlocked(error.message, hint=error.hint)
    except OutfitterError as error:
        return error
    if guard.allow_private or _is_plain(urlsplit(start[0]).hostname or "", urlsplit(admitted).hostname or ""):
        return None
    hint = "write the address plainly, such as 127.0.0.1, or a name"
    return SsrfBlocked("the host is an address in disguise", hint=hint)


def _is_plain(written: str, meant: str) -> bool:
    address = _address(meant)
    if address is None:
        return True
    carries = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    return address == _address(written) and not carries


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
