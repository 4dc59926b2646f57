"""Two agents, one gateway, two real servers: each agent sees what its headers allow, and nothing widens it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import anyio
import pytest
from mcp import Client, MCPError

from tests.gateway.kit import META, MODERN, Raw, raw
from tests.house.tree import ROOT

pytestmark = pytest.mark.anyio

CATALOG = ROOT / "examples" / "catalog-scoped"
STORE_KEY = "store-key-4f1c9a"
TRACKER_KEY = "tracker-key-77be02"
ALPHA, BETA = "alpha-assistant", "beta-assistant"
ERAS = ("modern", "handshake")
# What a client or a model may try: every name under which somebody could look for a scope.
WIDE_HEADERS = {
    "X-Context-Namespace": "project-beta",
    "X-Context-Scope-Filters": "{}",
    "X-Jira-Projects": "ALPHA,ALPHA-OPS,BETA,BETA-OPS",
    "X-Confluence-Spaces": "DEV,DOCS",
    "X-API-Key": "mine",
}
MODERN_META: dict[str, Any] = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}
WIDE_ARGUMENTS: dict[str, Any] = {
    "namespace": "project-beta",
    "scope_filters": {},
    "headers": WIDE_HEADERS,
    "projects": ["BETA"],
    "_meta": {"headers": WIDE_HEADERS, **WIDE_HEADERS},
}


@pytest.fixture
def anyio_backend() -> str:
    """The loop that Outfitter runs on."""
    return "asyncio"


@dataclass(frozen=True, slots=True)
class World:
    """Both servers and a gateway in front of them."""

    folder: Path
    store: str
    tracker: str
    gateway: str

    def endpoint(self, agent: str, server: str | None = None) -> str:
        """Where an agent's client points."""
        return f"{self.gateway}/mcp/{agent}" if server is None else f"{self.gateway}/mcp/{agent}/{server}"

    def outfitter(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Type a command beside the gateway."""
        return subprocess.run(
            [sys.executable, "-m", "outfitter", *args],
            cwd=self.folder, env=variables(self.folder, self.store, self.tracker),
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip


def variables(folder: Path, store: str = "", tracker: str = "") -> dict[str, str]:
    own = {
        "OUTFITTER_STATE": str(folder / "state"),
        "OUTFITTER_CATALOG": str(folder / "outfitter"),
        "CONTEXT_STORE_URL": store,
        "ATLASSIAN_URL": tracker,
        "CONTEXT_STORE_API_KEY": STORE_KEY,
        "ATLASSIAN_API_KEY": TRACKER_KEY,
    }
    return {**os.environ, **own}


@contextmanager
def process(folder: Path, name: str, *command: str, env: Mapping[str, str]) -> Generator[subprocess.Popen[str]]:
    """A process that ends with the block; what it says goes into files of the folder."""
    with (
        (folder / f"{name}.out").open("w") as out,
        (folder / f"{name}.err").open("w") as err,
        subprocess.Popen([sys.executable, *command], cwd=ROOT, env=env, stdout=out, stderr=err, text=True) as started,
    ):
        try:
            yield started
        finally:
            started.terminate()
            try:
                started.wait(timeout=20)
            except subprocess.TimeoutExpired:
                started.kill()


def _wait_for(started: subprocess.Popen[str], file: Path, word: str) -> str:
    """The text of the file, once the word is in it: there is no event for it."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends and started.poll() is None:
        text = file.read_text() if file.exists() else ""
        if word in text and text.endswith(("\n", "}")):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{file.name} never said {word!r}")


@contextmanager
def server(folder: Path, name: str, env: Mapping[str, str]) -> Generator[str]:
    """One of the example servers with its demo data; its URL."""
    data = str(folder / f"{name}.sqlite")
    command = ("-m", f"examples.servers.{name}", "--port", "0", "--data", data, "--demo")
    with process(folder, name, *command, env=env) as started:
        yield _wait_for(started, folder / f"{name}.out", "listens on").split()[-1]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    """Started once: every test cleans up what it writes."""
    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(CATALOG, folder / "outfitter")
    with ExitStack() as stack:
        store = stack.enter_context(server(folder, "context_store", variables(folder)))
        tracker = stack.enter_context(server(folder, "tracker", variables(folder)))
        kept = [part for agent in (ALPHA, BETA) for part in ("--keep-arguments", agent, "--keep-results", agent)]
        env = variables(folder, store, tracker)
        command = ("-m", "outfitter", "up", "--open", "--port", "0", *kept)
        started = stack.enter_context(process(folder, "gateway", *command, env=env))
        told = json.loads(_wait_for(started, folder / "state" / "gateway.json", '"port"'))
        yield World(folder, store, tracker, f"http://127.0.0.1:{told['port']}")


async def ask(http: Raw, era: str, tool: str, arguments: Mapping[str, Any], **meta: object) -> str:
    """Everything that is answered to one call, as text: a result, a tool's error or one of the protocol."""
    params: dict[str, Any] = {"name": tool, "arguments": dict(arguments)}
    if era == "modern":
        _, said = await http.modern("tools/call", {**params, "_meta": {**MODERN_META, **meta}})
    else:
        if "mcp-session-id" not in http.headers:
            await http.handshake()
        _, said = await http.legacy("tools/call", {**params, "_meta": dict(meta)})
    return said if isinstance(said, str) else json.dumps(said)


async def asked(
    url: str, era: str, tool: str, arguments: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> str:
    """The answer to one call of a client that comes for it alone."""
    async with raw(url) as http:
        http.headers.update(headers or {})
        return await ask(http, era, tool, arguments or {})


async def result(url: str, era: str, tool: str, **arguments: object) -> dict[str, Any]:
    """The structured result of a call that must succeed, by the official client."""
    mode = "auto" if era == "modern" else "legacy"
    async with Client(url, mode=mode, read_timeout_seconds=60) as client:
        answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return answer.structured_content


async def titles(world: World, agent: str, era: str = "modern") -> set[str]:
    found = await result(world.endpoint(agent), era, "docs_list_documents")
    return {one["title"] for one in found["documents"]}


async def keys(world: World, agent: str, era: str = "modern", query: str = "") -> set[str]:
    found = await result(world.endpoint(agent), era, "jira_search_issues", query=query)
    return {one["key"] for one in found["issues"]}


# ── what each agent sees ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("SCOPED-SERVERS")
@pytest.mark.parametrize("era", ERAS)
async def test_each_agent_sees_its_own_documents_and_issues_only(world: World, era: str) -> None:
    assert await titles(world, ALPHA, era) == {"Alpha retro", "Alpha review"}, "sprint 5 of its namespace"
    assert await titles(world, BETA, era) == {"Beta goals", "Beta retro"}
    assert await keys(world, ALPHA, era) == {"ALPHA-1", "ALPHA-2"}, "ALPHA-OPS is another project"
    assert await keys(world, BETA, era) == {"BETA-1", "BETA-OPS-1"}
    pages = await result(world.endpoint(BETA), era, "jira_list_pages")
    assert [page["title"] for page in pages["pages"]] == ["Words of the exporter"]
    assert "X-Confluence-Spaces header is missing" in await asked(world.endpoint(ALPHA), era, "jira_list_pages")


async def test_tools_tell_what_they_take_and_whether_they_change_something(world: World) -> None:
    async with Client(world.endpoint(ALPHA), mode="auto", read_timeout_seconds=60) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reading = {"docs_list_documents", "docs_search_documents", "docs_read_document"}
    reading |= {"jira_search_issues", "jira_get_issue", "jira_list_pages", "jira_read_page"}
    changing = {"docs_write_document", "docs_delete_document", "jira_create_issue", "jira_comment"}
    assert set(tools) == reading | changing
    for name, tool in tools.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name in reading), name
        assert tool.output_schema is not None, name
        assert not {"ctx", "namespace", "headers", "scope_filters"} & set(tool.input_schema["properties"]), name
    destroying = tools["docs_delete_document"].annotations
    assert destroying is not None
    assert destroying.destructive_hint is True


async def test_agents_at_the_same_time_do_not_get_each_other_s_answers(world: World) -> None:
    wrong: list[str] = []

    async def one(agent: str, other: str, era: str) -> None:
        async with raw(world.endpoint(agent)) as http:
            for _ in range(5):
                said = await ask(http, era, "docs_list_documents", {})
                said += await ask(http, era, "jira_search_issues", {})
                if other in said or "retro" not in said:
                    wrong.append(said)

    async with anyio.create_task_group() as group:
        for era in ERAS * 2:
            group.start_soon(one, ALPHA, "Beta", era)
            group.start_soon(one, BETA, "Alpha", era)
    assert wrong == []


# ── what does not widen it ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("SCOPED-SERVERS")
@pytest.mark.parametrize("era", ERAS)
async def test_no_argument_no_header_of_the_client_and_no_meta_widens_the_scope(world: World, era: str) -> None:
    async with raw(world.endpoint(ALPHA)) as http:
        http.headers.update(WIDE_HEADERS)
        documents = await ask(http, era, "docs_list_documents", WIDE_ARGUMENTS, **WIDE_HEADERS)
        found = await ask(http, era, "docs_search_documents", {"query": "exporter", **WIDE_ARGUMENTS}, **WIDE_HEADERS)
        issues = await ask(http, era, "jira_search_issues", WIDE_ARGUMENTS, **WIDE_HEADERS)
        pages = await ask(http, era, "jira_list_pages", WIDE_ARGUMENTS, **WIDE_HEADERS)
    assert "Alpha retro" in documents
    assert not {word for word in ("Beta", "goals") if word in documents}
    assert "exporter" not in found
    assert "ALPHA-1" in issues
    assert not {word for word in ("BETA", "ALPHA-OPS") if word in issues}
    assert "X-Confluence-Spaces header is missing" in pages


@pytest.mark.parametrize(
    "text",
    ["' OR 1=1 --", "%", "*", '" OR "a"="a', "x'); DROP TABLE documents; --", "title:Beta", "NEAR(Beta)"],
)
async def test_what_is_searched_for_is_data(world: World, text: str) -> None:
    for agent in (ALPHA, BETA):
        found = await result(world.endpoint(agent), "modern", "docs_search_documents", query=text)
        assert found == {"documents": []}
    tagged = await result(world.endpoint(ALPHA), "modern", "docs_list_documents", tags=[text])
    assert tagged == {"documents": []}
    assert await titles(world, BETA) == {"Beta goals", "Beta retro"}


async def test_search_finds_documents_by_all_their_words_and_tags(world: World) -> None:
    url = world.endpoint(BETA)
    found = await result(url, "modern", "docs_search_documents", query="EXPORTER early", tags=["notes"])
    assert [one["title"] for one in found["documents"]] == ["Beta retro"]
    assert await result(url, "modern", "docs_search_documents", query="exporter late") == {"documents": []}
    for query in ("  ", "\0", "goals a\0b"):
        assert "must be printable words" in await asked(url, "modern", "docs_search_documents", {"query": query})


@pytest.mark.promise("SCOPED-SERVERS")
async def test_a_document_of_another_agent_and_one_that_is_not_there_are_the_same(world: World) -> None:
    listed = await result(world.endpoint(BETA), "modern", "docs_list_documents")
    theirs, nobodys = listed["documents"][0]["id"], uuid4().hex
    new = {"title": "Mine", "text": "now"}
    for tool, more in (("docs_read_document", {}), ("docs_delete_document", {}), ("docs_write_document", new)):
        said: list[str] = []
        for ident in (theirs, nobodys):
            answer = await asked(world.endpoint(ALPHA), "handshake", tool, {"document_id": ident, **more})
            said.append(_without_ids(answer, ident))
        assert said[0] == said[1]
        assert "there is no document" in said[0]
    assert await titles(world, BETA) == {"Beta goals", "Beta retro"}


async def test_a_document_of_the_right_namespace_outside_the_filters_is_not_there_either(world: World) -> None:
    held = {"X-API-Key": STORE_KEY, "X-Context-Namespace": "project-alpha"}
    async with raw(world.store) as http:
        http.headers.update(held)
        said = json.loads(await ask(http, "modern", "list_documents", {}))
    (goals,) = [one for one in said["result"]["structuredContent"]["documents"] if one["title"] == "Alpha goals"]
    answer = await asked(world.endpoint(ALPHA), "modern", "docs_read_document", {"document_id": goals["id"]})
    assert "there is no document" in answer


@pytest.mark.parametrize("era", ERAS)
async def test_what_an_agent_writes_lies_in_its_scope_whatever_it_says(world: World, era: str) -> None:
    title = f"Alpha draft {era}"
    given = {"attributes": {"sprint": "sprint-6", "namespace": "project-beta", "size": 3}, **WIDE_ARGUMENTS}
    url = world.endpoint(ALPHA)
    written = await result(url, era, "docs_write_document", title=title, text="v1", **given)
    try:
        assert written["attributes"] == {"sprint": "sprint-5", "namespace": "project-beta", "size": 3}
        assert title in await titles(world, ALPHA)
        assert title not in await titles(world, BETA)
        changed = {"title": title, "text": "v2", "attributes": {"sprint": "sprint-4"}, "document_id": written["id"]}
        await result(url, era, "docs_write_document", **changed)
        read = await result(url, era, "docs_read_document", document_id=written["id"])
        assert (read["text"], read["attributes"]) == ("v2", {"sprint": "sprint-5"})
    finally:
        await result(url, era, "docs_delete_document", document_id=written["id"])
    assert title not in await titles(world, ALPHA)


# ── the tracker ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("SCOPED-SERVERS")
async def test_another_project_and_one_that_does_not_exist_give_the_same_answer(world: World) -> None:
    url = world.endpoint(ALPHA)
    for tool, argument, more in (
        ("jira_get_issue", "key", {}),
        ("jira_comment", "key", {"text": "hello"}),
        ("jira_create_issue", "project", {"summary": "s"}),
        ("jira_search_issues", "query", {}),
    ):
        said: set[str] = set()
        for project in ("BETA", "ALPHA-OPS", "NOWHERE"):
            value = {"key": f"{project}-1", "project": project, "query": f"project={project}"}[argument]
            answer = await asked(url, "handshake", tool, {argument: value, **more})
            assert "twice" not in answer, "the summary of BETA-1"
            said.add(_without_ids(answer, value))
        assert len(said) == 1, said
    assert await keys(world, BETA) == {"BETA-1", "BETA-OPS-1"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("importer", {"ALPHA-1", "ALPHA-2"}),
        ("importer project=alpha status=open", {"ALPHA-1"}),
        ('status="In Progress"', {"ALPHA-2"}),
        ("project=ALPHA project=BETA", {"ALPHA-1", "ALPHA-2"}),
        ("project=BETA", set[str]()),
        ("importer OR project in (BETA)", set[str]()),
        ("') OR 1 --", set[str]()),
    ],
)
async def test_a_query_only_narrows(world: World, query: str, expected: set[str]) -> None:
    assert await keys(world, ALPHA, query=query) == expected


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("1=1", "unknown field '1'"),
        ("key=BETA-1", "unknown field 'key'"),
        ('a "b', "cannot read"),
        ("x>=3", "cannot read"),
        ("\0", "cannot be printed"),
    ],
)
async def test_a_query_that_means_nothing_is_told(world: World, query: str, told: str) -> None:
    assert told in await asked(world.endpoint(ALPHA), "modern", "jira_search_issues", {"query": query})


