"""What ``record``, ``proxy`` and ``replay`` share: headers as they are typed, and a job that speaks on stdout."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import click

from outfitter.cli.pipes import own_stdout, stop_when_told

F = TypeVar("F", bound=Callable[..., object])


def read_headers(given: tuple[str, ...]) -> dict[str, str]:
    """The headers that were typed as NAME=VALUE."""
    headers: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter(f"'{name}' has no value; write NAME=VALUE", param_hint="--header")
        headers[name] = value
    return headers


def header_option(command: F) -> F:
    """Give a command ``--header``."""
    told = "A header for --url; ${VAR} is filled from the environment, which keeps it out of the process list."
    return click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help=told)(command)


def run_on_pipes(job: Callable[[int], Awaitable[None]]) -> None:
    """Do a job that speaks on stdout, until it is done or this process is told to stop."""
    out = own_stdout()

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(stop_when_told, group.cancel_scope)
            await job(out)
            group.cancel_scope.cancel()

    from outfitter.basics import the_one_in

    try:
        anyio.run(main, backend_options={"use_uvloop": True})
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None
