"""Where a connection may go: every address is judged after the name was looked up, and only judged ones are used.

``Guard`` holds the rules and is pure. What the HTTP client asks for addresses is ``resolver``, so that what was judged
is what is connected to: there is no second lookup that could answer something else. Addresses written in a URL never
reach a resolver; ``Guard.admit`` judges those, however they are spelled.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from outfitter.errors import DestinationForbidden, InvalidServer

Address: TypeAlias = IPv4Address | IPv6Address
Lookup: TypeAlias = Callable[[str, int], Awaitable[Iterable[str]]]
"""From a host name and port to the addresses it has now."""

_METADATA: tuple[IPv4Network | IPv6Network, ...] = tuple(
    map(
        ip_network,
        (
            "169.254.169.0/24",  # most clouds
            "169.254.170.0/24",  # container credentials
            "100.100.100.200/32",
            "168.63.129.16/32",
            "192.0.0.192/32",
            "fd00:ec2::/32",
            "fd20:ce::254/128",
        ),
    )
)
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?", re.IGNORECASE | re.ASCII)
_EMBEDDING: tuple[IPv6Network, ...] = (
    IPv6Network("64:ff9b::/96"),  # NAT64
    IPv6Network("::/96"),  # IPv4-compatible, withdrawn and still understood
)
_TRAITS: tuple[tuple[str, Callable[[Address], bool]], ...] = (
    ("unspecified", lambda address: address.is_unspecified),
    ("multicast", lambda address: address.is_multicast),
    ("link-local", lambda address: address.is_link_local),
    ("private", lambda address: address.is_private),
    ("reserved", lambda address: address.is_reserved),
    ("not public", lambda address: not address.is_global),
)


def unwrap(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only carries; the address itself otherwise."""
    if isinstance(address, IPv4Address) or address in (IPv6Address(0), IPv6Address(1)):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and any(address in network for network in _EMBEDDING):
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return address if inner is None else inner


def read_address(host: str) -> Address | None:
    """The address that a host spells, in any spelling a system understands (``127.1``, ``0x7f.1``); None for a name."""
    try:
        return ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (OSError, UnicodeEncodeError):
        return None


def is_local_name(host: str) -> bool:
    """Whether a name can only mean this machine; the resolver sees to it that it does."""
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


@dataclass(frozen=True, slots=True)
class Guard:
    """Which addresses may be connected to, and whether headers may travel in clear text."""

    allow_loopback: bool = True
    allow_private: bool = False
    allow_plain_secrets: bool = False

    def fault(self, address: Address) -> str | None:
        """Why this address may not be connected to; None when it may."""
        inner = unwrap(address)
        if any(inner in network for network in _METADATA):
            return "a cloud's metadata service"
        if inner.is_loopback:
            return None if self.allow_loopback else "loopback"
        if self.allow_private:
            return None
        return next((trait for trait, has in _TRAITS if has(inner)), None)

    def judge(self, host: str, addresses: Iterable[str]) -> list[str]:
        """The addresses of a name that may be used; DestinationForbidden when none is left."""
        good: list[str] = []
        faults: list[str] = []
        for text in addresses:
            address = ip_address(text)
            fault = self.fault(address)
            if fault is None and is_local_name(host) and not unwrap(address).is_loopback:
                fault = "not loopback"
            if fault is None:
                good.append(text)
            else:
                faults.append(fault)
        if not good and faults:
            raise _forbidden(host, faults[0])
        return good

    def admit(self, url: str, *, carries_secrets: bool) -> str:
        """The URL ready to be used, an address in it spelled plainly; DestinationForbidden when it may not be."""
        parts, host = _read_url(url)
        address = read_address(host)
        if address is not None:
            fault = self.fault(address)
            if fault is not None:
                raise _forbidden(host, fault)
        is_loopback = is_local_name(host) if address is None else unwrap(address).is_loopback
        if carries_secrets and parts.scheme == "http" and not (is_loopback or self.allow_plain_secrets):
            hint = "use https; only loopback may be reached in clear text"
            raise DestinationForbidden(f"headers for host '{host}' would travel in clear text", hint=hint)
        return _write_url(parts, host if address is None else str(address))


def _read_url(url: str) -> tuple[SplitResult, str]:
    """The parts of the URL and its host in ASCII; nothing that two programs could read differently."""
    try:
        parts = urlsplit(url)
        host, port = _ascii_host(parts.hostname or ""), parts.port
    except ValueError:
        raise _unusable() from None
    is_host = _NAME.fullmatch(host) is not None or read_address(host) is not None
    if parts.scheme not in {"http", "https"} or not is_host or port == 0 or "@" in parts.netloc:
        raise _unusable()
    return parts, host


def _ascii_host(host: str) -> str:
    return host if ":" in host else host.encode("idna").decode()


def _unusable() -> InvalidServer:
    return InvalidServer("the URL cannot be used", hint="for example http://localhost:9501/mcp")


def _write_url(parts: SplitResult, host: str) -> str:
    netloc = f"[{host}]" if ":" in host else host
    if parts.port is not None:
        netloc = f"{netloc}:{parts.port}"
    return parts._replace(netloc=netloc, fragment="").geturl()


def _forbidden(host: str, reason: str) -> DestinationForbidden:
    return DestinationForbidden(
        f"host {host!a} has an address that is {reason}",
        hint="an operator can allow private addresses; metadata services are never allowed",
    )


async def look_up(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver gives; OSError when it gives none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
