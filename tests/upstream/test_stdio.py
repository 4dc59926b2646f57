"""The stdio wire against a real child process: what it promises when all is well, and when the child misbehaves."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import anyio
import pytest

from outfitter.errors import Invalid, InvalidServer, OutfitterError, ProtocolViolation, UpstreamLost
from outfitter.resolution import arm, resolve
from outfitter.upstream import StdioLimits, Wire, open_stdio_wire
from tests.shelf import a_catalog, supply_of
from tests.upstream.stdio_kit import (
    QUICK,
    Ear,
    a_child,
    a_wire,
    armed,
    ask,
    check_next_call_works,
    has_ended,
    open_files,
    request,
    zombies,
)

pytestmark = pytest.mark.anyio


async def failure_of(wire: Wire, method: str, **params: object) -> OutfitterError:
    """The error that an ask ends with, within a bound."""
    with anyio.fail_after(20), pytest.raises(OutfitterError) as caught:
        await wire.ask(request(method, **params))
    return caught.value


# ── all is well ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("WIRE-STDIO")
async def test_answers_find_who_asked_whatever_their_order() -> None:
    found: dict[int, object] = {}
    async with a_wire() as wire, anyio.create_task_group() as group:

        async def one(number: int) -> None:
            found[number] = await ask(wire, "hang", number=number)

        for number in range(20):
            group.start_soon(one, number)
        await anyio.wait_all_tasks_blocked()
        assert await ask(wire, "answer_kept", all=True) == {"all": True}
    assert found == {number: {"number": number} for number in range(20)}


@pytest.mark.promise("WIRE-STDIO")
async def test_ten_thousand_asks_at_concurrency_64_get_no_crossed_reply() -> None:
    async def many(wire: Wire, worker: int) -> None:
        for turn in range(10_000 // 64 + 1):
            ident, params = f"{worker}:{turn}", {"me": [worker, turn]}
            answer = await wire.ask({"jsonrpc": "2.0", "id": ident, "method": "echo", "params": params})
            assert answer == {"jsonrpc": "2.0", "id": ident, "result": params}

    with anyio.fail_after(60):
        async with a_wire() as wire, anyio.create_task_group() as group:
            for worker in range(64):
                group.start_soon(many, wire, worker)


@pytest.mark.promise("WIRE-STDIO")
async def test_an_error_answer_is_an_answer() -> None:
    error = {"code": -32601, "message": "no such method", "data": {"any": ["thing"]}}
    async with a_wire() as wire:
        message = request("raw")
        message["params"] = {"text": json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n"}
        assert (await wire.ask(message))["error"] == error


@pytest.mark.promise("WIRE-STDIO")
async def test_texts_of_every_kind_and_size_arrive_unchanged() -> None:
    texts = ["", "line\nbreak\r\n", "ключ 🗝 \x00\x1f", "\u2028\ufeff", "x" * 3_000_000]
    async with a_wire() as wire:
        for text in texts:
            assert await ask(wire, "echo", text=text, number=2**70) == {"text": text, "number": 2**70}


@pytest.mark.promise("WIRE-STDIO")
async def test_blank_lines_and_carriage_returns_are_skipped() -> None:
    async with a_wire("--banner", "\n\r\n   \n") as wire:
        message = request("raw")
        message["params"] = {"text": f'\n{{"id": {message["id"]}, "result": 1}}\r\n\n'}
        assert (await wire.ask(message))["result"] == 1


@pytest.mark.promise("WIRE-STDIO")
async def test_notifications_go_to_the_inbox_in_order() -> None:
    ear = Ear()
    said = [{"method": "notifications/progress", "params": {"n": n}} for n in range(50)]
    async with a_wire(ear=ear) as wire:
        assert await ask(wire, "say", messages=said) == {"said": 50}
    assert [notice["params"]["n"] for notice in ear.notices] == list(range(50))


@pytest.mark.promise("WIRE-STDIO")
async def test_requests_of_the_server_are_answered_while_an_ask_waits() -> None:
    ear = Ear()
    asked = [{"id": f"s{n}", "method": "roots/list"} for n in range(3)]
    async with a_wire(ear=ear) as wire:
        assert await ask(wire, "say", messages=asked) == {"said": 3}
        await ear.wait_notices(3)
    assert {notice["params"]["id"] for notice in ear.notices} == {"s0", "s1", "s2"}
    assert all(notice["params"]["result"] == {"to": "roots/list"} for notice in ear.notices)


@pytest.mark.promise("WIRE-STDIO")
async def test_requests_beyond_the_bound_are_declined_and_the_wire_goes_on() -> None:
    ear = Ear()
    ear.may_answer = anyio.Event()
    asked = [{"id": n, "method": "sampling/createMessage"} for n in range(10)]
    async with a_wire(ear=ear, limits=StdioLimits(requests=4, stop=QUICK)) as wire:
        await ask(wire, "say", messages=asked)
        await ear.wait_notices(6)
        assert {notice["params"]["error"]["message"] for notice in ear.notices} == {"too many requests at once"}
        assert len(ear.requests) == 4
        ear.may_answer.set()
        await ear.wait_notices(10)
        assert await ask(wire, "echo", still="here") == {"still": "here"}


@pytest.mark.promise("WIRE-STDIO")
async def test_tell_reaches_the_server() -> None:
    ear = Ear()
    async with a_wire(ear=ear) as wire:
        await wire.tell({"jsonrpc": "2.0", "id": 7, "result": "told"})
        await ear.wait_notices(1)
    assert ear.notices[0]["params"]["result"] == "told"


@pytest.mark.promise("F03")
async def test_a_cancelled_ask_frees_its_slot_and_its_late_answer_is_dropped() -> None:
    ear = Ear()
    async with a_wire(ear=ear) as wire:
        lost = request("hang", late=True)
        with anyio.move_on_after(0.05) as scope:
            await wire.ask(lost)
        assert scope.cancelled_caught
        assert await ask(wire, "answer_kept") == {}
        assert (await wire.ask(lost | {"method": "echo"}))["result"] == {"late": True}
    assert ear.notices == []


@pytest.mark.promise("WIRE-STDIO")
async def test_one_id_cannot_be_asked_twice_at_the_same_time() -> None:
    async with a_wire() as wire, anyio.create_task_group() as group:
        first = request("hang")
        group.start_soon(wire.ask, first)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(Invalid, match="already waiting"):
            await wire.ask(first)
        await ask(wire, "answer_kept")


@pytest.mark.promise("WIRE-STDIO")
@pytest.mark.parametrize("value", ["\ud800", object()])
async def test_a_message_that_is_not_json_is_refused_and_nothing_is_sent(value: object) -> None:
    async with a_wire() as wire:
        with pytest.raises(Invalid, match="cannot be written as JSON"):
            await wire.ask(request("echo", value=value))
        assert await ask(wire, "echo", next=1) == {"next": 1}


@pytest.mark.promise("WIRE-STDIO")
async def test_an_error_of_the_block_leaves_as_it_is() -> None:
    with pytest.raises(LookupError, match="mine"):
        async with a_wire():
            raise LookupError("mine")


@pytest.mark.promise("WIRE-STDIO")
async def test_a_remote_server_has_no_stdio_wire() -> None:
    catalog = a_catalog(
        {"r": {"type": "http", "url": "http://127.0.0.1:9/mcp"}},
        {"a": {"name": "a", "mcpServers": {"r": {"ref": "r"}}}},
    )
    remote = arm(resolve("a", catalog), supply_of()).servers["r"]
    with pytest.raises(InvalidServer, match="stdio"):
        async with open_stdio_wire(remote, Ear()):
            pass


@pytest.mark.promise("WIRE-STDIO")
async def test_a_real_server_answers_the_handshake_and_lists_its_tools() -> None:
    server = armed(str(Path(sys.executable).with_name("mcp-server-time")), ("--local-timezone", "UTC"))
    handshake = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "outfitter-tests", "version": "0"},
    }
    async with open_stdio_wire(server, Ear()) as wire:
        agreed = await ask(wire, "initialize", **handshake)
        await wire.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = await ask(wire, "tools/list")
    assert "tools" in agreed["capabilities"]
    assert {tool["name"] for tool in listed["tools"]} == {"get_current_time", "convert_time"}


# ── the child goes ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("F02")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM"])
async def test_a_child_that_is_killed_in_a_call_is_told_at_once_with_its_signal(name: str) -> None:
    async with a_wire() as wire:
        await ask(wire, "echo")
        start = time.monotonic()
        error = await failure_of(wire, "die", signal=name)
        assert time.monotonic() - start < 1
        assert isinstance(error, UpstreamLost)
        assert error.may_have_run
        assert f"was killed by {name}" in str(error)
        lost = await wire.wait_lost()
        assert lost.message == error.message
    await check_next_call_works()


@pytest.mark.promise("F02")
async def test_everyone_who_waits_is_told_and_whoever_comes_later_was_not_executed() -> None:
    async with a_wire() as wire:
        errors: list[OutfitterError] = []

        async def one() -> None:
            errors.append(await failure_of(wire, "hang"))

        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(one)
            await anyio.wait_all_tasks_blocked()
            errors.append(await failure_of(wire, "exit", code=3, words="out of luck\nsecond line\n"))
        assert len({id(error) for error in errors}) == 11
        for error in errors:
            assert isinstance(error, UpstreamLost)
            assert error.may_have_run
            assert "exited with code 3" in str(error)
            assert "out of luck | second line" in str(error)
        late = await failure_of(wire, "echo")
        assert isinstance(late, UpstreamLost)
        assert not late.may_have_run
        with pytest.raises(UpstreamLost):
            await wire.tell({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    await check_next_call_works()


@pytest.mark.promise("F02")
async def test_a_server_that_fails_at_its_start_says_so_in_its_own_words() -> None:
    async with a_wire("--fail") as wire:
        error = await failure_of(wire, "echo")
    assert "exited with code 1 before it answered anything" in str(error)
    assert "stderr: cannot read its configuration" in str(error)
    await check_next_call_works()


@pytest.mark.promise("F02")
async def test_an_answer_that_was_written_before_the_exit_still_counts() -> None:
    async with a_wire() as wire:
        message = request("raw_and_exit")
        message["params"] = {"text": f'{{"id": {message["id"]}, "result": "last"}}\n'}
        with anyio.fail_after(20):
            assert (await wire.ask(message))["result"] == "last"
            assert "exited with code 0" in str(await wire.wait_lost())


@pytest.mark.promise("F02")
@pytest.mark.parametrize("which", ["stdin", "stdout"])
async def test_a_child_that_closes_a_pipe_and_lives_on_is_ended(which: str) -> None:
    async with a_wire() as wire:
        pid = (await ask(wire, "look", values=[]))["pid"]
        error = await failure_of(wire, f"close_{which}")
        assert f"closed its {which} and was ended" in str(error)
        assert has_ended(pid)
    await check_next_call_works()


@pytest.mark.promise("F02")
async def test_pipes_that_an_escaped_grandchild_holds_open_delay_nothing() -> None:
    async with a_wire() as wire:
        sleeper = (await ask(wire, "start_sleeper", escapes=True))["pid"]
        try:
            start = time.monotonic()
            error = await failure_of(wire, "exit", code=0)
            assert "exited with code 0" in str(error)
            assert time.monotonic() - start < 2
        finally:
            os.kill(sleeper, 9)


@pytest.mark.promise("WIRE-STDIO")
async def test_closing_the_wire_fails_whoever_still_waits() -> None:
    caught: list[OutfitterError] = []

    async def one(wire: Wire) -> None:
        caught.append(await failure_of(wire, "hang"))

    async with anyio.create_task_group() as group, a_wire() as wire:
        group.start_soon(one, wire)
        await anyio.wait_all_tasks_blocked()
    (error,) = caught
    assert isinstance(error, UpstreamLost)
    assert error.may_have_run
    assert "closed" in str(error)


# ── the child says something else ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("P10")
@pytest.mark.parametrize(
    "banner", ["Welcome to Files 1.0!\n", "[info] listening\n{}\n", '{"level": "info"}\n', "[1]\n"]
)
async def test_a_banner_on_stdout_is_an_error_that_quotes_it(banner: str) -> None:
    async with a_wire("--banner", banner) as wire:
        with anyio.fail_after(20):
            lost = await wire.wait_lost()
        assert isinstance(lost, ProtocolViolation)
        assert banner.splitlines()[0] in str(lost)
        assert "stderr" in lost.hint
        assert isinstance(await failure_of(wire, "echo"), ProtocolViolation)
    await check_next_call_works()


@pytest.mark.promise("F07")
@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("no json at all\n", "no json at all"),
        ('{"jsonrpc": "2.0", "id": 1, "resu\n', '{"jsonrpc": "2.0", "id": 1, "resu'),
        ('{"id": 1, "result": "\xff"}\n', r'{"id": 1, "result": "\xff"}'),
        ('\xef\xbb\xbf{"id": 1, "result": 1}\n', r'\ufeff{"id": 1, "result": 1}'),
        ("<html><body>502</body></html>\n", "<html><body>502"),
        ("\x1b[31mred\x07\x00\n", r"\x1b[31mred\x07\x00"),
        ("[" * 100_000 + "\n", "[" * 200),
        ("null\n", "null"),
        ('{"id": 1}\n', '{"id": 1}'),
        ("y" * 5000 + "\n", "y" * 200),
    ],
)
async def test_garbage_fails_the_ask_with_its_beginning(text: str, quoted: str) -> None:
    async with a_wire() as wire:
        error = await failure_of(wire, "raw", text=text)
    assert isinstance(error, ProtocolViolation)
    assert quoted in str(error)
    assert len(str(error)) < 600
    assert str(error).isprintable()
    await check_next_call_works()


@pytest.mark.promise("F07")
async def test_a_line_that_the_exit_cut_off_is_quoted() -> None:
    async with a_wire() as wire:
        error = await failure_of(wire, "raw_and_exit", text='{"jsonrpc": "2.0", "id')
    assert 'the last line is cut off: {"jsonrpc": "2.0", "id' in str(error)
    await check_next_call_works()


@pytest.mark.promise("F07")
@pytest.mark.parametrize("ident", ["[1]", "{}", "null", "1.5", '"never asked"', "true"])
async def test_an_answer_to_nobody_is_dropped(ident: str) -> None:
    async with a_wire() as wire:
        with anyio.move_on_after(0.05):
            await wire.ask(request("raw", text=f'{{"id": {ident}, "result": 1}}\n') | {"id": "mine"})
        assert await ask(wire, "echo", next=1) == {"next": 1}


@pytest.mark.promise("P09", "F09")
async def test_an_endless_line_is_cut_and_the_child_killed() -> None:
    async with a_wire(limits=StdioLimits(line_bytes=1_000_000, stop=QUICK)) as wire:
        pid = (await ask(wire, "look", values=[]))["pid"]
        error = await failure_of(wire, "flood_stdout", bytes=100_000_000)
        assert isinstance(error, ProtocolViolation)
        assert "more than 1000000 bytes" in str(error)
        assert has_ended(pid)
        assert "was killed" not in str(await wire.wait_lost())
    await check_next_call_works()


@pytest.mark.promise("P09")
async def test_the_cap_holds_for_a_line_that_comes_in_one_piece() -> None:
    async with a_wire(limits=StdioLimits(line_bytes=1_000, stop=QUICK)) as wire:
        assert isinstance(await failure_of(wire, "raw", text="z" * 1_001 + "\n"), ProtocolViolation)
    async with a_wire(limits=StdioLimits(line_bytes=1_000, stop=QUICK)) as wire:
        assert await ask(wire, "echo", text="z" * 900) == {"text": "z" * 900}


@pytest.mark.promise("P11")
async def test_a_flood_on_stderr_blocks_nobody() -> None:
    async with a_wire() as wire:
        assert await ask(wire, "flood_stderr", bytes=256 * 1024 * 1024) == {"done": True}
        assert await ask(wire, "echo", next=1) == {"next": 1}


@pytest.mark.promise("P11")
async def test_a_child_that_floods_stdout_while_it_is_written_to_does_not_deadlock() -> None:
    ear = Ear()
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"text": "n" * 400}}) + "\n"
    big = "q" * 200_000
    async with a_wire(ear=ear) as wire, anyio.create_task_group() as group:
        group.start_soon(lambda: ask(wire, "flood_stdout", piece=note, bytes=len(note) * 20_000))
        for _ in range(40):
            group.start_soon(lambda: ask(wire, "echo", big=big))
    assert len(ear.notices) == 20_000


def _wait_until_stopped(pid: int) -> None:
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end


@pytest.mark.promise("P11")
async def test_writers_wait_for_a_child_that_does_not_read_and_are_told_when_it_goes() -> None:
    errors: list[OutfitterError] = []

    async def one(wire: Wire) -> None:
        errors.append(await failure_of(wire, "echo", big="q" * 300_000))

    async with a_wire("--stubborn") as wire:
        pid = (await ask(wire, "look", values=[]))["pid"]
        os.kill(pid, 19)  # SIGSTOP: it reads nothing
        _wait_until_stopped(pid)
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(one, wire)
            await anyio.wait_all_tasks_blocked()
            os.kill(pid, 9)
    assert len(errors) == 20
    assert all(isinstance(error, UpstreamLost) for error in errors)
    assert any(isinstance(error, UpstreamLost) and not error.may_have_run for error in errors)


@pytest.mark.promise("H17")
async def test_no_quote_shows_what_the_child_was_given_in_secret() -> None:
    canary, token = "CNRY-5f1e0c", "tok/9 with\nsecond-line"
    server = a_child(
        "--key=${ARG}",
        env={"KEY": "Bearer ${KEY}", "TOKEN": {"$secret": "file:token"}},
        variables={"KEY": canary, "ARG": "arg-secret-77"},
        secrets={"file:token": token},
    )
    words = f"bad key {canary}\nfor {token}\nand {token!r} and arg-secret-77\n"
    async with a_wire(server=server) as wire:
        told = str(await failure_of(wire, "exit", code=1, words=words))
    async with a_wire(server=server) as wire:
        told += str(await failure_of(wire, "raw", text=f"{'.' * 195}{canary}\n"))
    for secret in ("CNRY", "5f1e0c", "tok/9", "second-line", "arg-secret-77"):
        assert secret not in told
    assert "bad key" in told


# ── many times ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("F35")
async def test_two_hundred_lives_leave_no_zombie_and_no_open_file() -> None:
    async def life() -> None:
        async with a_wire() as wire:
            assert await ask(wire, "echo", alive=True) == {"alive": True}

    await life()
    before = open_files()
    for _ in range(20):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(life)
    assert zombies() == []
    assert open_files() == before


@pytest.mark.promise("F35")
async def test_a_cancelled_owner_leaves_nothing_behind() -> None:
    pids: list[int] = []
    before = open_files()
    with anyio.move_on_after(20) as scope:
        async with a_wire("--stubborn") as wire:
            pids.append((await ask(wire, "look", values=[]))["pid"])
            scope.cancel()
            await wire.wait_lost()
    assert all(has_ended(pid, within=0) for pid in pids)
    assert (zombies(), open_files()) == ([], before)
