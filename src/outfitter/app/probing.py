"""A server of the registry connected once, to say whether it answers.

It is a connection of its own: one that calls use may rest after a failure, and what is asked is how it is now. What is
sent is what the registry's entry says, with this machine's variables and secrets; no agent's rule is asked, as no tool
is called. A program that is not approved is not started. What connects is loaded when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from outfitter.app.live import arm_plan, make_pool, plan_of
from outfitter.app.settings import Settings
from outfitter.catalog import Catalog, JsonValue
from outfitter.errors import OutfitterError

if TYPE_CHECKING:
    from outfitter.coordinator import Probe, Probed
    from outfitter.upstream import Connection

_SECONDS = 60.0
_A_SECOND = 1000.0


def lone_probe(settings: Settings, environment: Mapping[str, str], catalog: Callable[[], Catalog]) -> Probe:
    """Who connects servers of this catalog, each once and by itself."""

    async def probe(name: str) -> Probed:
        import anyio.to_thread

        from outfitter.coordinator import Probed

        try:
            plan = plan_of(name, Catalog(servers=catalog().servers))
            armed = (await anyio.to_thread.run_sync(arm_plan, plan, environment, settings)).servers[name]
        except OutfitterError as error:
            armed = error
        if isinstance(armed, OutfitterError):
            return Probed("configured", error=str(armed))
        async with make_pool(settings) as pool:
            return await _listed(pool.connect(armed))

    return probe


async def _listed(connection: Connection) -> Probed:
    import anyio

    from outfitter.coordinator import Probed

    began = anyio.current_time()
    tools: list[dict[str, JsonValue]] | None = None
    error = f"it did not answer within {_SECONDS:.0f} s"
    with anyio.move_on_after(_SECONDS):
        try:
            tools = await connection.use(lambda link: link.list_tools())
        except OutfitterError as refused:
            error = str(refused)
    if tools is None:
        return Probed(connection.health.state.value, error=error)
    agreed = connection.agreement
    took = round((anyio.current_time() - began) * _A_SECOND, 1)
    era, version = ("", "") if agreed is None else (agreed.era.value, agreed.version)
    return Probed(connection.health.state.value, era, version, tools, took)
