"""How long a server could be used, and who tries it again: by itself only after its rest, while somebody listens."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

import anyio
import pytest

from outfitter.catalog import MCPServer
from outfitter.errors import OutfitterError, UpstreamDown, UpstreamLost
from outfitter.testing import Script, Status, When, serve_http
from outfitter.upstream import Connection, Happening, Health, Link, Message, Pool, Standing, State, Uptime
from tests.gateway.watched import until
from tests.upstream.stage import QUICK, armed

pytestmark = pytest.mark.anyio
SHORT = replace(QUICK, cooldown=0.1)
CHANGED = "notifications/tools/list_changed"


def lived(*happenings: tuple[Happening, float]) -> tuple[Uptime, Health]:
    """What is counted when these happen at these times."""
    uptime, health = Uptime(), Health()
    for happening, moment in happenings:
        error = UpstreamLost("gone") if happening in {Happening.LOST, Happening.GAVE_UP} else None
        before, health = health, health.after(happening, moment, error)
        uptime.move(before, health)
    return uptime, health


@pytest.mark.promise("DEGRADE-UPTIME")
async def test_time_is_counted_as_ready_or_out_and_not_at_all_while_nobody_wants_it() -> None:
    uptime, health = lived(
        (Happening.TRIED, 10.0), (Happening.OPENED, 12.0), (Happening.LOST, 20.0), (Happening.TRIED, 21.0),
        (Happening.OPENED, 22.0), (Happening.CLOSED, 32.0),
    )  # fmt: skip
    assert uptime.standing([health], 1000.0) == Standing(ready=18.0, out=2.0, failures=1)
    assert uptime.standing([health], 1000.0).share == 0.9


@pytest.mark.promise("DEGRADE-UPTIME")
async def test_a_server_that_is_out_says_since_when_and_when_it_is_tried() -> None:
    uptime, health = lived((Happening.TRIED, 0.0), (Happening.GAVE_UP, 1.0))
    resting = health.resting(1.0, 60.0)
    assert uptime.standing([resting], 11.0) == Standing(ready=0.0, out=10.0, failures=1, out_for=10.0, next_try=50.0)
    assert Uptime().standing([Health()], 5.0).share is None


async def echo(link: Link) -> Message:
    return await link.call_tool("echo", {"text": "hi"})


async def wear_out(connection: Connection) -> None:
    """Ask until the server rests."""
    with anyio.fail_after(60):
        while True:
            try:
                await connection.use(echo)
            except UpstreamDown:
                return
            except OutfitterError:
                continue


@pytest.mark.promise("DEGRADE-START")
@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_somebody_listens_to_is_tried_again_unasked(era: str, *, was_there: bool) -> None:
    script = Script("x", eras=(era,))  # pyright: ignore[reportArgumentType] - a parameter of the test
    async with AsyncExitStack() as stack, Pool(patience=SHORT) as pool:
        served = await stack.enter_async_context(serve_http(script))
        connection = pool.connect(armed(MCPServer.http("x", served.url)))
        heard: list[Message] = []
        connection.listen_to(heard.append)
        if was_there:
            await connection.use(echo)
        await stack.aclose()
        if not was_there:
            with pytest.raises(UpstreamDown):
                await connection.use(echo)
        await wear_out(connection)
        failures = pool.standings()["x"].failures
        assert failures >= 1
        async with serve_http(script, port=served.port):
            await until(lambda: connection.health.state is State.READY)
            await until(lambda: CHANGED in [said.get("method") for said in heard])
            assert "hi" in str(await connection.use(echo))
        standing = pool.standings()["x"]
        assert standing.share is not None
        assert 0 < standing.share < 1


async def test_a_server_that_nobody_listens_to_is_left_alone() -> None:
    async with serve_http(Script("x")) as served:
        port = served.port
    async with Pool(patience=replace(QUICK, cooldown=0.01)) as pool:
        connection = pool.connect(armed(MCPServer.http("x", f"http://127.0.0.1:{port}/mcp")))
        with pytest.raises(UpstreamDown):
            await connection.use(echo)
        async with serve_http(Script("x"), port=port) as served:
            await anyio.wait_all_tasks_blocked()
            assert served.hits == 0
            assert connection.health.state is State.DOWN


async def test_a_server_that_wants_other_credentials_is_not_asked_again_unasked() -> None:
    fault = Status(When(name="echo"), code=401)
    async with serve_http(Script("x", faults=(fault,))) as served, Pool(patience=SHORT) as pool:
        connection = pool.connect(armed(MCPServer.http("x", served.url)))
        connection.listen_to(lambda _: None)
        with pytest.raises(OutfitterError):
            await connection.use(echo)
        hits = served.ledger.requests["server/discover"]
        await anyio.sleep(3 * SHORT.cooldown)
        assert connection.health.state is State.NEEDS_AUTH
        assert served.ledger.requests["server/discover"] == hits
