"""Registry entries become other programs' files, in their words, and nothing that was there is lost."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from outfitter.basics import SecretRef
from outfitter.catalog import ClientCredentials, HeaderSchema, MCPServer, ServerEntry, ToolFilter
from outfitter.errors import InvalidDocument, InvalidServer
from outfitter.formats import Client, ClientFile, write_client

LOCAL = ServerEntry(
    MCPServer.stdio("files", "npx", ("-y", "pkg", "${DIR}"), env={"LEVEL": "info", "API_KEY": "${API_KEY}"})
)
REMOTE = ServerEntry(
    MCPServer.http("weather", "https://x.example/mcp"),
    default_headers={"Authorization": "Bearer ${TOKEN}", "X-Team": "${TEAM:-blue}"},
    header_schema={"Authorization": HeaderSchema(sensitive=True)},
)
SSE = ServerEntry(MCPServer.sse("old", "https://x.example/sse"))


def write(client: Client, *entries: ServerEntry, existing: str | None = None) -> ClientFile:
    return write_client(client, entries, existing)


def written(client: Client, *entries: ServerEntry, existing: str | None = None) -> dict[str, Any]:
    text = write(client, *entries, existing=existing).text
    return tomllib.loads(text) if client is Client.CODEX else json.loads(text)


def test_claude_code() -> None:
    assert written(Client.CLAUDE_CODE, LOCAL, REMOTE) == {
        "mcpServers": {
            "files": {
                "type": "stdio",
                "command": "npx",
                "args": ["-y", "pkg", "${DIR}"],
                "env": {"LEVEL": "info", "API_KEY": "${API_KEY}"},
            },
            "weather": {
                "type": "http",
                "url": "https://x.example/mcp",
                "headers": {"Authorization": "Bearer ${TOKEN}", "X-Team": "${TEAM:-blue}"},
            },
        }
    }
    assert write(Client.CLAUDE_CODE, LOCAL, REMOTE).notes == ()


def test_vscode_asks_for_secrets_and_for_values_with_a_default() -> None:
    document = written(Client.VSCODE, LOCAL, REMOTE)
    assert document["servers"]["files"] == {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "pkg", "${env:DIR}"],
        "env": {"LEVEL": "info", "API_KEY": "${input:api_key}"},
    }
    assert document["servers"]["weather"]["headers"] == {
        "Authorization": "Bearer ${input:token}",
        "X-Team": "${input:team}",
    }
    assert document["inputs"] == [
        {"type": "promptString", "id": "api_key", "description": "API_KEY for files", "password": True},
        {"type": "promptString", "id": "token", "description": "TOKEN for weather", "password": True},
        {"type": "promptString", "id": "team", "description": "TEAM for weather", "default": "blue"},
    ]


def test_cursor() -> None:
    document = written(Client.CURSOR, LOCAL, REMOTE, SSE)
    assert document["mcpServers"]["files"]["env"] == {"LEVEL": "info", "API_KEY": "${env:API_KEY}"}
    assert document["mcpServers"]["weather"] == {
        "url": "https://x.example/mcp",
        "headers": {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "${env:TEAM}"},
    }
    assert document["mcpServers"]["old"] == {"type": "sse", "url": "https://x.example/sse"}
    assert write(Client.CURSOR, REMOTE).notes == ("weather: headers: Cursor knows no default for TEAM; set it",)


def test_the_workspace_and_the_home_are_the_editors_own() -> None:
    entry = ServerEntry(MCPServer.stdio("a", "x", ("${WORKSPACE_ROOT}/b", "${HOME}")))
    for client in (Client.VSCODE, Client.CURSOR):
        fields = next(iter(written(client, entry).values()))["a"]
        assert fields["args"] == ["${workspaceFolder}/b", "${userHome}"]


def test_copilot_lists_tools_and_counts_milliseconds() -> None:
    entry = ServerEntry(MCPServer.stdio("a", "x", enabled_tools=["read"], timeout=90))
    assert written(Client.COPILOT_CLI, entry, LOCAL)["mcpServers"] == {
        "a": {"type": "local", "command": "x", "args": [], "tools": ["read"], "timeout": 90000},
        "files": {
            "type": "local",
            "command": "npx",
            "args": ["-y", "pkg", "${DIR}"],
            "env": {"LEVEL": "info", "API_KEY": "${API_KEY}"},
            "tools": ["*"],
        },
    }


def test_excludes_are_resolved_when_the_tools_are_known() -> None:
    server = MCPServer.stdio("a", "x", tools=ToolFilter(None, ("rm_*",)))
    known = ServerEntry(server, known_tools=("read", "rm_all"))
    assert written(Client.COPILOT_CLI, known)["mcpServers"]["a"]["tools"] == ["read"]
    assert written(Client.CODEX, known)["mcp_servers"]["a"]["enabled_tools"] == ["read"]
    for client in (Client.COPILOT_CLI, Client.CODEX):
        (note,) = write(client, ServerEntry(server)).notes
        assert "the tool filter is not kept" in note


@pytest.mark.parametrize("client", [Client.CLAUDE_DESKTOP, Client.JETBRAINS])
def test_a_client_without_variables_says_what_to_put_in(client: Client) -> None:
    file = write(client, LOCAL)
    assert json.loads(file.text)["mcpServers"]["files"]["env"] == {"LEVEL": "info", "API_KEY": "${API_KEY}"}
    assert any("put the value of API_KEY there yourself" in note for note in file.notes)
    default = ServerEntry(MCPServer.stdio("a", "x", ("${PORT:-80}",)))
    assert written(client, default)["mcpServers"]["a"]["args"] == ["80"]


def test_claude_desktop_refuses_remote_servers_by_name() -> None:
    with pytest.raises(InvalidServer, match="not weather, old") as caught:
        write(Client.CLAUDE_DESKTOP, LOCAL, REMOTE, SSE)
    assert "another client" in str(caught.value)


def test_codex_refuses_sse() -> None:
    with pytest.raises(InvalidServer, match="Codex can only be given stdio, http servers: not old"):
        write(Client.CODEX, SSE)


def test_jetbrains_says_that_junie_reads_local_servers_only() -> None:
    assert any("Junie" in note for note in write(Client.JETBRAINS, REMOTE).notes)


def test_codex_forwards_variables_by_name() -> None:
    remote = ServerEntry(
        MCPServer.http("r", "https://x.example/mcp", required=True, timeout=60),
        default_headers={"Authorization": "Bearer ${TOKEN}", "X-Who": "${WHO}", "X-A": "a", "X-Mixed": "a ${WHO}"},
    )
    renamed = ServerEntry(MCPServer.stdio("l", "x", env={"A": "${A}", "B": "${OTHER}", "C": "c"}))
    file = write(Client.CODEX, remote, renamed)
    assert tomllib.loads(file.text)["mcp_servers"] == {
        "r": {
            "url": "https://x.example/mcp",
            "bearer_token_env_var": "TOKEN",
            "http_headers": {"X-A": "a"},
            "env_http_headers": {"X-Who": "WHO", "X-Mixed": "R_X_MIXED"},
            "required": True,
            "tool_timeout_sec": 60.0,
        },
        "l": {"command": "x", "args": [], "env_vars": ["A", "B"], "env": {"C": "c"}},
    }
    assert file.notes == (
        "r: header X-Mixed: Codex fills no parts; set R_X_MIXED to the whole value",
        "l: env B: Codex passes variables on and fills none; set B itself before it starts",
    )


def test_secret_references_become_variables() -> None:
    first = ServerEntry(
        MCPServer.stdio(
            "a",
            "x",
            env={
                "ONE": SecretRef("ONE_TOKEN", "env"),
                "TWO": SecretRef("git/two", "keyring"),
                "THREE": SecretRef("git.two"),
            },
        )
    )
    second = ServerEntry(
        MCPServer.stdio("b", "x", env={"OTHER": SecretRef("git/two", "keyring"), "OWN": "${GIT_TWO_2}"})
    )
    file = write(Client.CLAUDE_CODE, first, second)
    servers = json.loads(file.text)["mcpServers"]
    assert servers["a"]["env"] == {"ONE": "${ONE_TOKEN}", "TWO": "${GIT_TWO}", "THREE": "${GIT_TWO_3}"}
    assert servers["b"]["env"] == {"OTHER": "${GIT_TWO}", "OWN": "${GIT_TWO_2}"}
    assert "a: TWO: the secret 'keyring:git/two' cannot be written; set GIT_TWO to it" in file.notes
    assert not any("ONE" in note for note in file.notes)
    asked = written(Client.VSCODE, first)["inputs"]
    assert {item["id"]: item["password"] for item in asked} == {"one_token": True, "git_two": True, "git_two_2": True}


def test_values_that_are_not_texts_are_written_as_they_are_sent() -> None:
    entry = ServerEntry(
        MCPServer.http("a", "https://x.example/mcp"),
        default_headers={"X-Json": {"a": ["${WHO}", 1]}, "X-Yes": True, "X-Gone": None},
        header_schema={"X-Json": HeaderSchema(locked=True)},
    )
    file = write(Client.CLAUDE_CODE, entry)
    headers = json.loads(file.text)["mcpServers"]["a"]["headers"]
    assert headers == {"X-Json": '{"a":["${WHO}",1]}', "X-Yes": "true"}
    assert file.notes == ("a: Claude Code enforces no locks on headers and fills none by itself",)


def test_what_only_outfitter_knows_is_a_variable_elsewhere() -> None:
    entry = ServerEntry(MCPServer.stdio("a", "x", ("${runtime.session_id}", "${runtime.run_id}")))
    file = write(Client.CLAUDE_CODE, entry)
    assert json.loads(file.text)["mcpServers"]["a"]["args"] == ["${AGENT_SESSION_ID}", "${RUNTIME_RUN_ID}"]
    assert len(file.notes) == 2


def test_what_is_lost_is_told() -> None:
    entry = ServerEntry(
        MCPServer.stdio("a", "x", cwd="/srv", timeout=5, tool_prefix="p", disabled_tools=["rm"]),
        auth=ClientCredentials("https://x.example/token", "id", "${SECRET}"),
    )
    notes = "\n".join(write(Client.CLAUDE_DESKTOP, entry).notes)
    for words in ("working directory", "time limits", "tool prefix", "tool filter", "sign-in"):
        assert f"a: the {words} " in notes


def test_other_servers_keys_and_fields_stay() -> None:
    existing = json.dumps(
        {
            "theme": "dark",
            "mcpServers": {
                "mine": {"command": "y", "env": {"API_KEY": "literal"}},
                "files": {"url": "https://gone.example", "headers": {"A": "b"}, "oauth": {"clientId": "c"}},
            },
        }
    )
    document = written(Client.CLAUDE_CODE, LOCAL, existing=existing)
    assert document["theme"] == "dark"
    assert document["mcpServers"]["mine"] == {"command": "y", "env": {"API_KEY": "literal"}}
    assert document["mcpServers"]["files"] == {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "pkg", "${DIR}"],
        "env": {"LEVEL": "info", "API_KEY": "${API_KEY}"},
        "oauth": {"clientId": "c"},
    }


def test_inputs_that_are_there_keep_their_question() -> None:
    mine = {"type": "promptString", "id": "api_key", "description": "My own words", "password": True}
    other = {"type": "pickString", "id": "other", "options": ["a"]}
    existing = json.dumps({"inputs": [mine, other], "servers": {}})
    assert written(Client.VSCODE, LOCAL, existing=existing)["inputs"] == [mine, other]


def test_two_defaults_for_one_input_are_told() -> None:
    one = ServerEntry(MCPServer.stdio("a", "x", ("${PORT:-80}",)))
    two = ServerEntry(MCPServer.stdio("b", "x", ("${PORT:-90}",)))
    assert any("another default" in note for note in write(Client.VSCODE, one, two).notes)


def test_comments_in_json_cannot_be_kept_and_it_says_so() -> None:
    file = write(Client.VSCODE, SSE, existing='{ // mine\n "servers": {},\n}')
    assert file.notes == ("the comments and trailing commas of the file are not kept",)


@pytest.mark.parametrize("existing", [None, "", "  \n"])
@pytest.mark.parametrize("client", [Client.CLAUDE_CODE, Client.CODEX])
def test_an_empty_file_is_a_new_one(client: Client, existing: str | None) -> None:
    assert len(written(client, LOCAL, existing=existing)) == 1


@pytest.mark.parametrize(
    ("client", "existing"),
    [
        (Client.CLAUDE_CODE, "{"),
        (Client.CLAUDE_CODE, '{"mcpServers": []}'),
        (Client.CODEX, "a ="),
        (Client.CODEX, "mcp_servers = 1"),
    ],
)
def test_a_broken_file_is_not_overwritten(client: Client, existing: str) -> None:
    with pytest.raises(InvalidDocument):
        write(client, LOCAL, existing=existing)


TOML = """\
# my settings
model = "x" # the best