@pytest.mark.parametrize("era", ERAS)
async def test_an_issue_is_opened_and_commented_in_a_project_of_the_agent(tmp_path: Path, era: str) -> None:
    with server(tmp_path, "tracker", variables(tmp_path)) as url:
        for project in ("ALPHA", "ALPHA-OPS"):
            held = {"X-API-Key": TRACKER_KEY, "X-Jira-Projects": f" {project.lower()} ,"}
            assert f"{project}-" in await asked(url, era, "create_issue", {"project": project, "summary": "New"}, held)
        held = {"X-API-Key": TRACKER_KEY, "X-Jira-Projects": "ALPHA"}
        assert "It's done" in await asked(url, era, "comment", {"key": "alpha-3", "text": "It's done"}, held)
        assert "It's done" in await asked(url, era, "get_issue", {"key": "ALPHA-3"}, held)
        assert "there is no issue" in await asked(url, era, "get_issue", {"key": "ALPHA-OPS-2"}, held)


# ── headers that are missing or wrong, at the servers themselves ─────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
async def test_without_a_namespace_or_a_project_nothing_is_served(world: World, era: str) -> None:
    for value in (None, "", " "):
        held = {"X-API-Key": STORE_KEY} | ({} if value is None else {"X-Context-Namespace": value})
        said = await asked(world.store, era, "list_documents", headers=held)
        assert "no X-Context-Namespace header" in said
        held = {"X-API-Key": TRACKER_KEY} | ({} if value is None else {"X-Jira-Projects": value})
        said = await asked(world.tracker, era, "search_issues", headers=held)
        assert "X-Jira-Projects header is missing or empty" in said


