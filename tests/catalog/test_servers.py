"""What a connectable definition is: names, transports, limits, filters; what could never work is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from outfitter import MCPServer, MCPServerConfig, McpServerConfig
from outfitter.basics import check_agent_name, check_server_name
from outfitter.catalog import (
    Agent,
    Capability,
    HeaderSchema,
    HeaderType,
    ServerEntry,
    ServerRef,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    TimeLimits,
    ToolFilter,
)
from outfitter.errors import InvalidHeader, InvalidName, InvalidServer

NAMED: list[Callable[[str], object]] = [
    check_server_name,
    lambda name: MCPServer.http(name, "http://h/mcp"),
    lambda name: Agent("a", servers={name: ServerRef("x")}),
    lambda name: Capability("c", servers={name: ServerRef("x")}),
]
BAD_NAMES = ["", "A", "a b", "-a", "_a", "a" * 65, "../x", "a/b", "a\0", "\u0430bc", "wink", "wink-x", "a\n", "é"]


@pytest.mark.promise("NAMES-OF-SERVERS")
@pytest.mark.parametrize("name", BAD_NAMES)
@pytest.mark.parametrize("make", NAMED)
def test_a_server_or_alias_of_a_bad_or_reserved_name_is_refused(make: Callable[[str], object], name: str) -> None:
    with pytest.raises(InvalidName) as error:
        make(name)
    assert len(str(error.value)) < 400
    assert "\n" not in str(error.value)


@pytest.mark.promise("NAMES-OF-SERVERS")
@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "a" * 64, "winkel", "wink_x"])
def test_a_good_server_name_is_taken(name: str) -> None:
    assert MCPServer.http(name, "http://h/mcp").name == name


@pytest.mark.promise("NAMES-OF-SERVERS")
@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 65, "../x", "a.json", "ünï"])
def test_an_agent_of_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidName):
        check_agent_name(name)


@pytest.mark.promise("SERVER-DEFINITIONS")
def test_the_documents_names_and_factories_make_one_type() -> None:
    assert MCPServerConfig is McpServerConfig is MCPServer
    assert MCPServer.stdio("g", "git-mcp", ("-v",)).transport == StdioTransport("git-mcp", ("-v",))
    assert MCPServer.sse("s", "http://h/sse").transport == SseTransport("http://h/sse")
    assert MCPServer.http("h", "http://h/mcp").transport == StreamableHttpTransport("http://h/mcp")
    assert MCPServer.npm("fs", "@m/fs", ("docs",)).transport == StdioTransport("npx", ("-y", "@m/fs", "docs"))
    assert MCPServer.uvx("git", "mcp-git", ("-r", ".")).transport == StdioTransport("uvx", ("mcp-git", "-r", "."))
    spelled = MCPServer("x", "stdio", command="p", args=["a"], enabled_tools=["t"], disabled_tools=["u"], timeout=5)
    assert (spelled.command, spelled.args, spelled.timeout) == ("p", ("a",), 5.0)
    assert spelled.tools == ToolFilter(("t",), ("u",))


@pytest.mark.promise("SERVER-DEFINITIONS")
@pytest.mark.parametrize(
    "make",
    [
        lambda: MCPServer("x"),
        lambda: MCPServer("x", "stdio"),
        lambda: MCPServer("x", command="a", url="http://h"),
        lambda: MCPServer("x", "sse", command="a"),
        lambda: MCPServer("x", "stdio", command="a", headers={"X-A": "1"}),
        lambda: MCPServer("x", StdioTransport("a"), url="http://h"),
        lambda: MCPServer("x", "stdio", command="a", tools=ToolFilter(), enabled_tools=["a"]),
        lambda: MCPServer.stdio("x", " a"),
        lambda: MCPServer.stdio("x", "a; b"),
        lambda: MCPServer.stdio("x", "$(a)"),
        lambda: MCPServer.stdio("x", "a", ("\0",)),
        lambda: MCPServer.stdio("x", "a", env={"A B": "1"}),
        lambda: MCPServer.stdio("x", "a", timeout=0),
        lambda: MCPServer.stdio("x", "a", timeout=float("nan")),
        lambda: TimeLimits(call=10, total=5),
        lambda: ServerEntry(MCPServer.stdio("x", "a"), default_headers={"X-A": "1"}),
        lambda: ServerEntry(MCPServer.http("x", "http://h", headers={"X-A": "1"}), default_headers={"X-B": "1"}),
    ],
)
def test_a_definition_that_could_never_be_connected_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidServer):
        make()


@pytest.mark.promise("SERVER-DEFINITIONS")
@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "gopher://h", "javascript:alert(1)", "data:x", "ftp://h", "http://", "http:///x", "//h",
        "http://user:CNRY@h/", "http://CNRY@h/", "http://h/#CNRY", "http://h/ x", "http://h\\x", "http://h/\n", "mcp",
    ],
)  # fmt: skip
def test_a_url_that_is_no_endpoint_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidServer) as error:
        MCPServer.http("x", url)
    assert "CNRY" not in str(error.value)


@pytest.mark.promise("SERVER-DEFINITIONS")
@pytest.mark.parametrize(
    "url", ["http://localhost:1/mcp", "HTTPS://h", "${URL}", "https://${HOST}/x?y=1", "http://[::1]/"]
)
def test_a_url_that_may_be_an_endpoint_is_taken(url: str) -> None:
    assert MCPServer.http("x", url).url == url


@pytest.mark.promise("TIME-IN-SECONDS")
def test_time_is_in_seconds_and_thirty_by_default() -> None:
    limits = MCPServer.http("x", "http://h").limits
    assert (limits.call, limits.connect, limits.total) == (30.0, 30.0, 300.0)
    assert MCPServer.http("x", "http://h", timeout=600).limits.total == 600.0


@pytest.mark.promise("ONE-FILTER")
@pytest.mark.parametrize(
    ("tools", "allowed"),
    [
        (ToolFilter(), ["a", "get_x", "get_y"]),
        (ToolFilter(("*",)), ["a", "get_x", "get_y"]),
        (ToolFilter(()), []),
        (ToolFilter(("get_*",), ("get_y",)), ["get_x"]),
        (ToolFilter(None, ("get_*",)), ["a"]),
        (ToolFilter(("A",)), []),
        (ToolFilter(("*",), ("*",)), []),
    ],
)
def test_a_filter_lets_through_what_it_includes_and_does_not_exclude(tools: ToolFilter, allowed: list[str]) -> None:
    assert list(tools.select(["a", "get_x", "get_y"])) == allowed


@pytest.mark.promise("SERVER-DEFINITIONS")
@pytest.mark.parametrize(
    "make",
    [
        lambda: HeaderSchema(merges=True),
        lambda: HeaderSchema(HeaderType.NUMBER, narrows=True),
        lambda: HeaderSchema(HeaderType.JSON, narrows=True, merges=True),
    ],
)
def test_flags_of_a_header_that_contradict_each_other_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidHeader):
        make()
