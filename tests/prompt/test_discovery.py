"""Asking servers for their tools at render time: with real processes, and with none where none may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from outfitter.catalog import ToolFilter
from outfitter.errors import Refused
from outfitter.prompt import (
    ExternalToolBundle,
    ExternalToolProvider,
    ExternalToolSpec,
    MarkdownSection,
    MCPServer,
    Prompt,
    PromptTemplate,
    Section,
    SectionVisibility,
)
from outfitter.session import Session
from outfitter.testing import DeadOnArrival, Script, stdio_server
from outfitter.upstream import Pool, SyncPool
from tests.prompt.counting import counting_server, starts


def section(*servers: MCPServer, key: str = "s") -> MarkdownSection[None]:
    return MarkdownSection(title="S", key=key, template="x", mcps=servers)


def prompt_of(*sections: Section[None]) -> Prompt[None]:
    return Prompt(PromptTemplate(ns="tests", key="discovery", sections=sections))


@pytest.mark.promise("DISCOVERY")
def test_the_tools_of_every_server_are_found_under_the_names_a_model_sees() -> None:
    first = replace(stdio_server(name="one"), tools=ToolFilter(("echo", "add")))
    second = replace(stdio_server(name="two"), tools=ToolFilter(("a*", "echo"), ("ask",)), tool_prefix="")
    rendered = prompt_of(section(first, second)).render(discover_mcp_tools=True)
    one, two = rendered.mcp_tools
    assert (one.name, two.name, one.error) == ("one", "two", "")
    assert [spec.name for spec in one.tool_specs] == ["one_echo", "one_add"]
    assert [(spec.name, spec.server, spec.tool) for spec in two.tool_specs] == [
        ("echo", "two", "echo"),
        ("add", "two", "add"),
    ]
    assert one.tool_specs[1].description == "Adds two numbers"
    assert one.tool_specs[1].input_schema["required"] == ["a", "b"]


def test_without_being_told_nobody_is_asked(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    assert prompt_of(section(counting_server(log))).render().mcp_tools == ()
    assert starts(log) == 0


@pytest.mark.promise("B17")
def test_a_disabled_or_summarised_section_starts_no_process(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    disabled = MarkdownSection(
        title="D", key="d", template="x", enabled=lambda: False, mcps=[counting_server(log, "disabled")]
    )
    summarised = MarkdownSection(
        title="A",
        key="a",
        template="x",
        summary="There is more.",
        visibility=SectionVisibility.SUMMARY,
        mcps=[counting_server(log, "summarised")],
        children=[section(counting_server(log, "below"))],
    )
    prompt, session = prompt_of(disabled, summarised), Session()
    rendered = prompt.render(session=session, discover_mcp_tools=True)
    assert (rendered.mcps, rendered.mcp_tools, starts(log)) == ((), (), 0)
    asked = rendered.toolbox(session).execute("open_sections", {"section_keys": ["a"], "reason": "now"})
    assert asked.success
    assert starts(log) == 0
    opened = prompt.render(session=session, discover_mcp_tools=True)
    assert [bundle.name for bundle in opened.mcp_tools] == ["summarised", "below"]
    assert all(bundle.tool_specs for bundle in opened.mcp_tools)
    assert starts(log) == 1, "one process serves both: their definitions are equal"


@pytest.mark.promise("B15")
def test_equal_servers_of_two_sections_are_started_once(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    prompt = prompt_of(section(counting_server(log), key="a"), section(counting_server(log), key="b"))
    assert len(prompt.render(discover_mcp_tools=True).mcp_tools) == 1
    assert starts(log) == 1


@pytest.mark.promise("DISCOVERY")
def test_a_server_that_fails_is_told_and_the_others_are_found(caplog: pytest.LogCaptureFixture) -> None:
    dead = stdio_server(Script(faults=(DeadOnArrival(),)), name="dead")
    unset = MCPServer.http("unset", "${OUTFITTER_TESTS_UNSET}/mcp")
    rendered = prompt_of(section(dead, unset, stdio_server(name="good"))).render(discover_mcp_tools=True)
    found = {bundle.name: bundle for bundle in rendered.mcp_tools}
    assert (found["dead"].tool_specs, found["unset"].tool_specs) == ((), ())
    assert found["dead"].error
    assert "OUTFITTER_TESTS_UNSET" in found["unset"].error
    assert found["good"].tool_specs
    warned = [record.getMessage() for record in caplog.records if "discovery_failed" in record.getMessage()]
    assert len(warned) == 2


def test_a_required_server_that_fails_stops_the_rendering() -> None:
    dead = replace(stdio_server(Script(faults=(DeadOnArrival(),)), name="dead"), required=True)
    with pytest.raises(Refused, match="required server"):
        prompt_of(section(dead)).render(discover_mcp_tools=True)


def test_a_pool_that_is_given_is_used_and_stays_open(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    prompt = prompt_of(section(counting_server(log)))
    with SyncPool() as pool:
        bundles = [prompt.render(discover_mcp_tools=True, pool=pool).mcp_tools for _ in range(2)]
    assert bundles[0] == bundles[1]
    assert starts(log) == 1


def test_variables_of_this_machine_are_filled_when_a_server_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "starts"
    server = counting_server(log)
    monkeypatch.setenv("OUTFITTER_TESTS_LOG", str(log))
    asked = server.with_args((server.args[0], "${OUTFITTER_TESTS_LOG}", *server.args[2:]))
    prompt_of(section(asked)).render(discover_mcp_tools=True)
    assert starts(log) == 1


@pytest.mark.anyio
async def test_servers_are_asked_in_a_running_loop_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "starts"
    dead = stdio_server(Script(faults=(DeadOnArrival(),)), name="dead")
    prompt = prompt_of(section(counting_server(log), dead))
    assert (await prompt.arender()).mcp_tools == ()
    own = await prompt.arender(discover_mcp_tools=True)
    async with Pool() as pool:
        given = await prompt.arender(discover_mcp_tools=True, pool=pool)
    assert [bundle.tool_specs for bundle in own.mcp_tools] == [bundle.tool_specs for bundle in given.mcp_tools]
    assert own.mcp_tools[0].tool_specs
    assert own.mcp_tools[1].error
    assert starts(log) == 2
    assert "discovery_failed" in caplog.text


@dataclass(frozen=True, slots=True)
class FileBundle(ExternalToolBundle):
    """As document 2 extends it: a required field after those of the bundle."""

    command: str
    args: tuple[str, ...] = ()


class FileProvider:
    def get_bundles(self) -> tuple[ExternalToolBundle, ...]:
        spec = ExternalToolSpec(name="read", description="Reads.", input_schema={"type": "object"})
        return (FileBundle(name="files", tool_specs=(spec,), command="npx"),)

    def to_provider_config(self, bundle: ExternalToolBundle) -> object:
        return {"name": bundle.name, "command": bundle.command if isinstance(bundle, FileBundle) else None}


@pytest.mark.promise("EXTERNAL-BUNDLES")
def test_a_provider_of_outside_tools_follows_document_2() -> None:
    provider: ExternalToolProvider = FileProvider()
    (bundle,) = provider.get_bundles()
    assert bundle.tool_specs[0].input_schema == {"type": "object"}
    assert provider.to_provider_config(bundle) == {"name": "files", "command": "npx"}
