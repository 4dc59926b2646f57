"""What a client's file can carry comes back as it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from outfitter.catalog import HeaderSchema, MCPServer, ServerEntry, TimeLimits, ToolFilter
from outfitter.errors import OutfitterError
from outfitter.formats import Client, guess_client, read_client, write_client

# Letters that spell no word such as "key", and characters that no syntax here gives a meaning.
WORDS = st.text("bcdfghlmnqrst/._-äß 1", min_size=1, max_size=12).filter(lambda text: text.strip() == text)
ASCII_WORDS = WORDS.filter(str.isascii)
ENV_NAMES = st.from_regex(r"[A-F][A-F_]{0,5}", fullmatch=True) | st.just("API_KEY")
VARIABLES = st.sampled_from(["VAR_G", "VAR_H", "GITHUB_TOKEN", "WORKSPACE_ROOT", "HOME"])
# One default for each name: VS Code asks for a value once.
WITH_DEFAULT = st.sampled_from(["${PORT:-80}", "${DIR:-/srv}", "${EMPTY:-}"])
HEADER_NAMES = st.sampled_from(["X-Team", "X-Who", "X-Trace"])
NAMES = st.from_regex(r"s[a-z0-9_-]{0,9}", fullmatch=True)
PLAIN = VARIABLES.map("${{{}}}".format)


def templates(words: SearchStrategy[str], placeholders: SearchStrategy[str]) -> SearchStrategy[str]:
    """Texts with and without placeholders in them."""
    mixed = st.tuples(words, placeholders, words).map("".join)
    return words | placeholders | mixed


def env_values(placeholders: SearchStrategy[str]) -> SearchStrategy[dict[str, str]]:
    """An environment; a secret's value is nothing but a reference."""
    pairs = st.dictionaries(ENV_NAMES, templates(WORDS, placeholders), max_size=3)
    return pairs.map(lambda env: {name: "${API_KEY}" if name == "API_KEY" else value for name, value in env.items()})


def limits_of(client: Client) -> SearchStrategy[TimeLimits]:
    calls = st.integers(1000, 600_000).map(lambda ms: ms / 1000)
    if client in {Client.CLAUDE_CODE, Client.COPILOT_CLI}:
        return st.builds(TimeLimits.of, calls)
    return st.builds(TimeLimits.of, calls, calls) if client is Client.CODEX else st.just(TimeLimits())


def tools_of(client: Client) -> SearchStrategy[ToolFilter]:
    names = st.lists(st.from_regex(r"[a-z]{1,5}", fullmatch=True), max_size=3, unique=True).map(tuple)
    if client is Client.COPILOT_CLI:
        return st.builds(ToolFilter, st.none() | names)
    return st.builds(ToolFilter, st.none() | names, names) if client is Client.CODEX else st.just(ToolFilter())


def options_of(client: Client) -> SearchStrategy[dict[str, Any]]:
    required = st.booleans() if client is Client.CODEX else st.just(value=False)
    return st.fixed_dictionaries({"limits": limits_of(client), "tools": tools_of(client), "required": required})


FILLED = {
    Client.CLAUDE_DESKTOP: PLAIN,
    Client.CLAUDE_CODE: PLAIN | WITH_DEFAULT,
    Client.VSCODE: PLAIN | WITH_DEFAULT,
    Client.CURSOR: PLAIN,
    Client.JETBRAINS: PLAIN,
    Client.COPILOT_CLI: PLAIN,
    Client.CODEX: PLAIN,
}
HAS_CWD = {Client.VSCODE, Client.CURSOR, Client.COPILOT_CLI, Client.CODEX}
ONLY: dict[Client, tuple[str, ...]] = {Client.CLAUDE_DESKTOP: ("stdio",), Client.CODEX: ("stdio", "http")}


def env_of(client: Client) -> SearchStrategy[dict[str, str]]:
    if client is Client.CODEX:  # it passes variables on under their own names
        own = st.dictionaries(ENV_NAMES, st.none() | WORDS, max_size=3)
        return own.map(lambda env: {name: _own(name, value) for name, value in env.items()})
    expands = {Client.CLAUDE_CODE, Client.VSCODE, Client.COPILOT_CLI}
    return env_values(PLAIN | WITH_DEFAULT if client in expands else PLAIN)


def _own(name: str, value: str | None) -> str:
    return value if value is not None and name != "API_KEY" else f"${{{name}}}"


def headers_of(client: Client) -> SearchStrategy[dict[str, str]]:
    placeholders = PLAIN | WITH_DEFAULT if client in {Client.CLAUDE_CODE, Client.VSCODE, Client.COPILOT_CLI} else PLAIN
    values = ASCII_WORDS | PLAIN if client is Client.CODEX else templates(ASCII_WORDS, placeholders)
    secret = VARIABLES.map("Bearer ${{{}}}".format)
    plain = st.dictionaries(HEADER_NAMES, values, max_size=3)
    return plain | st.tuples(plain, secret).map(lambda pair: {**pair[0], "Authorization": pair[1]})


