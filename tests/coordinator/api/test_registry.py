"""Servers, capabilities and agents over the wire: documents, versions, users, history, approval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.coordinator.api.kit import Served, files_with, names_in, service
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio

DOCUMENTS: dict[str, dict[str, Any]] = {
    "/mcp-servers": {"id": "x", "url": "http://localhost:1/mcp"},
    "/capabilities": {"name": "x", "text": "Do."},
    "/agents": {"name": "x", "system_prompt": "Be."},
}


@pytest.mark.promise("API-VERSIONS")
@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize("prefix", ["", "/api/v1"])
async def test_an_entry_is_made_read_replaced_and_taken_away(served: Served, kind: str, prefix: str) -> None:
    document, path = DOCUMENTS[kind], f"{prefix}{kind}"
    one = f"{path}/x/document" if kind == "/agents" else f"{path}/x"
    made = await served.must(path, document)
    assert made.headers["location"] == f"{path}/x"
    assert made.json == document
    read = await served.get(one)
    assert (read.status, read.json, read.etag) == (200, document, made.etag)
    changed = document | {"description": "More."}
    put = await served.put(f"{path}/x", changed, read.etag)
    assert (put.status, put.json) == (200, changed)
    assert put.etag != read.etag
    record = (await served.get(f"{one}?detail=true")).json
    assert (record["document"], record["etag"], record["users"]) == (changed, put.etag, 0)
    assert record["updated_by"].startswith("first admin")
    (listed,) = (await served.get(path)).json["items"]
    assert listed == record
    gone = await served.ask("DELETE", f"{path}/x", if_match=put.etag)
    assert (gone.status, gone.content) == (204, b"")
    assert (await served.get(one)).status == 404
    assert (await served.get(path)).json == {"items": [], "next_cursor": None}


@pytest.mark.promise("R13")
@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_of_two_changes_of_one_version_the_second_is_412_and_without_one_428(served: Served, kind: str) -> None:
    document = DOCUMENTS[kind]
    etag = (await served.must(kind, document)).etag
    assert (await served.put(f"{kind}/x", document | {"description": "1"}, etag)).status == 200
    second = await served.put(f"{kind}/x", document | {"description": "2"}, etag)
    assert (second.status, second.code, second.json["current"]) == (412, "version_conflict", '"2"')
    for method, path, body in (
        ("PUT", f"{kind}/x", document),
        ("DELETE", f"{kind}/x", None),
        ("POST", f"{kind}/x/rollback", {"version": 1}),
    ):
        assert (await served.ask(method, path, body)).code == "precondition_required"
        assert (await served.ask(method, path, body)).status == 428
        assert (await served.ask(method, path, body, if_match=etag)).status == 412
        assert (await served.ask(method, path, body, if_match='W/"2"')).status == 412
    shown = f"{kind}/x/document" if kind == "/agents" else f"{kind}/x"
    assert (await served.get(shown)).json == document | {"description": "1"}


async def test_an_id_is_given_once(served: Served) -> None:
    await served.must("/mcp-servers", DOCUMENTS["/mcp-servers"])
    again = await served.post("/mcp-servers", DOCUMENTS["/mcp-servers"])
    assert (again.status, again.code) == (409, "already_exists")
    put = await served.put("/mcp-servers/y", {"id": "y", "url": "http://localhost:1/mcp"}, '"1"')
    assert put.status in {404, 412}


@pytest.mark.promise("R14")
async def test_a_server_that_others_refer_to_is_deleted_by_force_only_and_runs_are_refused_then(served: Served) -> None:
    etag = (await served.must("/mcp-servers", CONTEXT_STORE)).etag
    uses = {"mcpServers": {"docs": {"ref": "context-store"}}}
    await served.must("/capabilities", {"name": "research"} | uses)
    await served.must("/agents", {"name": "reader"} | uses)
    refused = await served.ask("DELETE", "/mcp-servers/context-store", if_match=etag)
    assert (refused.status, refused.code) == (409, "in_use")
    assert {(user["kind"], user["id"]) for user in refused.json["users"]} == {
        ("agents", "reader"),
        ("capabilities", "research"),
    }
    assert (await served.ask("DELETE", "/mcp-servers/context-store?force=true", if_match=etag)).status == 204
    run = await served.post("/runs", {"agent_name": "reader"})
    assert run.status == 422
    assert "missing_ref" in run.codes
    assert "missing_ref" in (await served.get("/agents/reader")).codes
    assert (await served.get("/runs")).json["items"] == []


@pytest.mark.promise("R15")
async def test_no_body_sets_what_is_not_its_own(served: Served) -> None:
    document = DOCUMENTS["/mcp-servers"]
    etag = (await served.must("/mcp-servers", document)).etag
    before = (await served.get("/mcp-servers/x?detail=true")).content
    for field in ("approved", "pin", "created_by", "version", "etag", "updated_by", "colour"):
        wrong = document | {field: True}
        assert (await served.put("/mcp-servers/x", wrong, etag)).status == 422
        assert (await served.post("/mcp-servers", wrong | {"id": "y"})).status == 422
        assert (await served.post("/agents", DOCUMENTS["/agents"] | {field: True})).status == 422
        assert (await served.post("/runs", {"agent_name": "x", field: True})).status == 422
    assert (await served.get("/mcp-servers/x?detail=true")).content == before
    assert (await served.get("/mcp-servers/y")).status == 404


@pytest.mark.promise("R05")
@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://x/", "javascript:alert(1)", "data:,x", "ftp://x/"])
async def test_only_http_is_a_way_to_a_server(served: Served, url: str) -> None:
    reply = await served.post("/mcp-servers", {"id": "x", "url": url})
    assert reply.status == 422
    assert reply.json["pointer"] == "/url"
    assert (await served.get("/mcp-servers")).json["items"] == []


@pytest.mark.promise("R06")
async def test_a_password_in_a_url_is_refused_and_said_nowhere(
    served: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    reply = await served.post("/mcp-servers", {"id": "x", "url": "http://user:CNRY@localhost:1/mcp"})
    assert reply.status == 422
    assert b"CNRY" not in reply.content
    assert "CNRY" not in caplog.text
    assert not files_with(tmp_path, b"CNRY")


@pytest.mark.promise("R07")
@pytest.mark.parametrize(
    "name", ["../x", "a%2f..%2fb", "a\0b", "a" * 300, "\u0430dmin", "wink", "wink-x", "", "a/b", "a b"]
)
async def test_names_that_lead_elsewhere_are_refused(served: Served, tmp_path: Path, name: str) -> None:
    before = names_in(tmp_path.parent)
    reply = await served.post("/mcp-servers", {"id": name, "url": "http://localhost:1/mcp"})
    assert reply.status == 422, reply.content
    if not name.startswith("wink"):
        assert (await served.post("/agents", {"name": name})).status == 422
    from urllib.parse import quote

    if name:
        put = await served.put(f"/mcp-servers/{quote(name, safe='')}", {"url": "http://localhost:1/mcp"}, '"1"')
        assert put.status in {404, 422}
    assert (await served.get("/mcp-servers")).json["items"] == []
    assert names_in(tmp_path.parent) == before


@pytest.mark.promise("R17")
async def test_whoever_looks_sees_references_and_never_a_secret(served: Served, tmp_path: Path) -> None:
    server = CONTEXT_STORE | {"default_headers": {"X-Context-Namespace": "default", "X-API-Key": "CNRY-registry"}}
    await served.must("/mcp-servers", server)
    await served.must(
        "/mcp-servers", {"id": "ref", "url": "http://localhost:1/mcp", "default_headers": {"X-API-Key": "${KEY}"}}
    )
    await served.must("/mcp-servers", {"id": "program", "command": "true", "env": {"PASSWORD": "CNRY-env"}})
    docs = {"ref": "context-store", "headers": {"X-API-Key": "CNRY-agent"}}
    await served.must("/agents", {"name": "reader", "mcpServers": {"docs": docs, "ref": {"ref": "ref"}}})
    run = {"agent_name": "reader", "mcp_headers": {"docs": {"X-API-Key": "CNRY-run"}}}
    made = await served.must("/runs", run)
    await served.must("/runs", {"agent_name": "reader", "credentials": {"docs": {"X-API-Key": "CNRY-credential"}}})
    session = made.json["session_id"]
    for role in ("viewer", "admin"):
        somebody = await served.as_role(role)
        for path in (
            "/mcp-servers", "/mcp-servers/context-store", "/mcp-servers/context-store/history", "/mcp-servers/program",
            "/agents", "/agents/reader", "/agents/reader?explain=true", "/agents/reader/document",
            "/agents/reader/history", "/runs", f"/runs/{made.json['id']}", "/sessions", f"/sessions/{session}",
        ):  # fmt: skip
            reply = await somebody.get(path)
            assert reply.status == 200, (path, reply.content)
            assert b"CNRY" not in reply.content, path
        tried = {"kind": "mcp-servers", "id": "context-store", "document": server}
        reply = await somebody.post("/resolve", {"agent_name": "reader", "changes": [tried], "run": run})
        assert reply.status == 200
        assert b"CNRY" not in reply.content
    assert (await served.get("/mcp-servers/ref")).json["default_headers"] == {"X-API-Key": "${KEY}"}
    assert not files_with(tmp_path, b"CNRY")


@pytest.mark.promise("API-MASK")
async def test_a_mask_that_is_sent_back_keeps_what_is_stored(served: Served) -> None:
    server = CONTEXT_STORE | {"default_headers": {"X-Context-Namespace": "default", "X-API-Key": "CNRY"}}
    await served.must("/mcp-servers", server)
    read = await served.get("/mcp-servers/context-store")
    assert read.json["default_headers"]["X-API-Key"] == "********"
    put = await served.put("/mcp-servers/context-store", read.json | {"name": "New"}, read.etag)
    assert put.status == 200
    entry = await served.office.coordinator.database.registry.entry("mcp-servers", "context-store")
    assert entry is not None
    assert entry.document["default_headers"]["X-API-Key"] == "CNRY"
    assert entry.document["name"] == "New"


@pytest.mark.promise("API-HISTORY")
async def test_history_says_who_changed_what_and_an_earlier_version_comes_back(served: Served) -> None:
    editor = await served.as_role("editor")
    first = {"id": "x", "url": "http://localhost:1/mcp"}
    etag = (await editor.must("/mcp-servers", first)).etag
    etag = (await served.put("/mcp-servers/x", first | {"name": "Worse"}, etag)).etag
    back = await editor.ask("POST", "/mcp-servers/x/rollback", {"version": 1}, if_match=etag)
    assert (back.status, back.json) == (200, first)
    page = (await served.get("/mcp-servers/x/history?limit=2")).json
    assert [(item["action"], item["version"]) for item in page["items"]] == [("rollback", 3), ("update", 2)]
    assert page["items"][1]["before"] == first
    assert page["items"][1]["after"] == first | {"name": "Worse"}
    assert page["items"][1]["who"].startswith("first admin")
    rest = (await served.get(f"/mcp-servers/x/history?cursor={page['next_cursor']}")).json
    assert [(item["action"], item["version"]) for item in rest["items"]] == [("create", 1)]
    assert rest["next_cursor"] is None
    missing = await editor.ask("POST", "/mcp-servers/x/rollback", {"version": 9}, if_match=back.etag)
    assert missing.status in {404, 422}


@pytest.mark.promise("API-APPROVE")
async def test_a_program_needs_an_admin_and_an_approval(served: Served) -> None:
    editor = await served.as_role("editor")
    program = {"id": "git", "type": "stdio", "command": "uvx", "args": ["mcp-server-git"]}
    refused = await editor.post("/mcp-servers", program)
    assert (refused.status, refused.code) == (403, "forbidden")
    await served.must("/mcp-servers", program)
    assert (await served.get("/mcp-servers/git?detail=true")).json["approved"] is False
    assert (await editor.post("/mcp-servers/git/approve")).status == 403
    assert (await served.post("/mcp-servers/git/approve")).status == 428
    assert (await served.ask("POST", "/mcp-servers/git/approve", if_match='"7"')).status == 412
    approved = await served.ask("POST", "/mcp-servers/git/approve", if_match='"1"')
    assert (approved.status, approved.json["approved"]) == (200, True)
    put = await served.put("/mcp-servers/git", program | {"args": ["other"]}, approved.etag)
    assert put.status == 200
    assert (await served.get("/mcp-servers/git?detail=true")).json["approved"] is False


@pytest.mark.promise("API-USERS")
async def test_who_refers_to_an_entry_is_listed_in_pages_by_kind_and_id(served: Served) -> None:
    await served.must("/mcp-servers", DOCUMENTS["/mcp-servers"])
    for kind, name in (("/capabilities", "c"), ("/agents", "b"), ("/agents", "a")):
        await served.must(kind, {"name": name, "mcpServers": {"x": {"ref": "x"}}})
    page = (await served.get("/mcp-servers/x/users?limit=2")).json
    assert page["items"] == [{"kind": "agents", "id": "a"}, {"kind": "agents", "id": "b"}]
    rest = (await served.get(f"/mcp-servers/x/users?cursor={page['next_cursor']}")).json
    assert rest == {"items": [{"kind": "capabilities", "id": "c"}], "next_cursor": None}
    assert (await served.get("/agents/a/users")).json["items"] == []
    assert (await served.get("/mcp-servers/none/users")).status == 404
    bound = await served.as_role("viewer", "a")
    assert [(await bound.get(path)).status for path in ("/agents/a/users", "/mcp-servers/x/users")] == [200, 403]


@pytest.mark.promise("API-CHANGES")
async def test_the_changes_of_all_entries_come_newest_first_and_show_no_secret(served: Served) -> None:
    secret = DOCUMENTS["/mcp-servers"] | {"default_headers": {"X-API-Key": "CNRY-secret"}}
    made = await served.must("/mcp-servers", secret)
    await served.must("/agents", DOCUMENTS["/agents"])
    assert (await served.ask("DELETE", "/mcp-servers/x", if_match=made.etag)).status == 204
    reply = await served.get("/changes?limit=2")
    told = [(change["action"], change["kind"], change["id"]) for change in reply.json["items"]]
    assert told == [("delete", "mcp-servers", "x"), ("create", "agents", "x")]
    rest = await served.get(f"/changes?cursor={reply.json['next_cursor']}")
    assert [(change["action"], change["kind"]) for change in rest.json["items"]] == [("create", "mcp-servers")]
    assert rest.json["next_cursor"] is None
    assert b"CNRY" not in reply.content + rest.content
    viewer, bound = await served.as_role("viewer"), await served.as_role("viewer", "x")
    assert [(await one.get("/changes")).status for one in (viewer, bound, served.nobody())] == [200, 403, 401]


async def test_a_long_list_comes_in_pages_and_is_searched(served: Served) -> None:
    for number in range(7):
        await served.must(
            "/mcp-servers", {"id": f"s{number}", "name": f"No {number % 2}", "url": "http://localhost:1/mcp"}
        )
    seen: list[str] = []
    path = "/mcp-servers?limit=3"
    while path:
        page = (await served.get(path)).json
        seen += [item["id"] for item in page["items"]]
        path = f"/mcp-servers?limit=3&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    assert seen == [f"s{number}" for number in range(7)]
    found = (await served.get("/mcp-servers?q=no%201")).json["items"]
    assert [item["id"] for item in found] == ["s1", "s3", "s5"]


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async with service(tmp_path) as served:
        etag = (await served.must("/mcp-servers", CONTEXT_STORE)).etag
        token = served.token
    async with service(tmp_path) as served:
        assert served.token is None
        reply = await served.get("/mcp-servers/context-store", authorization=f"Bearer {token}")
        assert (reply.status, reply.etag, reply.json) == (200, etag, CONTEXT_STORE)


async def test_a_token_bound_to_an_agent_sees_that_agent_only(served: Served) -> None:
    for name in ("mine", "other"):
        await served.must("/agents", {"name": name})
        await served.must("/runs", {"agent_name": name})
    bound = await served.as_role("runner", "mine")
    assert (await bound.get("/agents/mine")).status == 200
    assert (await bound.get("/agents/other")).status == 403
    assert (await bound.get("/agents")).status == 403
    assert (await bound.get("/mcp-servers")).status == 403
    runs = (await bound.get("/runs")).json["items"]
    assert {run["agent_name"] for run in runs} == {"mine"}
    assert (await bound.get("/runs?agent=other")).status == 403
    other = (await served.get("/runs?agent=other")).json["items"][0]
    assert (await bound.get(f"/runs/{other['id']}")).status == 403
    assert (await bound.post(f"/runs/{other['id']}/stop")).status == 403
    assert (await bound.get(f"/sessions/{other['session_id']}")).status == 403
    assert (await bound.post("/runs", {"agent_name": "other"})).status == 403
    assert (await bound.post("/runs", {"agent_name": "mine"})).status == 201
    agent = await served.as_role("agent", "mine")
    assert (await agent.get("/agents/mine")).status == 403
    viewer = await served.as_role("viewer")
    assert (await viewer.post("/agents", {"name": "third"})).status == 403
