"""A literal secret never comes in with a client's file and never goes out into one."""

from __future__ import annotations

import json

import pytest

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import HeaderSchema, MCPServer, ServerEntry
from outfitter.errors import OutfitterError
from outfitter.formats import Client, ImportedServer, Syntax, read_client, render_text, write_client, write_entry

CANARY = "ghp_Canary0123456789abcdefghij"
PLAIN_CANARY = "hunter-two-and-a-half"


def shown(found: tuple[ImportedServer, ...]) -> str:
    """Everything about an import that anybody could see."""
    entries = json.dumps([write_entry(item.entry) for item in found])
    return entries + repr(found) + "".join(item.command_line for item in found)


def read_one(server: object) -> ImportedServer:
    (found,) = read_client(Client.CLAUDE_CODE, json.dumps({"mcpServers": {"git-hub": server}}), ".mcp.json")
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Bearer abc", "Bearer ${GIT_HUB_AUTHORIZATION}"),
        ("Basic dXNlcjpwYXNz", "Basic ${GIT_HUB_AUTHORIZATION}"),
        ("abc", "${GIT_HUB_AUTHORIZATION}"),
        ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
        ("Bearer ${TOKEN:-abc}", "Bearer ${TOKEN}"),
        ("abc123-${TOKEN}", "${GIT_HUB_AUTHORIZATION}"),
        ("", ""),
    ],
)
def test_a_secret_header_becomes_a_reference(value: str, expected: str) -> None:
    found = read_one({"type": "http", "url": "https://x.example/mcp", "headers": {"Authorization": value}})
    assert found.entry.default_headers == {"Authorization": expected}
    assert found.entry.header_schema == {"Authorization": HeaderSchema(sensitive=True)}
    assert len(found.notes) == (expected != value)


def test_the_note_says_which_variable_and_where_the_value_stands() -> None:
    found = read_one({"command": "x", "env": {"API_TOKEN": "abc"}})
    assert found.entry.server.env == {"API_TOKEN": "${GIT_HUB_API_TOKEN}"}
    (note,) = found.notes
    assert note == (
        "env API_TOKEN: a literal secret is now ${GIT_HUB_API_TOKEN}; "
        "set GIT_HUB_API_TOKEN to the value that stands in .mcp.json at /mcpServers/git-hub"
    )


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--api-key", "abc"], ["--api-key", "${GIT_HUB_API_KEY}"]),
        (["--token=abc"], ["--token=${GIT_HUB_TOKEN}"]),
        (["--token", "--verbose", "x"], ["--token", "--verbose", "x"]),
        (["--no-auth", "dir"], ["--no-auth", "dir"]),
        (["-e", "GIT_HUB_TOKEN=abc"], ["-e", "GIT_HUB_TOKEN=${GIT_HUB_TOKEN}"]),
        (["--header", "Authorization: Bearer abc"], ["--header", "Authorization: Bearer ${GIT_HUB_AUTHORIZATION}"]),
        (["postgresql://u:p@db/x"], ["postgresql://${GIT_HUB_CREDENTIALS}@db/x"]),
        (["https://x.example/?apiKey=abc&b=1"], ["https://x.example/?apiKey=${GIT_HUB_API_KEY}&b=1"]),
        (["Server=x;Password=abc;"], ["Server=x;Password=${GIT_HUB_PASSWORD};"]),
        ([CANARY], ["${GIT_HUB_TOKEN}"]),
        ([f"a {CANARY} b"], ["a ${GIT_HUB_TOKEN} b"]),
        ([CANARY, CANARY], ["${GIT_HUB_TOKEN}", "${GIT_HUB_TOKEN_2}"]),
        (
            ["-c", "export TOKEN=$TOKEN; run --password abc"],
            ["-c", "export TOKEN=$TOKEN; run --password ${GIT_HUB_PASSWORD}"],
        ),
        (["${TOKEN:-abc}"], ["${TOKEN}"]),
        (
            ["-y", "@scope/server-filesystem@1.2.3", "/home/me/Projects"],
            ["-y", "@scope/server-filesystem@1.2.3", "/home/me/Projects"],
        ),
    ],
)
def test_secrets_in_arguments_become_references(args: list[str], expected: list[str]) -> None:
    assert read_one({"command": "x", "args": args}).entry.server.args == tuple(expected)


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdef0123456789abcdef",
        "sk_live_abcdef0123456789",
        "ghp_abcdef0123456789",
        "github_pat_abcdef0123456789",
        "glpat-abcdef0123456789",
        "xoxb-123456789-abcdef",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA0123456789abcdefghijk",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
        "Bearer abcdef0123456789",
        "kJ8s9dFg2LmQ7xZ1pRtY4wVb",
        "9f86d081884c7d659a2feaa0c55ad015",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_credential_is_one_whatever_its_name(secret: str) -> None:
    found = read_one({"command": "x", "env": {"PLAIN": secret}})
    assert secret.removeprefix("Bearer ") not in shown((found,))
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    "plain",
    [
        "@modelcontextprotocol/server-filesystem",
        "ghcr.io/a/b@sha256:" + "9f86d081884c7d65" * 4,
        "/Users/JohnDoe2/Projects/MyServer/build/index.js",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "sk-learn-mcp-server",
        "https://x.example/mcp?readonly=true&project=abc",
        "gpt-4o-2024-08-06",
        "basic authentication",
    ],
)
def test_what_is_no_credential_stays(plain: str) -> None:
    found = read_one({"command": "x", "args": [plain], "env": {"PLAIN": plain}})
    assert found.entry.server.args == (plain,)
    assert found.entry.server.env == {"PLAIN": plain}
    assert found.notes == ()