@pytest.mark.parametrize(
    "filters",
    ["", "x", "[]", "null", '{"sprint": null}', '{"sprint": ["sprint-5"]}', '{"sprint": 1.5}', '{"sprint": NaN}',
     '{"sprint": "sprint-4", "sprint": "sprint-5"}', '{"a": "\\u0000"}', '{"": "x"}', '{"a": 9007199254740993}',
     "[" * 4000],
)  # fmt: skip
async def test_filters_that_cannot_be_read_are_an_error_and_not_no_filter(world: World, filters: str) -> None:
    held = {"X-API-Key": STORE_KEY, "X-Context-Namespace": "project-alpha", "X-Context-Scope-Filters": filters}
    said = await asked(world.store, "modern", "list_documents", headers=held)
    assert "X-Context-Scope-Filters header is not a JSON object" in said
    assert "Alpha" not in said


@pytest.mark.parametrize(("filters", "count"), [({}, 3), ({"sprint": "sprint-5"}, 2), ({"sprint": "s", "x": 1}, 0)])
async def test_a_document_must_match_every_filter(world: World, filters: dict[str, object], count: int) -> None:
    held = {"X-API-Key": STORE_KEY, "X-Context-Namespace": "project-alpha"}
    held["X-Context-Scope-Filters"] = json.dumps(filters)
    said = json.loads(await asked(world.store, "modern", "list_documents", headers=held))
    assert len(said["result"]["structuredContent"]["documents"]) == count


