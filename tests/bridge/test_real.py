"""Document 3's examples with real servers from PyPI and npm: typed calls, filters, policies, and what they answer."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from outfitter.bridge import McpIntegrationSection, McpResources
from outfitter.calls import ToolInvoked
from outfitter.catalog import ToolFilter
from outfitter.policy import ReadBeforeWritePolicy
from outfitter.prompt import Prompt, PromptTemplate
from outfitter.session import Session
from outfitter.tools import ToolContext, aexecute, execute
from tests.bridge.kit import value_of
from tests.upstream.real import children_running, everything, npm_server, python_server, sqlite_server


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with one file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "readme.txt").write_text("hello from the file")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


@pytest.mark.promise("BRIDGE-REAL")
def test_real_servers_in_one_section_do_real_work_in_types(tmp_path: Path, repository: Path) -> None:
    session = Session()
    files = npm_server("filesystem", str(repository)).with_policies(ReadBeforeWritePolicy(exists=_exists))
    servers = [
        files,
        replace(python_server("git"), tools=ToolFilter(("git_*",), ("git_commit", "git_reset"))),
        python_server("time", "--local-timezone", "UTC"),
        sqlite_server(tmp_path / "a.db"),
    ]
    with McpIntegrationSection(servers=servers, session=session) as section:
        assert section.connected
        assert section.rejected == ()
        rendered = Prompt(PromptTemplate(ns="demo", key="mcp", sections=[section])).render()
        assert "- `filesystem_read_text_file` - " in rendered.text
        box = rendered.toolbox(session)
        assert not {"git_git_commit", "git_git_reset"} & box.tools.keys()

        file = str(repository / "readme.txt")
        refused = box.execute("filesystem_write_file", {"path": file, "content": "new"})
        assert refused.code == "denied"
        read = box.execute("filesystem_read_text_file", {"path": file})
        assert (read.success, value_of(read).content) == (True, "hello from the file")
        assert dataclasses.is_dataclass(read.value)
        assert box.execute("filesystem_write_file", {"path": file, "content": "new"}).success
        assert (repository / "readme.txt").read_text() == "new"
        outside = box.execute("filesystem_read_text_file", {"path": "/etc/hostname"})
        assert (outside.success, outside.code) == (False, "tool_error")

        status = box.execute("git_git_status", {"repo_path": str(repository)})
        assert "readme.txt" in status.message
        converted = box.execute(
            "time_convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        )
        assert "21:00" in converted.message
        assert box.execute("sqlite_create_table", {"query": "CREATE TABLE t (a INTEGER)"}).success
        assert box.execute("sqlite_write_query", {"query": "INSERT INTO t VALUES (42)"}).success
        assert "42" in box.execute("sqlite_read_query", {"query": "SELECT a FROM t"}).message
        unfit = box.execute("sqlite_read_query", {"query": 42})
        assert unfit.code == "invalid_arguments"
    assert children_running() == []
    events = session[ToolInvoked].all()
    assert len(events) == 10
    assert {event.mcp_server for event in events} == {"filesystem", "git", "time", "sqlite"}
    assert all(event.source == "mcp" for event in events)


def _exists(path: str) -> bool:
    return Path(path).exists()


@pytest.mark.promise("BRIDGE-REAL")
def test_the_server_that_can_do_everything_does_it_through_the_bridge() -> None:
    told: list[float] = []
    with McpIntegrationSection(servers=[npm_server("everything")], session=Session()) as section:
        by_name = {tool.tool: tool for tool in section.tools()}
        context = ToolContext(report=lambda progress, _total, _message: told.append(progress))
        long = execute(by_name["trigger-long-running-operation"], {"duration": 0.5, "steps": 2}, context=context)
        assert long.success
        assert told == [1, 2]
        weather = execute(by_name["get-structured-content"], {"location": "New York"})
        assert weather.success
        assert value_of(weather).temperature == json.loads(weather.message)["temperature"]
        picture = execute(by_name["get-tiny-image"], {})
        assert "[image image/png, " in picture.message
        resources = McpResources(section.pool)
        first = resources.list()[0]
        assert resources.read(first.uri).text
        assert resources.templates()
        prompt = section.prompt_section("everything", "simple-prompt")
        assert "simple prompt" in prompt.render_body(None)
    assert children_running() == []


@pytest.mark.promise("BRIDGE-REAL")
@pytest.mark.anyio
@pytest.mark.parametrize("transport", ["sse", "http"])
async def test_the_server_that_can_do_everything_does_it_over_http_too(transport: str) -> None:
    async with (
        everything(transport) as server,
        McpIntegrationSection(servers=[server], session=Session()) as section,
    ):
        by_name = {tool.tool: tool for tool in section.tools()}
        added = await aexecute(by_name["get-sum"], by_name["get-sum"].params_type(a=2, b=3))
        assert "5" in added.message
        wrong = await aexecute(by_name["get-sum"], {"a": "two", "b": 3})
        assert (wrong.success, "/a: expected number" in wrong.message) == (False, True)


@pytest.mark.promise("BRIDGE-REAL")
def test_the_memory_server_remembers_what_typed_calls_tell_it(tmp_path: Path) -> None:
    server = npm_server("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")})
    with McpIntegrationSection(servers=[server], session=Session()) as section:
        by_name = {tool.tool: tool for tool in section.tools()}
        entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        assert execute(by_name["create_entities"], {"entities": [entity]}).success
        found = execute(by_name["search_nodes"], {"query": "Ada"})
        assert value_of(found).entities[0].observations == ["writes programs"]
        assert execute(by_name["create_entities"], {"entities": [{"name": "Bob"}]}).code == "invalid_arguments"