def test_two_secrets_never_share_a_variable() -> None:
    servers = {
        "a": {"command": "x", "env": {"B_TOKEN": "one"}},
        "a-b": {"command": "x", "env": {"TOKEN": "two"}},
        "c": {"command": "x", "env": {"OTHER": "${A_B_TOKEN}"}},
    }
    found = read_client(Client.CLAUDE_CODE, json.dumps({"mcpServers": servers}), "f")
    assert [item.entry.server.env for item in found] == [
        {"B_TOKEN": "${A_B_TOKEN_2}"},
        {"TOKEN": "${A_B_TOKEN_3}"},
        {"OTHER": "${A_B_TOKEN}"},
    ]


def test_a_text_full_of_secrets_is_one_secret() -> None:
    found = read_one({"command": "x", "args": [" ".join(f"TOKEN={n}x" for n in range(9))]})
    assert found.entry.server.args == ("${GIT_HUB}",)


LOCAL = {
    "command": CANARY,
    "args": [CANARY, "--token", PLAIN_CANARY, f"--api-key={PLAIN_CANARY}", f"X: Bearer {CANARY}", f"${{A:-{CANARY}}}"],
    "cwd": f"/srv/{CANARY}",
    "env": {"PLAIN": CANARY, "API_KEY": PLAIN_CANARY, "MIXED": f"a {CANARY} b", "D": f"${{API_KEY:-{PLAIN_CANARY}}}"},
    "envFile": CANARY,
    "newer": {"deep": [CANARY]},
    "oauth": {"clientSecret": PLAIN_CANARY},
}
REMOTE = {
    "type": "http",
    "url": f"https://x.example/mcp?token={PLAIN_CANARY}&x={CANARY}",
    "headers": {
        "Authorization": f"Bearer {PLAIN_CANARY}",
        "X-Plain": CANARY,
        "X-Api-Key": PLAIN_CANARY,
        "Accept": CANARY,
    },
    "newer": CANARY,
}
INPUTS = [{"type": "promptString", "id": "a", "description": CANARY, "default": PLAIN_CANARY, "password": True}]
CODEX = f"""
[mcp_servers.local]
command = "x"
args = ["{CANARY}", "--token", "{PLAIN_CANARY}"]
env = {{ API_KEY = "{PLAIN_CANARY}", PLAIN = "{CANARY}" }}
newer = "{CANARY}"
[mcp_servers.remote]
url = "https://x.example/mcp?key={PLAIN_CANARY}"
bearer_token = "{PLAIN_CANARY}"
http_headers = {{ X-Api-Key = "{PLAIN_CANARY}", X-Plain = "{CANARY}" }}
"""
SERVER_JSON = {
    "name": "io.github.user/weather",
    "title": CANARY,
    "description": f"use {CANARY}",
    "version": "1.0.0",
    "packages": [
        {
            "registryType": "npm",
            "identifier": "weather",
            "version": "1.0.0",
            "transport": {"type": "stdio"},
            "runtimeHint": CANARY,
            "runtimeArguments": [{"type": "positional", "value": CANARY}],
            "packageArguments": [
                {"type": "named", "name": "--token", "value": PLAIN_CANARY},
                {"type": "named", "name": "--plain", "value": PLAIN_CANARY, "isSecret": True},
                {
                    "type": "positional",
                    "valueHint": "secret",
                    "default": PLAIN_CANARY,
                    "isSecret": True,
                    "description": CANARY,
                },
            ],
            "environmentVariables": [
                {"name": "API_KEY", "value": PLAIN_CANARY},
                {"name": "PLAIN", "value": PLAIN_CANARY, "isSecret": True},
                {"name": "MORE", "default": PLAIN_CANARY, "isSecret": True, "isRequired": True, "description": CANARY},
                {"name": "TOKEN", "default": PLAIN_CANARY, "isRequired": True},
            ],
        }
    ],
    "remotes": [
        {
            "type": "sse",
            "url": f"https://x.example/mcp?key={PLAIN_CANARY}",
            "headers": [
                {"name": "Authorization", "value": f"Bearer {PLAIN_CANARY}"},
                {"name": "X-Plain", "value": PLAIN_CANARY, "isSecret": True, "description": CANARY},
                {
                    "name": "X-More",
                    "value": "{a}",
                    "variables": {"a": {"value": PLAIN_CANARY, "isSecret": True}},
                },
            ],
        }
    ],
}


