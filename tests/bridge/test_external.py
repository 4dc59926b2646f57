"""Document 2's bundles and proxy: configurations for SDKs that connect by themselves, and calls that are governed."""

from __future__ import annotations

import pytest

from outfitter.basics import Secret, SecretRef
from outfitter.bridge import McpConnectionPool, MCPProxy, MCPToolBundle, McpToolProvider, ProxiedMCPServer
from outfitter.calls import ToolInvoked
from outfitter.catalog import MCPServer, StdioTransport
from outfitter.errors import InvalidServer, McpConnectionError, NotFound
from outfitter.policy import SequentialDependencyPolicy
from outfitter.prompt import ExternalToolBundle, ExternalToolProvider
from outfitter.session import Session
from tests.bridge.kit import scripted
from tests.upstream.real import children_running

SERVER = "outfitter.testing.stdio_server"


@pytest.mark.promise("EXTERNAL-BUNDLES")
def test_a_bundle_of_an_npm_package_is_what_document_2_says() -> None:
    bundle = MCPToolBundle.from_npm("git", "@anthropic/mcp-server-git", ("--repository", "."))
    assert isinstance(bundle, ExternalToolBundle)
    assert (bundle.name, bundle.tool_specs, bundle.command) == ("git", (), "npx")
    assert bundle.args == ("-y", "@anthropic/mcp-server-git", "--repository", ".")
    assert bundle.to_server().transport == StdioTransport("npx", bundle.args)


@pytest.mark.promise("EXTERNAL-BUNDLES")
def test_a_provider_configures_each_transport_as_sdks_take_it() -> None:
    servers = [
        MCPServer.stdio("local", "prog", ("-x",), env={"A": "1", "B": SecretRef("TOKEN", "env"), "C": "${C}"}),
        MCPServer.http("web", "http://127.0.0.1:1/mcp", headers={"X-A": "1"}),
        MCPServer.sse("old", "http://127.0.0.1:1/sse"),
    ]
    provider: ExternalToolProvider = McpToolProvider(servers)
    bundles = provider.get_bundles()
    assert [provider.to_provider_config(bundle) for bundle in bundles] == [
        {"type": "stdio", "command": "prog", "args": ["-x"], "env": {"A": "1", "B": "${TOKEN}", "C": "${C}"}},
        {"type": "http", "url": "http://127.0.0.1:1/mcp", "headers": {"X-A": "1"}},
        {"type": "sse", "url": "http://127.0.0.1:1/sse", "headers": {}},
    ]
    with pytest.raises(NotFound):
        provider.to_provider_config(ExternalToolBundle("nobody", ()))


@pytest.mark.promise("EXTERNAL-BUNDLES")
def test_a_secret_is_not_written_into_a_configuration() -> None:
    provider = McpToolProvider([MCPServer.stdio("local", "prog", env={"A": Secret("CNRY-7f3a91c2")})])
    with pytest.raises(InvalidServer) as raised:
        provider.get_bundles()
    assert "CNRY" not in str(raised.value)


@pytest.mark.promise("EXTERNAL-BUNDLES")
def test_a_connected_server_tells_its_tools() -> None:
    server = scripted()
    with McpConnectionPool() as pool:
        pool.connect([server])
        (bundle,) = McpToolProvider([server], pool).get_bundles()
        adding = next(spec for spec in bundle.tool_specs if spec.tool == "add")
        assert (adding.name, adding.server, adding.description) == ("one_add", "one", "Adds two numbers")
        assert adding.input_schema["required"] == ["a", "b"]


def proxied(name: str = "one", *, dispatch_events: bool = True) -> ProxiedMCPServer:
    transport = scripted().transport
    assert isinstance(transport, StdioTransport)
    policies = (SequentialDependencyPolicy({"add": {"echo"}}),)
    return ProxiedMCPServer(name, transport.command, transport.args, None, policies, dispatch_events)


@pytest.mark.anyio
@pytest.mark.promise("MCP-PROXY")
async def test_a_proxy_asks_policies_calls_and_tells() -> None:
    session = Session()
    async with MCPProxy((proxied(),), session) as proxy:
        assert children_running(SERVER) == []
        denied = await proxy.call_tool("one", "add", {"a": 1, "b": 2})
        assert (denied["code"], "echo" in denied["error"]) == ("denied", True)
        assert (await proxy.call_tool("one", "echo", {"text": "hi"}))["structuredContent"] == {"text": "hi"}
        assert (await proxy.call_tool("one", "add", {"a": 1, "b": 2}))["structuredContent"] == {"sum": 3}
        assert (await proxy.call_tool("one", "nothing", {}))["code"] == "unknown_tool"
        with pytest.raises(NotFound, match="did you mean 'one'"):
            await proxy.call_tool("onne", "add", {})
    assert children_running(SERVER) == []
    names = [event.name for event in session[ToolInvoked].all()]
    assert names == ["one_add", "one_echo", "one_add", "one_nothing"]


@pytest.mark.anyio
@pytest.mark.promise("MCP-PROXY")
async def test_a_proxied_server_can_be_kept_out_of_the_record_and_policies_still_hold() -> None:
    session = Session()
    async with MCPProxy((proxied(dispatch_events=False), ProxiedMCPServer("gone", "/nowhere/prog")), session) as proxy:
        assert (await proxy.call_tool("one", "add", {"a": 1, "b": 2}))["code"] == "denied"
        await proxy.call_tool("one", "echo")
        assert (await proxy.execute("one", "add", {"a": 1, "b": 2})).success
        with pytest.raises(McpConnectionError, match="gone"):
            await proxy.call_tool("gone", "add", {})
    assert session[ToolInvoked].all() == ()