@st.composite
def entries(draw: st.DrawFn, client: Client) -> list[ServerEntry]:
    """Entries that use only what the client can say."""
    texts = templates(WORDS, FILLED[client])
    found: list[ServerEntry] = []
    for name in draw(st.lists(NAMES, max_size=3, unique=True)):
        options = draw(options_of(client))
        kind = draw(st.sampled_from(ONLY.get(client, ("stdio", "http", "sse"))))
        if kind == "stdio":
            cwd = draw(st.none() | texts) if client in HAS_CWD else None
            args = draw(st.lists(texts | st.just(""), max_size=4))
            server = MCPServer.stdio(name, draw(ASCII_WORDS), args, cwd=cwd, env=draw(env_of(client)), **options)
            found.append(ServerEntry(server))
            continue
        make = MCPServer.sse if kind == "sse" else MCPServer.http
        url = f"https://{draw(st.sampled_from(['x.example', '${HOST}']))}/{draw(st.sampled_from(['mcp', 'a/b?c=d']))}"
        found.append(with_headers(make(name, url, **options), draw(headers_of(client))))
    return found


def with_headers(server: MCPServer, headers: Mapping[str, str]) -> ServerEntry:
    schema = {name: HeaderSchema(sensitive=True) for name in headers if name == "Authorization"}
    return ServerEntry(server, default_headers=headers, header_schema=schema)


@pytest.mark.parametrize("client", FILLED)
@settings(max_examples=60)
@given(data=st.data())
def test_reading_what_was_written_gives_the_same_entries(client: Client, data: st.DataObject) -> None:
    given_entries = data.draw(entries(client))
    file = write_client(client, given_entries)
    found = read_client(client, file.text, "file")
    assert sorted((item.entry for item in found), key=lambda entry: entry.id) == sorted(
        given_entries, key=lambda entry: entry.id
    )
    assert not any("literal secret" in note for item in found for note in item.notes)


@pytest.mark.parametrize("client", FILLED)
@settings(max_examples=30)
@given(data=st.data())
def test_writing_twice_changes_nothing(client: Client, data: st.DataObject) -> None:
    given_entries = data.draw(entries(client))
    once = write_client(client, given_entries)
    twice = write_client(client, given_entries, once.text)
    assert twice.text == once.text


@pytest.mark.parametrize("client", FILLED)
@settings(max_examples=30)
@given(data=st.data())
def test_writing_into_a_file_keeps_its_other_servers(client: Client, data: st.DataObject) -> None:
    first, second = data.draw(entries(client)), data.draw(entries(client))
    file = write_client(client, second, write_client(client, first).text)
    found = {item.entry.id: item.entry for item in read_client(client, file.text, "file")}
    assert found == {entry.id: entry for entry in [*first, *second]}


REGISTRY_TEXTS = templates(WORDS, PLAIN | WITH_DEFAULT)
PACKAGES = st.sampled_from(
    [
        ("npx", ("-y", "weather")),
        ("npx", ("-y", "@u/weather@1.2.3")),
        ("bunx", ("-y", "weather@1.0.0")),
        ("uvx", ("weather",)),
        ("uvx", ("weather[cli]==1.2.3",)),
        ("docker", ("run", "-i", "--rm", "-e", "API_KEY", "ghcr.io/u/w:1.0")),
        ("docker", ("run", "--rm", "--network", "host", "--env=A=b", "u/w")),
    ]
)


@st.composite
def registry_entries(draw: st.DrawFn) -> ServerEntry:
    """Entries that a server.json can describe."""
    about = draw(st.sampled_from(["The weather", "Tools"]))
    title = draw(st.sampled_from(["", "Weather"]))
    if draw(st.booleans()):
        command, args = draw(PACKAGES)
        rest = draw(st.lists(REGISTRY_TEXTS, max_size=3))
        # A container that is not told about a variable would not get it: reading adds the option.
        env = {"API_KEY": "${API_KEY}"} if command == "docker" and "-e" in args else {}
        env = draw(env_values(PLAIN | WITH_DEFAULT)) if command != "docker" else env
        return ServerEntry(MCPServer.stdio("weather", command, (*args, *rest), env=env, description=about), title)
    make = draw(st.sampled_from([MCPServer.http, MCPServer.sse]))
    headers = draw(headers_of(Client.CLAUDE_CODE))
    schema = {name: HeaderSchema(sensitive=True) for name in headers if name == "Authorization"}
    for name in draw(st.lists(HEADER_NAMES, max_size=2, unique=True)):
        schema[name] = HeaderSchema(description="about", required=name in headers)
    url = draw(st.sampled_from(["https://x.example/mcp", "https://${TENANT}.x.example/a"]))
    server = make("weather", url, description=about)
    return ServerEntry(server, title, schema, headers)


@given(registry_entries())
def test_a_server_json_comes_back_as_it_was(entry: ServerEntry) -> None:
    file = write_client(Client.SERVER_JSON, [entry])
    (found,) = read_client(Client.SERVER_JSON, file.text, "server.json")
    assert found.entry == entry
    assert guess_client("any.json", file.text) is Client.SERVER_JSON


FIELDS = ["command", "args", "env", "url", "type", "headers", "tools", "timeout", "cwd", "disabled", "inputs", "X-A"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("a${}:-/@=.", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("client", [client for client in Client if client is not Client.CODEX])
@given(value=JSON)
def test_any_file_is_read_or_refused_in_words(client: Client, value: object) -> None:
    root = {Client.VSCODE: "servers", Client.SERVER_JSON: "packages"}.get(client, "mcpServers")
    document = json.dumps({root: value, "name": "a/b", "remotes": value, "inputs": value})
    refusal = ""
    try:
        found = read_client(client, document, "file")
    except OutfitterError as error:
        refusal, found = str(error), ()
    assert refusal.startswith("file") or len({item.entry.id for item in found}) == len(found)
