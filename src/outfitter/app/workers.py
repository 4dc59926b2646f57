"""Several processes behind one port, each a whole gateway with a loop, connections and children of its own.

What one gateway does is ``serving``; how the processes are kept is ``crew``; how a request gets to the worker that
knows its client is the gateway's ``relaying``.
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from outfitter.app.news import NEWS, News
from outfitter.app.options import FIRST_TOKEN, BeforeEnd, GatewayOptions, Started, at_once
from outfitter.app.registry_place import registry_url
from outfitter.app.serving import folder_told, run_gateway
from outfitter.app.settings import Settings
from outfitter.basics import the_one_in
from outfitter.errors import Invalid

if TYPE_CHECKING:
    from outfitter.gateway import Address, Relay

_COMMAND = (sys.executable, "-m", "outfitter", "up", "--worker")


@dataclass(frozen=True, slots=True)
class _Errand:
    """What a worker is told, on its standard input: nothing of it stands on a command line."""

    settings: Settings
    options: GatewayOptions
    relay: Relay


async def run_workers(
    settings: Settings,
    environment: Mapping[str, str],
    options: GatewayOptions,
    on_ready: Callable[[Started], None],
    before_end: BeforeEnd = at_once,
    *,
    count: int,
) -> None:
    """Serve every agent of the catalog by so many processes until told to stop; ``on_ready`` hears where.

    ``before_end`` is waited for when it is told to stop, while everything is still answered.
    """
    from outfitter.app.crew import Crew
    from outfitter.gateway import Relay, holding, open_recorder

    state = settings.state.resolve()
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (
        holding(options.address, is_open=options.is_open) as address,
        tempfile.TemporaryDirectory(prefix="workers-", dir=state) as folder,
    ):
        relays = (Relay(Path(folder), number, count) for number in range(count))
        told = replace(options, port=address.port)
        plain = replace(settings, database=None)  # a secret is not written anywhere; they have the environment too
        errands = [pickle.dumps(_Errand(plain, told, relay)) for relay in relays]
        if settings.database is not None:
            environment = {**environment, "OUTFITTER_DATABASE": registry_url(settings)}
        try:
            crew = Crew(_COMMAND, environment)
            await crew.work(errands, lambda: on_ready(_told(settings, options, address)), before_end)
        except BaseExceptionGroup as several:
            raise the_one_in(several) from None
        finally:
            News(state / NEWS).end()
    async with open_recorder(state, database=settings.database):
        pass  # what the last of them left in the journal goes to the database


async def run_worker() -> None:
    """Be one of them: do what is told on the standard input, until it ends."""
    try:
        errand = cast("_Errand", pickle.load(sys.stdin.buffer))  # noqa: S301 - from the process that started this one
    except (EOFError, pickle.UnpicklingError):
        raise Invalid("a worker is started by 'outfitter up --workers'") from None
    settings = replace(errand.settings, database=Settings.read(os.environ).database)
    await run_gateway(settings, os.environ, errand.options, _tell_ready, errand.relay)


def _told(settings: Settings, options: GatewayOptions, address: Address) -> Started:
    """What the workers serve, as far as this process knows."""
    if options.squad is not None:
        from outfitter.app.squad_files import find_home
        from outfitter.app.squad_up import squad_told

        return squad_told(settings, find_home(options.squad).load(), address)
    if options.uses_files:
        return folder_told(settings, address)
    from outfitter.app.service import snapshot_told
    from outfitter.app.snapshot import read_snapshot

    found = read_snapshot(settings)
    return Started(address) if found is None else snapshot_told(found, address)


def _tell_ready(started: Started) -> None:
    """Say it once; what else is printed goes where errors go."""
    if started.admin_token is not None:
        os.write(2, f"{FIRST_TOKEN}\n  {started.admin_token}\n".encode())
    os.write(1, b"ready\n")
    os.dup2(2, 1)
