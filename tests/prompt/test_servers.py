"""The servers of a prompt: order, duplicates, and arguments that are made from parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import PromptValidationError
from outfitter.prompt import MarkdownSection, MCPServer, Prompt, PromptTemplate, Section
from outfitter.resolution import ArmedServer, ArmedStdio
from outfitter.upstream import arm_servers


@dataclass(frozen=True)
class Args:
    a: str
    b: str = ""
    where: Path = Path("x")


def section(*servers: MCPServer, key: str = "s", children: tuple[Section[None], ...] = ()) -> MarkdownSection[None]:
    return MarkdownSection(title="S", key=key, template="x", mcps=servers, children=children)


def servers_of(*sections: Section[None], strict: bool = False) -> tuple[MCPServer, ...]:
    template = PromptTemplate(ns="t", key="t", sections=sections, strict_mcps=strict)
    return Prompt(template).render().mcps


def settled(server: MCPServer, params: Args) -> MCPServer:
    declared = MarkdownSection[Args](title="S", key="s", template="x", mcps=[server])
    return Prompt(PromptTemplate(ns="t", key="t", sections=[declared]), params).render().mcps[0]


def armed_args(server: MCPServer, environment: dict[str, str]) -> list[str]:
    armed = arm_servers([server], environment)[server.name]
    assert isinstance(armed, ArmedServer)
    assert isinstance(armed.transport, ArmedStdio)
    seen: list[str] = []
    for argument in armed.transport.args:
        argument.fault(seen.append)
    return seen


@pytest.mark.promise("SECTION-MCPS")
def test_servers_come_in_reading_order() -> None:
    one, two, three = (MCPServer.uvx(name, "x") for name in ("zebra", "ape", "mole"))
    found = servers_of(section(one, key="a", children=(section(two, key="b"),)), section(three, key="c"))
    assert [server.name for server in found] == ["zebra", "ape", "mole"]


@pytest.mark.promise("B15")
def test_equal_definitions_share_one_server_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    one, two = MCPServer.uvx("git", "x"), MCPServer.uvx("git", "x")
    assert servers_of(section(one, key="a"), section(two, key="b"), strict=True) == (one,)
    assert caplog.records == []


@pytest.mark.promise("B15")
def test_definitions_that_differ_are_refused_when_the_template_is_strict() -> None:
    first = MCPServer.uvx("git", "x")
    for other in (MCPServer.uvx("git", "y"), replace(first, required=True), MCPServer.http("git", "http://h/mcp")):
        with pytest.raises(PromptValidationError, match=r"server 'git' of section 'b' differs .* 'a'"):
            servers_of(section(first, key="a"), section(other, key="b"), strict=True)


def test_servers_are_compared_once_their_arguments_are_made() -> None:
    made = MCPServer.stdio("git", "uvx", args_factory=lambda _: ("mcp-server-git",))
    written = MCPServer.stdio("git", "uvx", ("mcp-server-git",))
    assert servers_of(section(made, key="a"), section(written, key="b"), strict=True) == (written,)


@pytest.mark.promise("SECTION-MCP-PARAMS")
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("$a", "one"),
        ("${a}", "one"),
        ("--x=$a/${b}!", "--x=one/two!"),
        ("${where}", "dir/x"),
        ("$c ${HOME} ${HOME:-x}", "$c ${HOME} ${HOME:-x}"),
        ("$$a", "$a"),
        ("$${a}", "$${a}"),
        ("$$c", "$$c"),
        ("a b", "a b"),
    ],
)
def test_fields_in_arguments_are_filled_and_everything_else_stays(written: str, expected: str) -> None:
    server = settled(MCPServer.stdio("s", "run", (written,)), Args("one", "two", Path("dir/x")))
    assert server.args == (expected,)


PIECES = st.lists(st.sampled_from(["$", "{", "}", "${", "$${", "HOME", "a", "$a"]), max_size=6).map("".join)


@pytest.mark.promise("SECTION-MCP-PARAMS")
@given(a=PIECES, b=PIECES)
def test_a_value_stays_literal_when_the_server_is_armed(a: str, b: str) -> None:
    server = settled(MCPServer.stdio("s", "run", ("${a}${b}", "${a}{HOME}", "-$a", "${HOME}")), Args(a, b))
    assert armed_args(server, {"HOME": "SECRET"}) == [f"{a}{b}", f"{a}{{HOME}}", f"-{a}", "SECRET"]


@given(a=PIECES)
def test_what_a_factory_makes_stays_literal_when_the_server_is_armed(a: str) -> None:
    server = settled(MCPServer.stdio("s", "run", args_factory=lambda params: (params.a, params.where)), Args(a))
    assert armed_args(server, {"HOME": "SECRET"}) == [a, "x"]


def test_a_section_without_parameters_leaves_arguments_alone() -> None:
    server = MCPServer.stdio("s", "run", ("$a", "${HOME}"))
    assert servers_of(section(server)) == (server,)


def test_a_factory_that_breaks_is_told_with_its_section_and_server() -> None:
    broken = MCPServer.stdio("s", "run", args_factory=lambda params: (params.missing,))
    with pytest.raises(PromptValidationError, match="section 's': args_factory of server 's' failed: AttributeError"):
        settled(broken, Args("x"))
    with pytest.raises(PromptValidationError, match="gave one text"):
        settled(MCPServer.stdio("s", "run", args_factory=lambda params: params.a), Args("x"))
