"""Results that are too large for a model: kept aside for their agent, read in parts, and nobody else's."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from outfitter.calls import READER, SCHEME
from outfitter.catalog import MCPServer
from outfitter.gateway import Governing
from outfitter.storage import ResultFolder
from outfitter.testing import Script, ScriptedTool, serve_http
from tests.gateway.kit import Raw, agent, raw
from tests.gateway.watched import Watched, watched

pytestmark = pytest.mark.anyio
LIMIT = 2048
ROWS = {"rows": [{"number": number, "word": f"wörd-{number}"} for number in range(500)]}
WRITTEN = json.dumps(ROWS, ensure_ascii=False)
SCHEMA = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}
IMAGE = {"type": "image", "data": "QUJD" * 4000, "mimeType": "image/png"}


def _answering(name: str, *content: dict[str, Any], **more: Any) -> ScriptedTool:  # noqa: ANN401 - JSON
    return ScriptedTool(name, kind="answer", result={"content": list(content), "isError": False, **more})


ROWS_TOOL = replace(
    _answering("rows", {"type": "text", "text": WRITTEN}, structuredContent=ROWS), extra={"outputSchema": SCHEMA}
)
SCRIPT = Script(
    "x",
    tools=(
        ScriptedTool("big", kind="big"),
        ScriptedTool("echo", kind="echo"),
        ROWS_TOOL,
        _answering("picture", {"type": "text", "text": "a picture"}, IMAGE),
        _answering("mixed", {"type": "text", "text": "x" * 5000}, IMAGE, structuredContent={"other": "y"}),
    ),
)


@asynccontextmanager
async def _served(folder: Path, shelf: ResultFolder, limit: int | None = LIMIT) -> AsyncGenerator[Watched]:
    async with serve_http(SCRIPT) as served:
        one = agent("a", MCPServer.http("x", served.url))
        agents = (replace(one, result_limit=limit), replace(one, name="b", result_limit=limit))
        async with watched(folder, *agents, is_fast=True, governing=Governing(shelf=shelf)) as running:
            yield running


async def _call(http: Raw, name: str, **arguments: object) -> dict[str, Any]:
    _, answer = await http.modern("tools/call", {"name": name, "arguments": arguments})
    return answer["result"]


def _text(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


def _handle(result: dict[str, Any]) -> str:
    return result["_meta"]["outfitter/kept"]["uri"]


@pytest.mark.promise("LARGE-RESULTS")
async def test_a_large_result_is_kept_and_the_whole_of_it_can_be_read_in_parts(tmp_path: Path) -> None:
    shelf = ResultFolder(tmp_path / "results")
    async with _served(tmp_path, shelf) as running, raw(running.address.url("a", "x")) as http:
        small = await _call(http, "echo", text="t")
        assert small["structuredContent"] == {"text": "t"}
        result = await _call(http, "rows")
        handle, text = _handle(result), _text(result)
        assert len(text.encode()) < LIMIT
        assert "structuredContent" not in result
        assert result["isError"] is False
        assert f"{len(WRITTEN.encode())} bytes long" in text
        assert text.endswith(WRITTEN[-50:])
        assert WRITTEN[:100] in text
        read, offset = "", 0
        while f"of {len(WRITTEN.encode())}" in (part := _text(await _call(http, READER, handle=handle, offset=offset))):
            head, _, rest = part.partition("\n")
            read += rest
            if "this is the end" in head:
                break
            offset = int(head.rpartition("offset ")[2].rstrip("]"))
        assert read == WRITTEN
        found = _text(await _call(http, READER, handle=handle, find="WöRD-499"))
        assert found.startswith("[1 match; there are no more]")
        assert json.loads((await _resource(http, handle))["text"]) == ROWS
        part = await _resource(http, f"{handle}?from=2&bytes=4")
        assert (part["text"], part["mimeType"]) == (WRITTEN[2:6], "application/json")
        records = running.records()
    assert {record.get("lane") for record in records} == {None}
    assert (records[-1]["server"], records[-1]["tool"], records[-1]["outcome"]) == ("outfitter", READER, "done")


async def _resource(http: Raw, uri: str) -> dict[str, Any]:
    _, answer = await http.modern("resources/read", {"uri": uri})
    return answer["result"]["contents"][0] if "result" in answer else answer["error"]


@pytest.mark.promise("LARGE-RESULTS-BOUND")
async def test_what_was_kept_for_one_agent_is_not_there_for_another_and_survives_a_restart(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    async with _served(tmp_path / "1", ResultFolder(folder)) as running, raw(running.address.url("a", "x")) as http:
        handle = _handle(await _call(http, "big", size=5000))
        async with raw(running.address.url("b", "x")) as other:
            refused = await _call(other, READER, handle=handle)
            assert (refused["isError"], "no such result" in _text(refused)) == (True, True)
            assert "Resource not found" in (await _resource(other, handle))["message"]
    async with _served(tmp_path / "2", ResultFolder(folder)) as running, raw(running.address.url("a", "x")) as http:
        assert "bytes 4990 to 5000 of 5000" in _text(await _call(http, READER, handle=handle, offset=4990))
        for wrong in ({"handle": handle, "offset": -1}, {"handle": 5}, {"handle": handle, "colour": 1}):
            assert (await _call(http, READER, **wrong))["isError"] is True
        for wrong in (f"{SCHEME}../../{'a' * 22}", f"{SCHEME}", handle[:-1]):
            assert "no such result" in _text(await _call(http, READER, handle=wrong))


@pytest.mark.promise("LARGE-RESULTS")
async def test_what_is_no_text_passes_and_is_not_counted(tmp_path: Path) -> None:
    shelf = ResultFolder(tmp_path / "results")
    async with _served(tmp_path, shelf) as running, raw(running.address.url("a", "x")) as http:
        picture = await _call(http, "picture")
        assert picture["content"] == [{"type": "text", "text": "a picture"}, IMAGE]
        mixed = await _call(http, "mixed")
        assert [block["type"] for block in mixed["content"]] == ["text", "image"]
        assert (await _resource(http, _handle(mixed)))["text"] == "x" * 5000 + '\n\n{"other":"y"}'


@pytest.mark.promise("LARGE-RESULTS")
async def test_an_agent_with_a_limit_is_promised_no_structure_and_has_the_tool_that_reads(tmp_path: Path) -> None:
    shelf = ResultFolder(tmp_path / "results")
    async with _served(tmp_path / "1", shelf) as running:
        async with raw(running.address.url("a", "x")) as http:
            _, answer = await http.modern("tools/list")
            _, templates = await http.modern("resources/templates/list")
            _, told = await http.modern("server/discover")
        async with Client(running.address.url("a", "x")) as strict:  # it refuses a promise that is not kept
            await strict.list_tools()
            result = await strict.call_tool("rows", {})
    tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
    assert "outputSchema" not in tools["rows"]
    assert tools[READER]["annotations"]["readOnlyHint"] is True
    assert templates["result"]["resourceTemplates"][-1]["uriTemplate"].startswith(SCHEME)
    assert "resources" in told["result"]["capabilities"]
    assert result.structured_content is None
    async with _served(tmp_path / "2", shelf, None) as running, raw(running.address.url("a", "x")) as http:
        _, answer = await http.modern("tools/list")
        assert READER not in {tool["name"] for tool in answer["result"]["tools"]}
        assert (await _call(http, "rows"))["structuredContent"] == ROWS
        for _ in range(3):
            await _call(http, "big", size=5000)
        assert "fast" in {record.get("lane") for record in running.records()}


async def test_a_result_that_cannot_be_kept_is_cut_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where a folder should be")
    shelf = ResultFolder(tmp_path / "results")
    async with _served(tmp_path, shelf) as running, raw(running.address.url("a", "x")) as http:
        result = await _call(http, "big", size=5000)
    assert "could not be kept" in _text(result)
    assert len(_text(result)) < LIMIT


def test_kept_results_are_private_and_end_by_age_and_by_size(tmp_path: Path) -> None:
    moments = iter(range(1_000_000_000, 2_000_000_000))
    shelf = ResultFolder(tmp_path / "results", most_bytes=10_000, clock=lambda: float(next(moments)))
    idents = [shelf.put(("a", ""), b"x" * 4000, server="s", tool="t", type="text/plain") for _ in range(5)]
    files = [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
    assert {path.name for path in files} == set(idents[-2:])
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o700
    assert shelf.read(("a", ""), idents[-1]) == (b"x" * 4000, "text/plain")
    assert [shelf.read(owner, idents[-1]) for owner in (("a", "run-1"), ("b", ""))] == [None, None]
    assert [(one.id, one.agent, one.size) for one in shelf.all()] == [(ident, "a", 4000) for ident in idents[:-3:-1]]
    later = ResultFolder(tmp_path / "results", clock=lambda: 1_000_100_000.0)
    assert (later.read(("a", ""), idents[-1]), later.all()) == (None, ())
    later.put(("b", ""), b"new", server="s", tool="t", type="text/plain")
    assert [path.read_bytes()[-3:] for path in (tmp_path / "results").rglob("*") if path.is_file()] == [b"new"]
    assert (later.clear(), list((tmp_path / "results").iterdir())) == (1, [])
