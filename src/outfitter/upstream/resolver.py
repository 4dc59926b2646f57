"""What the HTTP client asks for the addresses of a name: those that the guard lets through, and no others.

It is loaded with the library of the client, which takes a while: with the first request, or when somebody has time.
"""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from outfitter.upstream.guard import Guard, Lookup, look_up


class GuardedResolver(AbstractResolver):
    """Answers the HTTP client with judged addresses only."""

    def __init__(self, guard: Guard, lookup: Lookup = look_up) -> None:
        """Look names up with ``lookup`` and judge them with ``guard``."""
        self._guard = guard
        self._lookup = lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The addresses that may be connected to; the family asked for is any."""
        del family
        addresses = self._guard.judge(host, await self._lookup(host, port))
        if not addresses:
            raise OSError(f"no address for host {host!a}")
        return [_as_result(host, port, address) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""


def _as_result(host: str, port: int, address: str) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)
