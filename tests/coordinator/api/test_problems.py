"""Every error has one HTTP status, and says where in the body it was found."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from outfitter import errors
from outfitter.coordinator import STATUSES
from outfitter.formats import Syntax, line_of
from tests.coordinator.api.kit import Served, service
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio


@pytest.mark.promise("API-PROBLEMS")
def test_every_code_of_the_error_tree_has_a_status() -> None:
    kinds = [getattr(errors, name) for name in errors.__all__]
    codes = {kind.code for kind in kinds if isinstance(kind, type) and issubclass(kind, errors.OutfitterError)}
    assert codes == set(STATUSES)
    assert all(400 <= status <= 504 for status in STATUSES.values())


@pytest.mark.promise("API-PROBLEMS")
async def test_a_fault_in_a_document_is_told_with_its_line_and_pointer(served: Served) -> None:
    body = b'{\n "id": "x",\n "url": "http://localhost:1/mcp",\n "header_schema": {"X-A": {"type": "strnig"}}\n}'
    reply = await served.post("/mcp-servers", body)
    assert (reply.status, reply.code) == (422, "invalid_document")
    assert (reply.json["line"], reply.json["pointer"]) == (4, "/header_schema/X-A/type")
    assert reply.json["type"] == "urn:outfitter:problem:invalid_document"
    assert reply.json["title"] == "Unprocessable Content" or reply.json["title"] == "Unprocessable Entity"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b'{"id": "x",\n "id": "y"}', 2),
        (b'{"id": \n nope}', 2),
        (b'["id"]', None),
        (b'{"id": NaN}', 1),
        (b"", None),
        (b'{"id": "\xff"}', 1),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, 1),
    ],
)
async def test_a_body_that_is_not_one_json_object_is_400_with_its_line(
    served: Served, body: bytes, line: int | None
) -> None:
    for path in ("/mcp-servers", "/runs", "/tokens", "/resolve"):
        reply = await served.post(path, body)
        assert (reply.status, reply.code) == (400, "malformed_body"), reply.content
        assert line is None or reply.json["line"] == line


async def test_a_wrong_value_of_a_request_is_422_with_its_pointer(served: Served) -> None:
    changes = [{"kind": "agents", "id": "a", "document": None}, {"kind": "agent", "id": "a", "document": None}]
    reply = await served.post("/resolve", {"agent_name": "a", "changes": changes})
    assert (reply.status, reply.code, reply.json["pointer"]) == (422, "invalid_document", "/changes/1/kind")
    reply = await served.post("/tokens", {"role": "viewer", "colour": "red"})
    assert (reply.status, reply.code) == (422, "invalid_document")
    assert "colour" in reply.json["detail"]


async def test_only_json_is_read_and_not_without_end(served: Served) -> None:
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "multipart/form-data",
    ):
        reply = await served.post("/runs", b"{}", content_type=kind)
        assert (reply.status, reply.code) == (415, "unsupported_media_type")
    reply = await served.post("/runs", b"{}", content_encoding="gzip")
    assert reply.status == 415
    reply = await served.post("/runs", b'{"prompt": "' + b"x" * (5 * 1024 * 1024) + b'"}')
    assert (reply.status, reply.code) == (413, "too_large")
    reply = await served.post("/runs", b'{"prompt": "' + b"x" * (256 * 1024) + b'"}')
    assert (reply.status, reply.code) == (413, "too_large")


async def test_each_of_many_faults_is_told_with_its_own_line(served: Served) -> None:
    """Also where keys are escaped, and where the same key stands elsewhere before."""
    headers: dict[str, object] = {f"X-{number}": {"bad 1": [{"bad 2": "]"}, 7]} for number in range(4)}
    headers |= {f"bad \u00e9\n {number}": 'a "quoted" {text}' for number in range(5)}
    text = json.dumps(
        {"prompt": "bad 1", "agent_name": "a", "mcp_headers": {"s": headers, "t": {"bad 1": "v"}}}, indent=1
    )
    reply = await served.post("/runs", text.encode())
    problems = reply.json["problems"]
    assert (reply.status, len(problems)) == (422, 6)
    for problem in problems:
        trail = problem["pointer"].split("/")[1:]
        assert problem["line"] == line_of(text, trail, Syntax.JSON)
    assert len({problem["line"] for problem in problems}) == 6
    body = b'{"role": "viewer",\n "changes": [\n{"kind": "agents", "id": "a", "document": null},\n {"kind": 1}]}'
    reply = await served.post("/resolve", body.replace(b'"role": "viewer"', b'"agent_name": "a"'))
    assert (reply.json["pointer"], reply.json["line"]) == ("/changes/1/kind", 4)


async def test_a_long_body_full_of_faults_is_refused_with_the_first_of_them(served: Served) -> None:
    headers = {f"X-{number}": "v" for number in range(15_000)} | {f"bad {number}": "v" for number in range(25)}
    reply = await served.post("/runs", {"agent_name": "a", "mcp_headers": {"s": headers}})
    assert (reply.status, reply.code) == (422, "refused")
    assert 0 < len(reply.json["problems"]) < 20


async def test_unknown_and_wrong_parameters_are_400(served: Served) -> None:
    for query in (
        "colour=red",
        "limit=0",
        "limit=many",
        "limit=501",
        "limit=1&limit=2",
        "cursor=%00",
        "q=%00",
        "q=%ff",
    ):
        reply = await served.get(f"/mcp-servers?{query}")
        assert (reply.status, reply.code) == (400, "bad_query"), query
    assert (await served.get("/calls?since=yesterday")).status == 400
    assert (await served.get("/calls?cursor=abc")).status == 400
    assert (await served.get("/health?x=1")).status == 400


@pytest.mark.promise("API-PROBLEMS")
async def test_a_database_that_is_busy_is_503_for_writers_and_nothing_for_readers(tmp_path: Path) -> None:
    async with service(tmp_path, wait=0.1) as served:
        await served.must("/mcp-servers", CONTEXT_STORE)
        with closing(sqlite3.connect(tmp_path / "registry.sqlite", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            reply = await served.post("/mcp-servers", CONTEXT_STORE | {"id": "second"})
            assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, "storage_unavailable", "1")
            assert str(tmp_path).encode() not in reply.content
            assert (await served.get("/mcp-servers/context-store")).status == 200
            assert (await served.get("/mcp-servers/second")).status == 404
            other.execute("ROLLBACK")
        await served.must("/mcp-servers", CONTEXT_STORE | {"id": "second"})


async def test_a_fault_of_ours_is_500_and_told_in_the_log_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> str:
        raise RuntimeError("CNRY")

    async with service(tmp_path, metrics=fails) as served:
        reply = await served.get("/metrics")
        assert (reply.status, reply.code) == (500, "error")
        assert b"CNRY" not in reply.content
        assert "CNRY" in caplog.text
        assert (await served.get("/health")).status == 200
