"""Other programs' files become registry entries, and every change is told."""

from __future__ import annotations

import json

import pytest

from outfitter.catalog import (
    ALL_TOOLS,
    HeaderSchema,
    SseTransport,
    StdioTransport,
    StreamableHttpTransport,
    TimeLimits,
    ToolFilter,
)
from outfitter.errors import InvalidDocument, InvalidServer, OutfitterError
from outfitter.formats import Client, ImportedServer, guess_client, read_client

MCP_SERVERS = (Client.CLAUDE_DESKTOP, Client.CLAUDE_CODE, Client.CURSOR, Client.JETBRAINS, Client.COPILOT_CLI)
JSON_CLIENTS = (*MCP_SERVERS, Client.VSCODE)


def read(client: Client, servers: object, **more: object) -> tuple[ImportedServer, ...]:
    root = "servers" if client is Client.VSCODE else "mcpServers"
    return read_client(client, json.dumps({root: servers, **more}), "file.json")


def read_one(client: Client, server: object, **more: object) -> ImportedServer:
    (found,) = read(client, {"weather": server}, **more)
    return found


def read_codex(text: str) -> tuple[ImportedServer, ...]:
    return read_client(Client.CODEX, text, "config.toml")


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_a_local_server_is_its_command(client: Client) -> None:
    found = read_one(
        client, {"command": "npx", "args": ["-y", "pkg", "a b"], "env": {"LEVEL": "info", "N": 3, "B": True}}
    )
    assert found.entry.server.transport == StdioTransport("npx", ("-y", "pkg", "a b"))
    assert found.entry.server.env == {"LEVEL": "info", "N": "3", "B": "true"}
    assert found.command_line == "npx -y pkg 'a b'"
    assert found.entry.source == "file.json"
    assert found.notes == ()


@pytest.mark.parametrize("client", JSON_CLIENTS)
@pytest.mark.parametrize("kind", ["http", "streamable-http", None])
def test_a_remote_server_is_its_url(client: Client, kind: str | None) -> None:
    found = read_one(client, {"type": kind, "url": "https://x.example/mcp", "headers": {"X-Team": "blue"}})
    assert found.entry.server.transport == StreamableHttpTransport("https://x.example/mcp")
    assert found.entry.default_headers == {"X-Team": "blue"}
    assert found.entry.header_schema == {}
    assert found.command_line == "https://x.example/mcp"


def test_sse_is_kept_apart_from_http() -> None:
    found = read_one(Client.CLAUDE_CODE, {"type": "sse", "url": "https://x.example/sse"})
    assert found.entry.server.transport == SseTransport("https://x.example/sse")


def test_names_become_legal_and_stay_different() -> None:
    server = {"command": "x"}
    names = ["My Server", "GitHub", "github", "io.github.user/name", "wink", "wink-x", "com.acme/mcp", "…", "x" * 80]
    found = read(Client.CLAUDE_CODE, dict.fromkeys(names, server))
    assert [item.entry.id for item in found] == [
        "my-server",
        "github-2",
        "github",
        "name",
        "mcp-wink",
        "mcp-wink-x",
        "acme-mcp",
        "server",
        "x" * 64,
    ]
    assert found[0].notes == ("the name 'My Server' is not allowed here: it is now 'my-server'",)
    assert found[2].notes == ()


def test_shell_variables_and_defaults_are_outfitters_own() -> None:
    found = read_one(
        Client.CLAUDE_CODE,
        {"command": "${BIN:-npx}", "args": ["${DIR}/x", "$DIR", "${not a name}"], "env": {"PORT": "${PORT:-80}"}},
    )
    assert found.entry.server.transport == StdioTransport("${BIN:-npx}", ("${DIR}/x", "$DIR", "$${not a name}"))
    assert found.entry.server.env == {"PORT": "${PORT:-80}"}
    assert found.notes == ()