[mcp_servers.files]
command = "old" # was it
startup_timeout_ms = 5
scopes = ["a"] # keep

[mcp_servers.files.env]
GONE = "1"

[tools]
web = true # yes

[mcp_servers.mine]
command = "y" # mine
"""


def test_toml_keeps_its_comments_and_everything_else() -> None:
    text = write(Client.CODEX, LOCAL, REMOTE, existing=TOML).text
    for line in (
        "# my settings",
        'model = "x" # the best',
        'scopes = ["a"] # keep',
        "web = true # yes",
        'command = "y" # mine',
    ):
        assert line in text
    document = tomllib.loads(text)
    assert document["mcp_servers"]["files"] == {
        "command": "npx",
        "args": ["-y", "pkg", "${DIR}"],
        "env_vars": ["API_KEY"],
        "env": {"LEVEL": "info"},
        "scopes": ["a"],
    }
    assert document["mcp_servers"].keys() == {"files", "mine", "weather"}
    assert write(Client.CODEX, LOCAL, REMOTE, existing=text).text == text


@pytest.mark.parametrize(
    "existing",
    [
        "mcp_servers = { mine = { command = 'y' } }\n[x]\ny = 1\n",
        "[mcp_servers]\nmine = { command = 'y' }\n[x]\ny = 1\n",
        "[mcp_servers]\n[x]\ny = 1\n",
        "[mcp_servers.files]\ncommand = 'y'\nenv = { A = 'b' }\n[x]\ny = 1\n",
        "[mcp_servers.files.env]\nA = 'b'\n[x]\ny = 1\n[mcp_servers.files.tools.a]\nz = 1\n",
        "[x]\ny = 1",
    ],
)
def test_toml_in_any_style_is_edited_safely(existing: str) -> None:
    before = tomllib.loads(existing)
    document = written(Client.CODEX, LOCAL, REMOTE, existing=existing)
    assert document["x"] == before["x"]
    assert document["mcp_servers"].keys() == {*before.get("mcp_servers", {}), "files", "weather"}
    assert document["mcp_servers"]["files"]["command"] == "npx"
    assert document["mcp_servers"]["files"]["env"] == {"LEVEL": "info"}


def test_toml_that_cannot_be_edited_safely_is_refused() -> None:
    with pytest.raises(InvalidDocument, match="safely"):
        write(Client.CODEX, LOCAL, existing="mcp_servers.mine.command = 'y'\nx.y = 1\n")
