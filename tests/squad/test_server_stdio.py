"""``outfitter squad serve`` as a client starts it: real folders on stdin and stdout, in both eras."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from outfitter.catalog import JsonValue
from outfitter.testing import Script, ScriptedTool, stdio_server
from tests.squad.folders import branch_folder, broken_folder, empty_folder, new_folder, old_folder, repository
from tests.squad.server_kit import BEGUN, ENVELOPE, ERAS, LIMIT, SERVE, Lines, digest_of, speaking

pytestmark = pytest.mark.anyio
METHOD_NOT_FOUND = -32601
WRITES = [
    *("resources/write", "resources/update", "resources/delete", "resources/create", "resources/set"),
    *("squad/decide", "squad/write", "decisions/add", "files/write", "tools/register", "roots/set", "prompts/add"),
]
READS = [
    *("tools/list", "tools/call", "resources/list", "resources/read", "resources/templates/list"),
    *("resources/subscribe", "resources/unsubscribe", "completion/complete", "prompts/list", "prompts/get"),
    *("ping", "logging/setLevel", "server/discover", "tasks/list", "tasks/cancel", "elicitation/create"),
]


async def read(lines: Lines, uri: str) -> dict[str, Any]:
    """The document at a URI."""
    answer = await lines.ask("resources/read", {"uri": uri})
    return json.loads(answer["result"]["contents"][0]["text"])


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("SQUAD-SERVE")
async def test_a_real_folder_is_served_and_the_server_says_which(tmp_path: Path, era: str) -> None:
    new_folder(tmp_path)
    async with speaking(era, SERVE, tmp_path) as lines:
        roster = await read(lines, "squad://roster")
        history = await read(lines, "squad://agents/eecom/history")
        tool = {"name": "squad_decision_search", "arguments": {"query": "server"}}
        found = (await lines.ask("tools/call", tool))["result"]["structuredContent"]
    assert {"flight", "eecom", "scribe"} <= {member["id"] for member in roster["members"]}
    assert "kobayashi" not in {member["id"] for member in roster["members"]}
    assert history["entries"]
    assert found["decisions"]
    assert "The team of the folder" in "".join(lines.said)
    assert "everything" in "".join(lines.said)


@pytest.mark.promise("O02")
async def test_an_agent_is_served_its_own_history_alone(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "repo")
    (tmp_path / "elsewhere").mkdir()
    command = (*SERVE, "--dir", str(folder), "--agent", "eecom")
    async with speaking("2026-07-28", command, tmp_path / "elsewhere") as lines:
        resources = (await lines.ask("resources/list"))["result"]["resources"]
        refused = (await lines.ask("resources/read", {"uri": "squad://agents/flight/history"}))["error"]
    assert [one["uri"] for one in resources if one["uri"].endswith("/history")] == ["squad://agents/eecom/history"]
    assert refused["code"] == -32602
    assert "'eecom'" in "".join(lines.said)


@pytest.mark.parametrize("build", [old_folder, broken_folder, empty_folder, branch_folder])
@pytest.mark.promise("SQUAD-SERVE")
async def test_every_folder_is_served_with_answers_or_notes(tmp_path: Path, build: Any) -> None:  # noqa: ANN401 - a builder
    build(tmp_path)
    async with speaking("legacy", SERVE, tmp_path) as lines:
        listed = (await lines.ask("resources/list"))["result"]["resources"]
        documents = [await read(lines, resource["uri"]) for resource in listed]
        told = (await lines.ask("tools/call", {"name": "squad_status", "arguments": {}}))["result"]
    assert len(documents) >= 6
    assert all("notes" in document for document in documents)
    assert not told["isError"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("O03")
async def test_nothing_writes_whatever_is_sent(tmp_path: Path, era: str) -> None:
    folder, dice = new_folder(tmp_path), random.Random(11)
    before = digest_of(folder)
    async with speaking(era, SERVE, tmp_path) as lines:
        for method in WRITES:
            refused = await lines.ask(method, {"uri": "squad://decisions", "text": "mine", "name": "x"})
            assert refused["error"]["code"] == METHOD_NOT_FOUND
        for method in READS:
            for _ in range(6):
                answer = await lines.ask(method, _anything(dice))
                assert answer.keys() & {"result", "error"}
        capabilities = (await lines.ask("resources/read", {"uri": "squad://roster"}))["result"]
        assert capabilities["contents"]
    assert digest_of(folder) == before


def _anything(dice: random.Random) -> dict[str, Any]:
    """Parameters that may mean something."""
    values: list[Any] = [
        *("squad://roster", "squad://agents/eecom/history", "../../x", "squad_status", "write"),
        *(7, None, True, [], {"a": 1}, {"query": "x", "limit": 3}),
        *({"name": "name", "value": ""}, {"type": "ref/resource", "uri": "squad://agents"}),
    ]
    keys = ["uri", "name", "arguments", "text", "contents", "ref", "argument", "cursor", "level"]
    return {key: dice.choice(values) for key in dice.sample(keys, dice.randint(0, 5))}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("O10")
async def test_what_a_handler_prints_is_not_on_stdout(tmp_path: Path, era: str) -> None:
    command = (sys.executable, "-m", "tests.squad.printing_program")
    async with speaking(era, command, tmp_path) as lines:
        for _ in range(3):
            assert (await read(lines, "squad://roster"))["members"]
        assert not (await lines.ask("tools/call", {"name": "squad_status", "arguments": {}}))["result"].get("isError")
    said = "".join(lines.said)
    for word in ("printed by a handler", "written to the descriptor", "said by a child"):
        assert word in said


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("O10")
async def test_lines_that_are_no_messages_do_not_end_it(tmp_path: Path, era: str) -> None:
    new_folder(tmp_path)
    async with speaking(era, SERVE, tmp_path) as lines:
        assert lines.process.stdin is not None
        for rubbish in (b"\n", b"{\n", b"[]\n", b"\xff\xfe\n", b'{"jsonrpc":"2.0"}\n', b"x" * 100_000 + b"\n"):
            await lines.process.stdin.send(rubbish)
        assert (await read(lines, "squad://roster"))["members"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("SQUAD-CHANGES")
async def test_a_file_that_changes_is_told(tmp_path: Path, era: str) -> None:
    folder, uri, told = new_folder(tmp_path), "squad://agents/eecom/history", dict[str, Any]()
    async with speaking(era, SERVE, tmp_path) as lines:
        if era == "legacy":
            assert "result" in await lines.ask("resources/subscribe", {"uri": uri})
        else:
            wanted = {"notifications": {"resourceSubscriptions": [uri]}, "_meta": ENVELOPE}
            await lines.send({"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": wanted})
            begun = await lines.hear("notifications/subscriptions/acknowledged")
            assert begun["notifications"] == {"resourceSubscriptions": [uri]}
        async with anyio.create_task_group() as group:
            group.start_soon(_write_again_and_again, folder / "agents/eecom/history.md")
            told = await lines.hear("notifications/resources/updated")
            group.cancel_scope.cancel()
        assert told["uri"] == uri
        assert "learned" in json.dumps(await read(lines, uri))


async def _write_again_and_again(file: Path) -> None:
    """A history that grows: the first time may be before anybody looks."""
    text = await anyio.Path(file).read_text()
    for number in itertools.count():
        text += f"\n### 2026-04-01\nlearned {number}\n"
        await anyio.Path(file).write_text(text)
        await anyio.sleep(1)


@pytest.mark.promise("SQUAD-BACKLOG")
async def test_the_backlog_is_asked_of_the_tracker_of_the_squad_file(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    repository(tmp_path)
    with (tmp_path / ".git/config").open("a") as file:
        file.write('[remote "origin"]\n\turl = https://github.com/o/r.git\n')
    issues = [{"number": 12, "title": "Serve it", "state": "OPEN", "labels": [{"name": "squad:eecom"}]}]
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"q": {}}, "additionalProperties": False}
    result: dict[str, JsonValue] = {"content": [{"type": "text", "text": json.dumps(issues)}]}
    tool = ScriptedTool("search_issues", "", schema, kind="answer", result=result)
    server = stdio_server(Script(tools=(tool,)), name="github")
    described = {"command": server.command, "args": list(server.args), "tools": ["*"]}
    (folder / "mcp-config.json").write_text(json.dumps({"servers": {"github": described}, "agentServers": {}}))
    async with speaking("2026-07-28", SERVE, tmp_path) as lines:
        assert (await read(lines, "squad://backlog"))["source"] == "files", "a repository starts nothing by itself"
    async with speaking("2026-07-28", (*SERVE, "--issues"), tmp_path) as lines:
        backlog = await read(lines, "squad://backlog")
    assert backlog["source"] == "github"
    assert [(item["id"], item["assignee"]) for item in backlog["items"]] == [("#12", "eecom")]


@pytest.mark.promise("SQUAD-ERAS")
async def test_a_client_that_gave_up_on_discover_begins_with_the_handshake(tmp_path: Path) -> None:
    new_folder(tmp_path)
    async with speaking("2026-07-28", SERVE, tmp_path) as lines:
        assert "result" in await lines.ask("server/discover")
        lines.era = "legacy"
        await lines.begin()
        assert (await read(lines, "squad://roster"))["members"]
        assert "error" in await lines.ask("server/discover")


@pytest.mark.promise("SQUAD-ERAS")
async def test_once_an_era_is_used_the_other_is_refused(tmp_path: Path) -> None:
    new_folder(tmp_path)
    async with speaking("2026-07-28", SERVE, tmp_path) as lines:
        assert (await read(lines, "squad://roster"))["members"]
        lines.era = "legacy"
        assert (await lines.ask("initialize", BEGUN))["error"]["code"] == -32022
        lines.era = "2026-07-28"
        assert (await read(lines, "squad://roster"))["members"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.promise("O05")
async def test_a_query_of_a_megabyte_is_refused_and_the_next_one_answered(tmp_path: Path, era: str) -> None:
    new_folder(tmp_path)
    async with speaking(era, SERVE, tmp_path) as lines:
        for query in ("x" * 1_048_576, "(a+)+$" * 170_000):
            tool = {"name": "squad_decision_search", "arguments": {"query": query}}
            refused = (await lines.ask("tools/call", tool))["result"]
            assert refused["isError"]
            assert len(refused["content"][0]["text"]) < 1000
        assert (await read(lines, "squad://roster"))["members"]


def test_an_agent_that_is_not_of_the_team_is_an_error_that_says_who_is(tmp_path: Path) -> None:
    new_folder(tmp_path)
    done = subprocess.run(
        [*SERVE, "--agent", "flihgt"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        input="",
    )
    assert done.returncode == 4
    assert "flight" in done.stderr
    assert done.stdout == ""


def test_a_folder_without_a_team_is_an_error_when_it_was_named(tmp_path: Path) -> None:
    command = [*SERVE, "--dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, input="")
    assert done.returncode == 4
    assert ".squad" in done.stderr


def test_without_the_library_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['mcp'] = None; from outfitter.squad import serving_team"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT, check=False)
    assert "outfitter.errors" in done.stderr
    assert "pip install 'outfitter[squad]'" in done.stderr