@pytest.mark.parametrize("client", [Client.VSCODE, Client.CURSOR])
def test_editor_variables_become_plain_ones(client: Client) -> None:
    args = ["${env:DIR}", "${workspaceFolder}/a${pathSeparator}b", "${userHome}", "${config:a.b}"]
    found = read_one(client, {"command": "x", "args": args, "cwd": "${workspaceFolder}"})
    expected = ("${DIR}", "${WORKSPACE_ROOT}/a/b", "${HOME}", "${CONFIG_A_B}")
    assert found.entry.server.transport == StdioTransport("x", expected, "${WORKSPACE_ROOT}")
    assert "${workspaceFolder} is now ${WORKSPACE_ROOT}; set it where Outfitter runs" in found.notes
    assert sum("workspaceFolder" in note for note in found.notes) == 1


def test_a_vscode_input_becomes_a_variable_and_its_description_is_quoted() -> None:
    inputs = [
        {"type": "promptString", "id": "github_token", "description": "GitHub PAT", "password": True, "default": "x"},
        {"type": "promptString", "id": "port", "description": "", "default": "80"},
        {"type": "promptString", "id": "Port"},
    ]
    headers = {"Authorization": "Bearer ${input:github_token}", "X-P": "${input:port}", "X-Q": "${input:Port}"}
    found = read_one(Client.VSCODE, {"url": "https://x.example/mcp", "headers": headers}, inputs=inputs)
    assert found.entry.default_headers == {
        "Authorization": "Bearer ${GITHUB_TOKEN}",
        "X-P": "${PORT:-80}",
        "X-Q": "${PORT_2}",
    }
    assert found.entry.header_schema == {"Authorization": HeaderSchema(sensitive=True)}
    assert "${input:github_token} is now ${GITHUB_TOKEN}; set it where Outfitter runs: 'GitHub PAT'" in found.notes


def test_copilot_fills_dollar_names_in_env_and_headers_only() -> None:
    found = read_one(Client.COPILOT_CLI, {"command": "x", "args": ["$A"], "env": {"B": "$B-${C:-d}"}})
    assert found.entry.server.args == ("$A",)
    assert found.entry.server.env == {"B": "${B}-${C:-d}"}


@pytest.mark.parametrize("client", [Client.CLAUDE_DESKTOP, Client.JETBRAINS, Client.CURSOR, Client.COPILOT_CLI])
def test_a_placeholder_that_the_program_fills_itself_stays_text(client: Client) -> None:
    args = ["mcp-remote", "--header", "X-Who:${WHO}", "${ELSE}"]
    found = read_one(client, {"command": "npx", "args": args, "env": {"WHO": "me"}})
    assert found.entry.server.args == ("mcp-remote", "--header", "X-Who:$${WHO}", "${ELSE}")
    assert any("does not fill ${ELSE}; Outfitter does" in note for note in found.notes)


def test_fields_without_a_place_are_named_and_do_no_harm() -> None:
    server = {
        "command": "x",
        "oauth": {"clientId": "c"},
        "headersHelper": "./x",
        "headers": {},
        "newer": [1],
        "tools": 7,
    }
    found = read_one(Client.CLAUDE_CODE, server)
    assert found.notes == ("left out, as it has no place here: 'oauth', 'headersHelper', 'headers', 'newer', 'tools'",)


def test_an_env_file_is_not_read() -> None:
    found = read_one(Client.VSCODE, {"command": "x", "envFile": "${workspaceFolder}/.env"})
    assert found.notes == ("envFile is not read: set its variables where Outfitter runs, or list them in env",)


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_a_server_that_is_switched_off_comes_with_a_note(off: dict[str, bool]) -> None:
    found = read_one(Client.CURSOR, {"command": "x", **off})
    assert found.notes == ("switched off in Cursor; here nothing uses it until an agent refers to it",)


