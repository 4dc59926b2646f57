"""The runner that belongs to a gateway: a process beside it, from when it listens until just before it ends.

It finds the gateway, and gets a token, as every runner of this machine does (``local_pass``): nothing is handed over on
a command line. When it dies it is started again (``crew``). It is ended before the gateway is, which takes in how its
runs have ended. When the gateway dies, its standard input ends, and so does it; what it could not tell any more it
tells after the next start.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from outfitter.app.registry_place import reveal_url
from outfitter.app.settings import Settings
from outfitter.basics import the_one_in
from outfitter.errors import Conflict, Invalid, NeedsToken, Unavailable

if TYPE_CHECKING:
    from outfitter.app.options import BeforeEnd, Started
    from outfitter.runner import Desk

_COMMAND = (sys.executable, "-m", "outfitter", "runner", "--beside", "--grace", "0")
_NOT_ITS_OWN = frozenset({"OUTFITTER_SERVER", "OUTFITTER_TOKEN", "OUTFITTER_TOKEN_FILE"})
_WELCOME_SECONDS, _AGAIN_SECONDS = 120.0, 0.3
_log = logging.getLogger(__name__)


class Serve(Protocol):
    """A gateway, or several, until told to stop."""

    async def __call__(self, *, on_ready: Callable[[Started], None], before_end: BeforeEnd) -> None:
        """Tell when it listens, and wait for ``before_end`` when told to stop."""
        ...


async def run_with_runner(
    settings: Settings, environment: Mapping[str, str], serve: Serve, on_ready: Callable[[Started], None]
) -> None:
    """Serve with a runner beside; Invalid when there can be none, Unavailable when it does not start."""
    import anyio

    from outfitter.app.crew import Crew

    if find_spec("dbos") is None:
        hint = "pip install 'outfitter[runner]'"
        raise Invalid("a runner needs libraries that are not installed", hint=hint)
    crew = Crew(_COMMAND, _variables(settings, environment))
    try:
        async with anyio.create_task_group() as group:

            def begin(started: Started) -> None:
                on_ready(started)
                group.start_soon(crew.keep, "the runner")

            try:
                await serve(on_ready=begin, before_end=crew.end)
            finally:
                # A gateway that broke took nothing in; the processes of runs are ended all the same.
                with anyio.CancelScope(shield=True):
                    await crew.end()
    except BaseExceptionGroup as several:
        raise the_one_in(several) from None


def _variables(settings: Settings, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the runner: those of the gateway, but whom to ask and as whom is this machine's matter."""
    own = {name: value for name, value in environment.items() if name not in _NOT_ITS_OWN}
    own |= {"OUTFITTER_STATE": str(settings.state.resolve()), "OUTFITTER_CATALOG": str(settings.catalog)}
    if settings.database is not None:
        own["OUTFITTER_DATABASE"] = reveal_url(settings.database)
    return own


async def until_welcome(desk: Desk, name: str, *, is_beside: bool) -> None:
    """Wait, not for ever, until the gateway takes this runner under its name.

    Another token spoke for it before the last stop, and the name is free again a while after that. A gateway that has
    just started listens before its registry is open.
    """
    import anyio

    passing = (Conflict, NeedsToken, Unavailable) if is_beside else (Conflict, NeedsToken)
    is_told = False
    with anyio.move_on_after(_WELCOME_SECONDS):
        while True:
            try:
                await desk.beat(name, 1, (), ())
            except passing as error:
                if isinstance(error, Conflict) and not is_told:
                    _log.warning("waiting until the name is free: %s", error.message)
                    is_told = True
                await anyio.sleep(_AGAIN_SECONDS)
            else:
                return
