"""Runs executed by a real runner for a real coordinator: what a program is given, and what becomes of what it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from outfitter.testing import Script, serve_http
from tests.app.kit import ended
from tests.runner.kit import lives, marked, team, until_gone

pytestmark = pytest.mark.anyio
FLAGS = "document --mcp-config x\n\"quoted\" 'and' $(touch pwned) `id` --dangerously-skip-permissions"


@pytest.mark.promise("RUNNER-COMMAND", "N06", "N07")
async def test_a_program_gets_its_run_on_standard_input_and_nothing_of_it_in_its_arguments(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent(env={"MY_KEY": "${MY_KEY_HERE}", "MY_WORD": "plain"})
        run_id = await one.run(FLAGS)
        with one.runner() as runner:
            run = await one.end_of(run_id)
            assert run["state"] == "done", (run, runner.log())
            assert await runner.stop() == 0
            log = runner.log()
        found = run["result"]
        document = found["document"]
        assert (document["run_id"], document["prompt"], document["agent"]) == (run_id, FLAGS, "worker")
        assert (document["session_id"], document["system_prompt"]) == (run["session_id"], "Work.")
        assert document["mcp"]["url"] == f"{one.up.url}/mcp/worker"
        assert document["mcp"]["token"].startswith("•"), "what a program says about its token is masked"
        assert found["argv"] == [], "no prompt can become a flag"
        assert (found["env"]["MY_WORD"], found["env"]["OUTFITTER_RUN_ID"]) == ("plain", run_id)
        assert found["env"]["MY_KEY"] != "my-own-secret", "masked"
        assert "OUTFITTER_TOKEN" not in found["env"], "the runner's own token is the runner's own"
        assert found["mode"] == ["0o600", "0o700"]
        assert "oft_" not in json.dumps(found["config"])
        assert not Path(found["env"]["OUTFITTER_MCP_CONFIG"]).parent.exists()
        assert not (tmp_path / "pwned").exists()
        assert "Traceback" not in log
        assert not list((one.up.place.state / "runner").rglob("*.events")), "sent, so removed"


@pytest.mark.promise("RUNNER-COMMAND")
async def test_a_run_calls_its_servers_at_the_gateway_with_a_token_that_ends_with_it(tmp_path: Path) -> None:
    async with serve_http(Script("x")) as served, team(tmp_path) as one:
        status, _, _ = await one.up.api("POST", "/mcp-servers", {"id": "x", "url": served.url})
        assert status == 201
        await one.agent(servers={"x": {"ref": "x"}})
        run_id = await one.run("tool x")
        with one.runner("--once") as runner:
            run = await one.end_of(run_id)
            assert await ended(runner.process) == 0, "nothing is left to do"
        assert "Executed 1 runs (1 done)." in runner.log()
        assert run["state"] == "done", run
        assert json.loads(run["result"]["result"]["content"][0]["text"]) == {"text": "hi"}
        _, tokens, _ = await one.up.api("GET", "/tokens")
        assert all(token["revoked_at"] for token in tokens["items"] if token["run_id"] == run_id)


@pytest.mark.promise("N11")
async def test_too_long_and_bad_text_is_cut_and_written_out(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent()
        run_id = await one.run("bad")
        with one.runner():
            run = await one.end_of(run_id)
            events = {event["type"]: event["data"] for event in await one.events(run_id)}
        assert run["state"] == "done", run
        assert len(run["result"]) <= 1024 * 1024
        assert "more characters]" in run["result"]
        assert len(json.dumps(events["long"])) < 64 * 1024
        assert "big" not in events, "a line that is too long to be read is text"
        assert events["red"] == {"text": "\\x1b[31mred\\x00\\x07", "deep": {"more": ["\\x1b]0;title\\x07"]}}
        assert events["raw"]["text"] == "\\xff\\xfe" or events["raw"]["text"] == "��"
        assert not {"not finished", "7"} & set(events)


async def test_text_is_the_result_of_a_program_that_gives_none_and_a_failure_tells_its_last_words(
    tmp_path: Path,
) -> None:
    async with team(tmp_path) as one:
        await one.agent(env={"MY_KEY": "${MY_KEY_HERE}"})
        with one.runner():
            plain, bad = await one.run("hello there"), await one.run("fail")
            assert (await one.end_of(plain))["result"] == "plain text\nhello there"
            failed = await one.end_of(bad)
        assert (failed["state"], failed["error"]["code"], failed["result"]) == ("failed", "executor_failed", None)
        message = failed["error"]["message"]
        assert "exited with code 3" in message
        assert "\\x1b[31m the token is" in message
        assert len(message) < 2300
        assert "oft_" not in message
        assert "my-own-secret" not in message


@pytest.mark.promise("RUNNER-TREE")
async def test_stopping_a_run_ends_its_whole_tree(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent()
        run_id, pids = await one.run(f"spawn {tmp_path}/pids"), tmp_path / "pids"
        with one.runner():
            await one.until_told(run_id, "spawned")
            known = [int(pid) for pid in pids.read_text().split()]
            assert len(marked(run_id)) >= 3, "a program, its child, and one that left the session"
            status, _, _ = await one.up.api("POST", f"/runs/{run_id}/stop")
            assert status == 200
            assert (await one.end_of(run_id))["state"] == "stopped"
            assert not marked(run_id)
            assert not any(map(lives, known))


@pytest.mark.promise("RUNNER-TREE")
async def test_a_run_that_takes_too_long_is_ended_with_its_whole_tree(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent(timeout=3)
        run_id = await one.run(f"spawn {tmp_path}/pids")
        with one.runner():
            run = await one.end_of(run_id)
        assert (run["state"], run["error"]["code"]) == ("failed", "timeout")
        await until_gone(lambda: marked(run_id))


async def test_a_runner_that_is_told_to_stop_lets_runs_end_and_then_ends_them(tmp_path: Path) -> None:
    async with team(tmp_path) as one:
        await one.agent()
        with one.runner("--grace", "60") as patient:
            run_id = await one.run("count 20 0.05")
            await one.until_told(run_id, "tick")
            assert await patient.stop() == 0, patient.log()
        assert (await one.look(run_id))["state"] == "done"
        with one.runner("--grace", "0") as hasty:
            run_id = await one.run("count 10000 0.05")
            await one.until_told(run_id, "tick")
            waiting = await one.run("never begun")
            assert await hasty.stop() == 0, hasty.log()
        run = await one.look(run_id)
        assert (run["state"], run["error"]["code"]) == ("lost", "runner_stopped")
        assert not marked(run_id)
        assert (await one.look(waiting))["state"] in {"pending", "lost"}