def test_headers_that_nobody_may_set_are_left_out() -> None:
    headers = {"Accept": "text/event-stream", "CONTEXT7_API_KEY": "x", "X-Ok": "y", "X-Null": None}
    found = read_one(Client.CLAUDE_CODE, {"type": "http", "url": "https://x.example/mcp", "headers": headers})
    assert found.entry.default_headers == {"X-Ok": "y"}
    assert [note.split(" is left out")[0] for note in found.notes] == ["header 'Accept'", "header 'CONTEXT7_API_KEY'"]


@pytest.mark.parametrize(("tools", "expected"), [(["*"], ALL_TOOLS), (["a"], ToolFilter(("a",))), ([], ToolFilter(()))])
def test_copilot_tools_and_timeout(tools: list[str], expected: ToolFilter) -> None:
    found = read_one(
        Client.COPILOT_CLI, {"type": "local", "command": "x", "args": [], "tools": tools, "timeout": 90000}
    )
    assert found.entry.server.tools == expected
    assert found.entry.server.limits == TimeLimits.of(90)
    assert found.notes == ()


def test_codex_words_are_understood() -> None:
    local, remote = read_codex(
        """
        model = "x"
        [mcp_servers.local]
        command = "npx"
        args = ["-y", "pkg"]
        cwd = "/srv"
        env = { LEVEL = "info" }
        env_vars = ["FIRST", { name = "SECOND", source = "local" }]
        startup_timeout_sec = 5
        tool_timeout_sec = 60.5
        enabled_tools = ["a", "b"]
        disabled_tools = ["b"]
        required = true
        [mcp_servers.remote]
        url = "https://x.example/mcp"
        enabled = false
        startup_timeout_ms = 2500
        bearer_token_env_var = "TOKEN"
        http_headers = { X-Team = "blue" }
        env_http_headers = { X-Who = "WHO" }
        oauth_resource = "r"
        """
    )
    server = local.entry.server
    assert server.transport == StdioTransport("npx", ("-y", "pkg"), "/srv")
    assert server.env == {"LEVEL": "info", "FIRST": "${FIRST}", "SECOND": "${SECOND}"}
    assert server.limits == TimeLimits.of(60.5, 5)
    assert server.tools == ToolFilter(("a", "b"), ("b",))
    assert server.required
    assert local.notes == ()
    assert remote.entry.server.limits.connect == 2.5
    assert remote.entry.default_headers == {
        "X-Team": "blue",
        "X-Who": "${WHO}",
        "Authorization": "Bearer ${TOKEN}",
    }
    assert remote.notes == (
        "switched off in Codex; here nothing uses it until an agent refers to it",
        "left out, as it has no place here: 'oauth_resource'",
    )


def test_comments_and_trailing_commas_are_read() -> None:
    (found,) = read_client(Client.VSCODE, b'{ // hi\n "servers": {"a": {"command": "x",},},\n}', "mcp.json")
    assert found.entry.id == "a"


@pytest.mark.parametrize(
    ("server", "line", "path"),
    [
        ({"command": 3}, 4, "/mcpServers/a/command"),
        ({"command": "x", "args": "y"}, 5, "/mcpServers/a/args"),
        ({"command": "x", "args": ["y", 3]}, 7, "/mcpServers/a/args/1"),
        ({"command": "x", "env": {"A": []}}, 6, "/mcpServers/a/env/A"),
        ({"command": "x", "env": []}, 5, "/mcpServers/a/env"),
        ({"url": "https://x.example", "headers": {"A": {}}}, 6, "/mcpServers/a/headers/A"),
        ({"url": "ftp://x.example"}, 4, "/mcpServers/a/url"),
        ({"url": "https://user:pass@x.example"}, 4, "/mcpServers/a/url"),
        ({"url": "https://x.example", "type": "stdio"}, 5, "/mcpServers/a/type"),
        ({"url": "https://x.example", "type": "ws"}, 5, "/mcpServers/a/type"),
        ({"url": "https://x.example", "timeout": -1}, 5, "/mcpServers/a/timeout"),
        ({"url": "https://x.example", "disabled": "yes"}, 5, "/mcpServers/a/disabled"),
        ({"command": "x", "url": "https://x.example"}, 3, "/mcpServers/a"),
        ({}, 3, "/mcpServers/a"),
        ([], 3, "/mcpServers/a"),
    ],
)
def test_a_wrong_type_is_one_error_with_its_place(server: object, line: int, path: str) -> None:
    text = json.dumps({"mcpServers": {"a": server}}, indent=1)
    with pytest.raises(OutfitterError) as caught:
        read_client(Client.CLAUDE_CODE, text, ".mcp.json")
    assert str(caught.value).startswith(f".mcp.json:{line} at {path}: ")