def documents() -> list[tuple[Client, str]]:
    local = json.dumps({"mcpServers": {"Local One": LOCAL, "remote": REMOTE}, "other": CANARY})
    vscode = json.dumps(
        {"servers": {"Local One": {**LOCAL, "args": ["${input:a}"]}, "remote": REMOTE}, "inputs": INPUTS}
    )
    same = (Client.CLAUDE_DESKTOP, Client.CLAUDE_CODE, Client.CURSOR, Client.JETBRAINS, Client.COPILOT_CLI)
    others = [(Client.VSCODE, vscode), (Client.CODEX, CODEX), (Client.SERVER_JSON, json.dumps(SERVER_JSON))]
    return [*((client, local) for client in same), *others]


@pytest.mark.parametrize(("client", "text"), documents())
def test_no_secret_comes_in_anywhere(client: Client, text: str) -> None:
    found = read_client(client, text, "file")
    assert len(found) == 2
    assert CANARY not in shown(found)
    assert PLAIN_CANARY not in shown(found)
    for item in found:
        assert any("literal secret" in note for note in item.notes)


@pytest.mark.parametrize(
    "server",
    [
        {"command": f"x; {CANARY}"},
        {"command": CANARY, "url": CANARY},
        {"url": CANARY},
        {"url": f"https://{CANARY}@x.example/"},
        {"url": f"https://x.example/{CANARY}#{CANARY}"},
        {"url": "https://x.example", "type": CANARY},
        {"url": "https://x.example", "headers": {"X-A": f"{CANARY}\n"}},
        {"url": "https://x.example", "headers": CANARY},
        {"command": "x", "args": [CANARY, {"a": CANARY}]},
        {"command": "x", "env": {"A": [CANARY]}},
        {"command": "x", "disabled": CANARY},
        {"command": "x", "timeout": CANARY},
        CANARY,
    ],
)
def test_no_error_holds_a_secret(server: object) -> None:
    with pytest.raises(OutfitterError) as caught:
        read_one(server)
    assert CANARY not in str(caught.value)
    assert CANARY not in repr(caught.value)


def secret_entries() -> list[ServerEntry]:
    local = MCPServer.stdio(
        "local",
        "npx",
        ("-y", "pkg", "--token", PLAIN_CANARY, f"--api-key={PLAIN_CANARY}", CANARY),
        env={
            "API_KEY": PLAIN_CANARY,
            "PLAIN": CANARY,
            "HELD": Secret(PLAIN_CANARY),
            "KEPT": SecretRef("vault/kept", "file"),
        },
    )
    remote = ServerEntry(
        MCPServer.http("remote", f"https://x.example/mcp?key={PLAIN_CANARY}"),
        default_headers={"Authorization": f"Bearer {PLAIN_CANARY}", "X-Plain": CANARY, "X-Marked": PLAIN_CANARY},
        header_schema={"X-Marked": HeaderSchema(sensitive=True)},
    )
    return [ServerEntry(local), remote]


@pytest.mark.parametrize("client", Client)
def test_no_secret_goes_out(client: Client) -> None:
    for entry in secret_entries():
        if client is Client.CLAUDE_DESKTOP and entry.id == "remote":
            continue
        file = write_client(client, [entry])
        assert CANARY not in file.text + "".join(file.notes)
        assert PLAIN_CANARY not in file.text + "".join(file.notes)
        assert any("literal secret" in note for note in file.notes)


def test_a_malformed_placeholder_is_refused_without_quoting_it() -> None:
    entry = ServerEntry(MCPServer.stdio("a", "x", [f"${{{CANARY}:}}"]))
    with pytest.raises(OutfitterError) as caught:
        write_client(Client.CLAUDE_CODE, [entry])
    assert CANARY not in str(caught.value)


def test_an_imported_entry_can_be_written_to_the_catalog() -> None:
    found = read_one({"command": "x", "env": {"API_TOKEN": "abc"}})
    assert "${GIT_HUB_API_TOKEN}" in render_text(write_entry(found.entry), Syntax.JSON)