async def test_true_and_1_are_different_attributes(tmp_path: Path) -> None:
    with server(tmp_path, "context_store", variables(tmp_path)) as url:
        for value in (True, 1, "1", "true"):
            held = {"X-API-Key": STORE_KEY, "X-Context-Namespace": "n", "X-Context-Scope-Filters": _filter(value)}
            await asked(url, "modern", "write_document", {"title": repr(value), "text": ""}, held)
            said = json.loads(await asked(url, "modern", "list_documents", headers=held))
            assert [one["title"] for one in said["result"]["structuredContent"]["documents"]] == [repr(value)]


def _filter(value: object) -> str:
    return json.dumps({"x": value})


@pytest.mark.parametrize("name", ["a b", "../x", "*", "project-alpha,project-beta", "x" * 101])
async def test_a_namespace_that_is_no_name_is_an_error(world: World, name: str) -> None:
    held = {"X-API-Key": STORE_KEY, "X-Context-Namespace": name}
    assert "is no name of a namespace" in await asked(world.store, "modern", "list_documents", headers=held)


@pytest.mark.parametrize("value", ["*", "ALPHA;BETA", "ALPHA BETA", "%"])
async def test_projects_that_are_no_keys_are_an_error(world: World, value: str) -> None:
    held = {"X-API-Key": TRACKER_KEY, "X-Jira-Projects": value}
    assert "is not a list of keys" in await asked(world.tracker, "modern", "search_issues", headers=held)


