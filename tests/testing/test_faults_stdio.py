"""Each fault shows itself on stdin and stdout as described, and what is not struck goes well."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from outfitter.testing import (
    Banner,
    Crash,
    DeadOnArrival,
    DuplicateReply,
    EndlessCursor,
    Fault,
    Garbage,
    Hang,
    Huge,
    IgnoreTermination,
    LateReply,
    ListStorm,
    Script,
    Slow,
    SlowStart,
    StderrFlood,
    When,
    WrongId,
)
from tests.testing.clients import Pipe, call, handshake, piped, request

pytestmark = [pytest.mark.anyio, pytest.mark.promise("TESTING-FAULTS")]
FIRST_ECHO = When(name="echo", times=1)


def script(*faults: Fault) -> Script:
    return Script(faults=faults)


async def ask_well(pipe: Pipe) -> None:
    """The next healthy call succeeds."""
    reply = await pipe.ask(call("echo", id_=99, modern=True, text="well"))
    assert (reply["id"], reply["result"]["structuredContent"]) == (99, {"text": "well"})


@pytest.mark.parametrize(
    ("fault", "code"), [(Crash(FIRST_ECHO, signal=9), -9), (Crash(FIRST_ECHO, code=3, stderr="out of luck"), 3)]
)
async def test_a_crash_ends_the_process_by_signal_or_code(fault: Crash, code: int) -> None:
    async with piped(script(fault)) as pipe:
        assert "result" in await pipe.ask(call("add", modern=True, a=1, b=2))
        await pipe.send(call("echo", id_=2, modern=True))
        with pytest.raises(anyio.IncompleteRead):
            await pipe.line()
        assert await pipe.process.wait() == code
        assert (await pipe.stderr()).decode() == fault.stderr


async def test_a_crash_can_wait_for_some_good_requests() -> None:
    async with piped(script(Crash(When("*", after=2)))) as pipe:
        await pipe.ask(handshake())
        assert (await pipe.ask(request("ping")))["result"] == {}
        await pipe.send(request("ping", id_=2))
        assert await pipe.process.wait() == -signal.SIGKILL


async def test_a_hanging_request_is_never_answered_and_others_are() -> None:
    async with piped(script(Hang(FIRST_ECHO))) as pipe:
        await pipe.send(call("echo", modern=True))
        await ask_well(pipe)
        await pipe.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        counts = await pipe.ask(call("stats", modern=True, until_cancelled=1))
        assert counts["result"]["structuredContent"]["cancelled"] == 1


async def test_a_late_reply_comes_although_the_request_was_cancelled() -> None:
    async with piped(script(LateReply(FIRST_ECHO, seconds=0.05))) as pipe:
        await pipe.send(call("echo", id_=7, modern=True, text="late"))
        await pipe.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        assert (await pipe.receive())["id"] == 7
        await ask_well(pipe)


@pytest.mark.parametrize(
    "text", ["this is not JSON", '{"jsonrpc":"2.0","id":1,"res', "\udcff\udcfe", "\ufeff{}", "<html>oops</html>"]
)
async def test_garbage_comes_instead_of_the_reply(text: str) -> None:
    async with piped(script(Garbage(FIRST_ECHO, text))) as pipe:
        await pipe.send(call("echo", modern=True))
        assert await pipe.line() == text.encode("utf-8", "surrogateescape")
        await ask_well(pipe)


async def test_a_slow_reply_dribbles_and_is_whole_in_the_end() -> None:
    async with piped(script(Slow(FIRST_ECHO, bytes_per_interval=16, interval=0.001))) as pipe:
        await pipe.send(call("echo", modern=True, text="slow"))
        assert pipe.process.stdout is not None
        pieces = [await pipe.process.stdout.receive()]
        while not pieces[-1].endswith(b"\n"):
            pieces.append(await pipe.process.stdout.receive())
        assert len(pieces) > 3
        assert json.loads(b"".join(pieces))["result"]["structuredContent"] == {"text": "slow"}
        await ask_well(pipe)


async def test_a_huge_reply_is_one_message_of_that_size() -> None:
    async with piped(script(Huge(FIRST_ECHO, size=5_000_000))) as pipe:
        reply = await pipe.ask(call("echo", modern=True))
        assert len(reply["result"]["content"][0]["text"]) == 5_000_000
        await ask_well(pipe)


async def test_a_huge_unframed_reply_has_no_line_end() -> None:
    async with piped(script(Huge(FIRST_ECHO, size=300_000, framed=False))) as pipe:
        await pipe.send(call("echo", modern=True))
        assert await pipe.lines.receive_exactly(300_000) == b"x" * 300_000
        await ask_well(pipe)


async def test_a_reply_can_have_the_wrong_id() -> None:
    async with piped(script(WrongId(FIRST_ECHO))) as pipe:
        assert (await pipe.ask(call("echo", modern=True)))["id"] == "nobody-asked"
        await ask_well(pipe)


async def test_a_reply_can_come_twice() -> None:
    async with piped(script(DuplicateReply(FIRST_ECHO))) as pipe:
        assert await pipe.ask(call("echo", modern=True)) == await pipe.receive()
        await ask_well(pipe)


async def test_a_banner_stands_before_the_first_message() -> None:
    async with piped(script(Banner("Listening…"))) as pipe:
        await pipe.send(call("echo", modern=True))
        assert (await pipe.line()).decode() == "Listening…"
        assert (await pipe.receive())["id"] == 1


async def test_stderr_is_flooded_at_the_start() -> None:
    sizes: list[int] = []
    async with piped(script(StderrFlood(2_000_000))) as pipe, anyio.create_task_group() as group:

        async def drain() -> None:
            sizes.append(len(await pipe.stderr()))

        group.start_soon(drain)
        await ask_well(pipe)
        assert pipe.process.stdin is not None
        await pipe.process.stdin.aclose()
        await pipe.process.wait()
    assert sizes == [2_000_000]


async def test_a_server_can_be_dead_on_arrival() -> None:
    async with piped(script(DeadOnArrival(code=4, stderr="no licence"))) as pipe:
        assert await pipe.process.wait() == 4
        assert await pipe.stderr() == b"no licence"


async def test_a_slow_start_delays_the_first_answer() -> None:
    began = anyio.current_time()
    async with piped(script(SlowStart(0.5))) as pipe:
        await ask_well(pipe)
        assert anyio.current_time() - began >= 0.5


async def test_termination_can_be_ignored() -> None:
    async with piped(script(IgnoreTermination())) as pipe:
        await ask_well(pipe)
        pipe.process.terminate()
        await ask_well(pipe)
        assert pipe.process.stdin is not None
        await pipe.process.stdin.aclose()
        pipe.process.terminate()
        with anyio.move_on_after(0.3):
            await pipe.process.wait()
        assert pipe.process.returncode is None
        pipe.process.kill()
        assert await pipe.process.wait() == -signal.SIGKILL


async def test_a_well_behaved_server_ends_with_its_stdin() -> None:
    async with piped(Script()) as pipe:
        await ask_well(pipe)
        assert pipe.process.stdin is not None
        await pipe.process.stdin.aclose()
        assert await pipe.process.wait() == 0


@pytest.mark.parametrize(("loop", "cursors"), [(False, ["1", "2", "3"]), (True, ["1", "1", "1"])])
async def test_lists_can_be_endless(loop: bool, cursors: list[str]) -> None:
    async with piped(script(EndlessCursor(loop))) as pipe:
        seen: list[str] = []
        page: Mapping[str, Any] = {}
        for _ in cursors:
            params = {"cursor": page["nextCursor"]} if page else {}
            page = (await pipe.ask(request("tools/list", modern=True, **params)))["result"]
            seen.append(page["nextCursor"])
    assert seen == cursors


async def test_a_storm_of_changes_greets_a_handshake() -> None:
    async with piped(script(ListStorm(50))) as pipe:
        await pipe.ask(handshake())
        await pipe.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        storm = [await pipe.receive() for _ in range(50)]
        assert {message["method"] for message in storm} == {"notifications/tools/list_changed"}
        await ask_well(pipe)


async def test_a_storm_of_changes_greets_a_subscription() -> None:
    async with piped(script(ListStorm(50))) as pipe:
        ack = await pipe.ask(request("subscriptions/listen", modern=True, notifications={"toolsListChanged": True}))
        assert ack["method"] == "notifications/subscriptions/acknowledged"
        storm = [await pipe.receive() for _ in range(50)]
        assert all(message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 1 for message in storm)
        await ask_well(pipe)


async def test_a_line_that_is_no_message_gets_a_parse_error() -> None:
    async with piped(Script()) as pipe:
        assert pipe.process.stdin is not None
        await pipe.process.stdin.send(b"hello?\n")
        assert (await pipe.receive())["error"]["code"] == -32700
        await ask_well(pipe)
