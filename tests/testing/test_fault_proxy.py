"""A bad connection on purpose: what it does is decided by a seed, and told at the end."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client, MCPError

from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, NotFound
from outfitter.testing import Dice, FaultProxy, FaultRates, FaultReport, Script, Strike, serve_http, stdio_server
from tests.testing.clients import ERAS
from tests.testing.test_record_and_replay import talking

RATES = "delay=1ms,error=30%,fail=30%,seed=7,method=tools/call"
EVERYTHING = "delay=50ms..200ms,disconnect=1%,drop=5%,lose=2%,error=10%,fail=20%,seed=7,method=tools/call"


def test_rates_are_read_as_they_are_written() -> None:
    rates = FaultRates.parse(EVERYTHING)
    assert rates == FaultRates((0.05, 0.2), 0.05, 0.02, 0.1, 0.2, 0.01, seed=7, method="tools/call")
    assert str(rates) == EVERYTHING
    assert FaultRates.parse("") == FaultRates()
    assert FaultRates.parse("delay=1s,drop=0.5") == FaultRates((1.0, 1.0), 0.5)


@pytest.mark.parametrize(
    "text", ["dropp=1%", "drop", "drop=x", "drop=101%", "drop=60%,error=60%", "delay=5", "delay=2s..1s", "seed=x"]
)
def test_rates_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match=r"drop|delay|seed"):
        FaultRates.parse(text)


def throw(dice: Dice, requests: list[int]) -> dict[int, Strike]:
    return {number: dice.throw("tools/call", {"name": "t", "arguments": {"n": number}}) for number in requests}


@pytest.mark.promise("PROXY-SEED")
def test_the_same_seed_strikes_the_same_requests_whatever_their_order() -> None:
    rates, numbers = FaultRates.parse("delay=1ms..9ms,drop=20%,error=20%,seed=7"), list(range(200))
    one, two = throw(Dice(rates), numbers), throw(Dice(rates), numbers[::-1])
    assert {n: (s.fault, s.seconds) for n, s in one.items()} == {n: (s.fault, s.seconds) for n, s in two.items()}
    struck = [strike.fault for strike in one.values()]
    assert 20 < struck.count("drop") < 60
    assert 20 < struck.count("error") < 60
    other = throw(Dice(FaultRates.parse("drop=20%,error=20%,seed=8")), numbers)
    assert [strike.fault for strike in other.values()] != struck


@pytest.mark.promise("PROXY-SEED")
def test_a_proxy_that_is_started_again_goes_on_and_does_not_begin_anew() -> None:
    rates, numbers = FaultRates.parse("drop=50%,seed=3"), list(range(20))
    whole = Dice(rates)
    expected = [throw(whole, numbers), throw(whole, numbers)]
    first = Dice(rates)
    assert throw(first, numbers) == expected[0]
    again = Dice(rates, FaultReport.from_json(first.report().to_json()))
    assert throw(again, numbers) == expected[1]
    assert again.report() == whole.report()
    assert "40 requests, 0 delayed; drop" in again.report().in_words()


def test_opening_requests_are_spared() -> None:
    dice = Dice(FaultRates(drop=1.0))
    assert not dice.throw("initialize", {}).fault
    assert not Dice(FaultRates(drop=1.0, method="tools/call")).throw("tools/list", {}).fault
    assert dice.throw("tools/list", {}).fault == "drop"


@pytest.mark.anyio
@pytest.mark.promise("PROXY-FAULTS")
@pytest.mark.parametrize("era", ERAS)
async def test_faults_strike_a_real_connection_and_are_told(era: str) -> None:
    with FaultProxy(stdio_server(Script()), FaultRates.parse(RATES)) as proxy:
        async with talking(proxy.server, era) as client:
            outcomes = [await _outcome(client, number) for number in range(12)]
            with pytest.raises(NotFound):
                _ = proxy.report
        dice = Dice(FaultRates.parse(RATES))
        expected = [dice.throw("tools/call", {"name": "echo", "arguments": {"text": str(n)}}).fault for n in range(12)]
        assert outcomes == expected
        assert {"", "fail", "error"} == set(outcomes)
        assert proxy.report.counts == {name: outcomes.count(name) for name in ("error", "fail")}
        assert proxy.report.delayed == 12


async def _outcome(client: Client, number: int) -> str:
    try:
        result = await client.call_tool("echo", {"text": str(number)})
    except MCPError as error:
        return "error" if error.error.data == {"injected": True} else str(error)
    return "fail" if result.is_error else ""


@pytest.mark.anyio
@pytest.mark.promise("PROXY-FAULTS")
@pytest.mark.parametrize(("fault", "calls"), [("drop", 0), ("lose", 1)])
async def test_a_dropped_request_reaches_nobody_and_a_lost_answer_was_worked_for(fault: str, calls: int) -> None:
    async with serve_http(Script()) as serving:
        live = MCPServer.http("remote", serving.url)
        with FaultProxy(live, FaultRates.parse(f"{fault}=100%,method=tools/call")) as proxy:
            async with talking(proxy.server, "legacy") as client, anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "echo", {"text": "x"})
                await client.list_tools()  # it was sent later and is answered, so the call has been through the proxy
                while serving.ledger.requests["tools/call"] < calls:  # noqa: ASYNC110 - a count has no event
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()
            assert proxy.report.counts == {fault: 1}
        assert serving.ledger.requests["tools/call"] == calls


@pytest.mark.anyio
@pytest.mark.promise("PROXY-FAULTS")
async def test_a_disconnect_ends_the_connection() -> None:
    with FaultProxy(stdio_server(Script()), FaultRates.parse("disconnect=100%,method=tools/call")) as proxy:
        async with talking(proxy.server, "legacy") as client:
            with pytest.raises(MCPError):
                await client.call_tool("echo", {"text": "x"})
        assert proxy.report.counts == {"disconnect": 1}