async def test_in_the_handshake_era_the_headers_of_each_request_count(world: World) -> None:
    async with raw(world.store) as http:
        http.headers.update({"X-API-Key": STORE_KEY, "X-Context-Namespace": "project-alpha"})
        assert "Alpha goals" in await ask(http, "handshake", "list_documents", {})
        http.headers["X-Context-Namespace"] = "project-beta"
        said = await ask(http, "handshake", "list_documents", {})
        assert "Beta goals" in said
        assert "Alpha" not in said
        del http.headers["X-Context-Namespace"]
        assert "no X-Context-Namespace header" in await ask(http, "handshake", "list_documents", {})


async def test_a_header_that_comes_twice_is_an_error(world: World) -> None:
    params: dict[str, Any] = {"name": "list_documents", "arguments": {}, "_meta": MODERN_META}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "list_documents"),
        ("X-API-Key", STORE_KEY),
        ("X-Context-Namespace", "project-alpha"),
    ]
    async with aiohttp.ClientSession() as http:
        for more, status, told in (
            (("X-Context-Namespace", "project-beta"), 200, "X-Context-Namespace more than once"),
            (("X-API-Key", "other"), 401, "missing or wrong"),
        ):
            async with http.post(world.store, json=body, headers=[*headers, more]) as answer:
                assert answer.status == status
                assert told in await answer.text()