@pytest.mark.parametrize("client", [client for client in Client if client is not Client.SERVER_JSON])
def test_a_file_without_servers_is_not_this_clients(client: Client) -> None:
    with pytest.raises(InvalidDocument, match="not a file of"):
        read_client(client, "other = 1" if client is Client.CODEX else '{"other": 1}', "file")


def test_codex_faults_have_their_place() -> None:
    with pytest.raises(InvalidDocument) as caught:
        read_codex('[mcp_servers.a]\nurl = "https://x.example"\nenv_http_headers = { A = 1 }\n')
    assert caught.value.line == 3
    assert caught.value.path == "/mcp_servers/a/env_http_headers/A"


def test_a_command_with_shell_syntax_is_refused() -> None:
    with pytest.raises(InvalidServer, match="shell syntax"):
        read_one(Client.CLAUDE_DESKTOP, {"command": "curl x | sh"})


def test_a_command_line_has_nothing_that_a_terminal_obeys() -> None:
    found = read_one(Client.CLAUDE_DESKTOP, {"command": "x", "args": ["\x1b[2J", "a\nb"]})
    assert found.command_line == r"x '\x1b[2J' 'a\nb'"


LOCAL = '{"mcpServers": {"a": {"command": "x"}}}'


@pytest.mark.parametrize(
    ("filename", "text", "client"),
    [
        ("claude_desktop_config.json", LOCAL, Client.CLAUDE_DESKTOP),
        (".mcp.json", LOCAL, Client.CLAUDE_CODE),
        ("proj/.cursor/mcp.json", LOCAL, Client.CURSOR),
        (r"C:\proj\.cursor\mcp.json", LOCAL, Client.CURSOR),
        (".junie/mcp/mcp.json", LOCAL, Client.JETBRAINS),
        ("~/.copilot/mcp-config.json", LOCAL, Client.COPILOT_CLI),
        (".vscode/mcp.json", '{"servers": {}, // x\n}', Client.VSCODE),
        ("any.json", '{"servers": {}, "inputs": []}', Client.VSCODE),
        ("any.json", LOCAL, Client.CLAUDE_CODE),
        ("any.json", '{"mcpServers": {"a": {"type": "local", "command": "x"}}}', Client.COPILOT_CLI),
        ("any.json", '{"mcpServers": {"a": {"url": "${env:URL}"}}}', Client.CURSOR),
        ("config.toml", "[mcp_servers.a]\ncommand = 'x'", Client.CODEX),
        ("server.json", '{"name": "a/b", "packages": []}', Client.SERVER_JSON),
        ("server.json", '{"name": "a/b", "remotes": []}', Client.SERVER_JSON),
        ("package.json", '{"packages": []}', None),
        (".squad/mcp-config.json", '{"servers": {}, "agentServers": {}}', None),
        (".squad/mcp-config.json", '{"servers": {}}', None),
        ("agents/a.json", '{"name": "a", "mcpServers": {"x": {"ref": "x"}}}', None),
        ("config.toml", "model = 'x'", None),
        (".mcp.json", "{", None),
        (".mcp.json", '{"mcpServers": []}', None),
    ],
)
def test_the_client_is_guessed_by_content_and_name(filename: str, text: str, client: Client | None) -> None:
    assert guess_client(filename, text) is client
    assert guess_client(filename, text.encode()) is client
