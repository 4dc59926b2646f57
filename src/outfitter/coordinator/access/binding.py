"""Where the coordinator may listen: beyond loopback only with tokens. Pure; whoever opens the port asks first."""

from __future__ import annotations

import ipaddress

from outfitter.errors import Forbidden


def check_binding(host: str, *, is_open: bool) -> None:
    """Refuse to listen where strangers could come in; ``is_open`` says that no token is needed."""
    if is_open and not _is_loopback(host):
        hint = "leave --open out, or listen on 127.0.0.1"
        raise Forbidden(f"without tokens the coordinator listens on loopback only, not on {host!a}", hint=hint)


def _is_loopback(host: str) -> bool:
    """Only what surely is: a name other than localhost may mean anything."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