# ── required headers and keys ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.promise("SCOPED-SERVERS")
@pytest.mark.parametrize("era", ERAS)
async def test_an_agent_without_the_required_header_gets_no_document(world: World, era: str) -> None:
    said = await asked(world.endpoint("guest"), era, "docs_list_documents", WIDE_ARGUMENTS, WIDE_HEADERS)
    assert "required header 'X-Context-Namespace'" in said, said
    assert not {word for word in ("Alpha", "Beta", "retro") if word in said}
    assert "BETA-1" not in await asked(world.endpoint("guest"), era, "jira_search_issues", headers=WIDE_HEADERS)


def test_a_run_without_the_required_header_is_refused_and_one_that_gives_it_is_not(world: World) -> None:
    run = world.folder / "run.json"
    run.write_text(json.dumps({"agent_name": "guest"}))
    refused = world.outfitter("explain", "guest", "--run", str(run))
    assert refused.returncode == 3
    assert "required header 'X-Context-Namespace'" in refused.stderr
    assert "mcp_headers['docs']" in refused.stderr
    run.write_text(json.dumps({"agent_name": "guest", "mcp_headers": {"docs": {"X-Context-Namespace": "n"}}}))
    assert world.outfitter("explain", "guest", "--run", str(run)).returncode == 0


@pytest.mark.parametrize("given", [{}, {"X-API-Key": "wrong"}, {"X-API-Key": ""}, {"X-API-Key": STORE_KEY + "x"}])
async def test_without_the_right_key_nothing_is_answered(world: World, given: dict[str, str]) -> None:
    for url in (world.store, world.tracker):
        async with aiohttp.ClientSession() as http:
            for method in ("GET", "POST", "DELETE"):
                headers = {**given, "X-Context-Namespace": "project-alpha"}
                async with http.request(method, url, headers=headers) as answer:
                    assert answer.status == 401
                    assert await answer.text() == "the header X-API-Key is missing or wrong"


@pytest.mark.promise("SCOPED-SERVERS")
async def test_the_keys_are_in_no_answer_record_log_or_page(world: World) -> None:
    said: list[str] = []
    for agent in (ALPHA, BETA, "guest"):
        async with raw(world.endpoint(agent)) as http:
            for era in ERAS:
                said.append(await ask(http, era, "docs_list_documents", {}))
                said.append(await ask(http, era, "docs_read_document", {"document_id": "none"}))
                said.append(await ask(http, era, "jira_search_issues", {"query": "1=1"}))
                said.append(await ask(http, era, "jira_get_issue", {"key": 7}))
        said.append(world.outfitter("explain", agent, "--json").stdout)
    async with aiohttp.ClientSession() as http, http.get(f"{world.gateway}/metrics") as page:
        said.append(await page.text())
    commands = (("tail", "--no-follow", "--json"), ("status", "--json"), ("doctor", "--live", "--all"))
    said += (world.outfitter(*command).stdout for command in commands)
    written = [path for path in world.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".err" for path in written)
    assert any(path.name.startswith("audit") for path in written)
    for key in (STORE_KEY, TRACKER_KEY):
        assert [text for text in said if key in text] == []
        assert [path.name for path in written if key.encode() in path.read_bytes()] == []


def test_a_wrong_key_is_told_without_the_key(world: World, tmp_path: Path) -> None:
    shutil.copytree(CATALOG, tmp_path / "outfitter")
    env = {**variables(tmp_path, world.store, world.tracker), "CONTEXT_STORE_API_KEY": "wrong-key-31"}
    done = subprocess.run(
        [sys.executable, "-m", "outfitter", "connect", ALPHA, "--json"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    states = {one["server"]: one["state"] for one in json.loads(done.stdout)}
    assert states == {"docs": "needs_auth", "jira": "ready"}
    assert "wrong-key-31" not in done.stdout + done.stderr


# ── the command line of the servers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["context_store", "tracker"])
def test_a_server_tells_how_it_is_started_and_does_not_start_on_a_mistake(tmp_path: Path, name: str) -> None:
    def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", f"examples.servers.{name}", *args]
        return subprocess.run(
            command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=60
        )

    told = run("--help")
    assert (told.returncode, told.stderr) == (0, "")
    assert {word for word in ("--port", "--data", "--demo", "X-API-Key") if word not in told.stdout} == set()
    data = ("--data", str(tmp_path / "x.sqlite"))
    empty = run(*data, CONTEXT_STORE_API_KEY=" ", ATLASSIAN_API_KEY=" ")
    assert empty.returncode == 2
    assert "is set and empty" in empty.stderr
    nowhere = run("--port", "0", "--data", str(tmp_path / "no" / "x.sqlite"))
    assert (nowhere.returncode, "as data" in nowhere.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = run(*data, "--port", str(taken.getsockname()[1]))
    assert (busy.returncode, "choose another with --port" in busy.stderr) == (2, True)


def test_the_catalog_of_the_example_is_a_good_one(world: World) -> None:
    said = world.outfitter("validate")
    assert said.returncode == 0, said.stderr
    assert "2 servers, 1 capabilities, 3 agents; 0 problems, 1 notes" in said.stdout


async def test_a_stranger_s_tool_is_unknown(world: World) -> None:
    async with Client(world.endpoint(ALPHA), mode="auto", read_timeout_seconds=60) as client:
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("docs_list_all_documents", {})


def _without_ids(answer: str, asked_for: str) -> str:
    """What was said, without what was asked and without what differs from call to call."""
    try:
        said = json.loads(answer)
    except ValueError:
        return answer.replace(asked_for, "…")
    return json.dumps(said.get("result", said.get("error"))).replace(asked_for, "…")
