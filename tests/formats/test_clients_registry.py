"""The official registry's server.json, both ways."""

from __future__ import annotations

import json
from typing import Any

import pytest

from outfitter.catalog import HeaderSchema, MCPServer, ServerEntry, SseTransport, StreamableHttpTransport
from outfitter.errors import InvalidServer, OutfitterError
from outfitter.formats import Client, ImportedServer, read_client, write_client

STDIO = {"transport": {"type": "stdio"}}


def read(**fields: object) -> tuple[ImportedServer, ...]:
    document = {"name": "io.github.user/weather", "description": "Weather", "version": "1.0.0", **fields}
    return read_client(Client.SERVER_JSON, json.dumps(document), "server.json")


def read_package(**fields: object) -> ImportedServer:
    (found,) = read(packages=[{**STDIO, **fields}])
    return found


def write(entry: ServerEntry, existing: dict[str, Any] | None = None) -> dict[str, Any]:
    text = None if existing is None else json.dumps(existing)
    return json.loads(write_client(Client.SERVER_JSON, [entry], text).text)


@pytest.mark.parametrize(
    ("package", "command_line"),
    [
        ({"registryType": "npm", "identifier": "@u/weather", "version": "1.2.3"}, "npx -y @u/weather@1.2.3"),
        ({"registryType": "npm", "identifier": "weather", "runtimeHint": "bunx"}, "bunx -y weather"),
        ({"registryType": "npm", "identifier": "weather", "runtimeHint": "node"}, "npx -y weather"),
        ({"registryType": "pypi", "identifier": "weather", "version": "1.2.3"}, "uvx weather==1.2.3"),
        ({"registryType": "oci", "identifier": "ghcr.io/u/w:1.0"}, "docker run -i --rm ghcr.io/u/w:1.0"),
        ({"registryType": "oci", "identifier": "u/w", "version": "1.0"}, "docker run -i --rm u/w:1.0"),
    ],
)
def test_a_package_is_the_command_that_starts_it(package: dict[str, object], command_line: str) -> None:
    assert read_package(**package).command_line == command_line


def test_arguments_are_laid_out_in_order() -> None:
    found = read_package(
        registryType="npm",
        identifier="weather",
        runtimeArguments=[{"type": "positional", "value": "--quiet"}],
        packageArguments=[
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--port", "default": "80"},
            {"type": "named", "name": "--dir", "isRequired": True, "description": "Where to look"},
            {
                "type": "named",
                "name": "--url",
                "value": "{host}/{kept}",
                "variables": {"host": {"default": "h"}},
            },
            {"type": "named", "name": "--verbose"},
            {"type": "named", "name": "--skipped", "description": "Not needed"},
            {"type": "positional", "valueHint": "city", "isRequired": True},
        ],
    )
    assert found.entry.server.args == (
        "-y",
        "--quiet",
        "weather",
        "serve",
        "--port",
        "${WEATHER_PORT:-80}",
        "--dir",
        "${WEATHER_DIR}",
        "--url",
        "${WEATHER_HOST:-h}/{kept}",
        "--verbose",
        "${WEATHER_CITY}",
    )
    assert "--dir must be given: set WEATHER_DIR where Outfitter runs: 'Where to look'" in found.notes
    assert "--skipped is optional and left out: 'Not needed'" in found.notes


def test_environment_variables_are_asked_for_under_their_own_names() -> None:
    found = read_package(
        registryType="oci",
        identifier="u/w:1",
        environmentVariables=[
            {"name": "API_KEY", "isRequired": True, "isSecret": True, "description": "From the site"},
            {"name": "LEVEL", "default": "info"},
            {"name": "MODE", "value": "fast"},
            {"name": "OTHER"},
        ],
    )
    assert found.entry.server.env == {"API_KEY": "${API_KEY}", "LEVEL": "${LEVEL:-info}", "MODE": "fast"}
    assert found.entry.server.args == ("run", "-i", "--rm", "-e", "API_KEY", "-e", "LEVEL", "-e", "MODE", "u/w:1")
    assert "API_KEY must be given: set API_KEY where Outfitter runs: 'From the site'" in found.notes


def test_a_remote_has_a_url_headers_and_what_is_known_of_them() -> None:
    (found,) = read(
        remotes=[
            {
                "type": "sse",
                "url": "https://{tenant}.x.example/sse",
                "variables": {"tenant": {"isRequired": True, "description": "Your tenant"}},
                "headers": [
                    {
                        "name": "Authorization",
                        "value": "Bearer {token}",
                        "isSecret": True,
                        "variables": {"token": {"isRequired": True, "isSecret": True}},
                    },
                    {"name": "X-Region", "isRequired": True, "description": "Where"},
                    {"name": "X-Trace"},
                    {"name": "Accept", "value": "x"},
                ],
            }
        ]
    )
    assert found.entry.server.transport == SseTransport("https://${WEATHER_TENANT}.x.example/sse")
    assert found.entry.default_headers == {
        "Authorization": "Bearer ${WEATHER_TOKEN}",
        "X-Region": "${WEATHER_X_REGION}",
    }
    assert found.entry.header_schema == {
        "Authorization": HeaderSchema(sensitive=True),
        "X-Region": HeaderSchema(description="Where", required=True),
    }
    assert found.entry.server.description == "Weather"


def test_every_way_to_reach_the_server_is_offered() -> None:
    remote = {"type": "streamable-http", "url": "https://x.example/mcp"}
    package = {"registryType": "npm", "identifier": "weather", **STDIO}
    bundle = {"registryType": "mcpb", "identifier": "https://x.example/w.mcpb", **STDIO}
    listening = {**package, "transport": {"type": "streamable-http", "url": "http://localhost:1/mcp"}}
    found = read(title="The weather", packages=[package, bundle, listening], remotes=[remote, remote])
    assert [item.entry.id for item in found] == ["weather", "weather-http", "weather-http-3"]
    assert {item.entry.title for item in found} == {"The weather"}
    assert found[1].entry.server.transport == StreamableHttpTransport("https://x.example/mcp")
    assert "one of 3 ways to reach the same server: npm, http, http; keep one" in found[0].notes
    assert sum("cannot start" in note for note in found[0].notes) == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "offers nothing that Outfitter can use"),
        ({"packages": [{"registryType": "mcpb", "identifier": "x", **STDIO}]}, "offers nothing that Outfitter can use"),
        ({"name": ""}, "'name' is missing"),
        ({"packages": {}}, "/packages: expected a list"),
        ({"packages": [{"registryType": 1}]}, "/packages/0/registryType: expected a text"),
        (
            {"remotes": [{"type": "ws", "url": "https://x.example"}]},
            "/remotes/0/type: this type of remote is not known",
        ),
        ({"remotes": [{"type": "sse", "url": "x"}]}, "/remotes/0/url: invalid URL"),
        (
            {"remotes": [{"type": "sse", "url": "https://x.example", "headers": [{"name": 1}]}]},
            "/remotes/0/headers/0/name",
        ),
    ],
)
def test_what_cannot_be_used_is_one_clear_error(fields: dict[str, object], message: str) -> None:
    with pytest.raises(OutfitterError) as caught:
        read(**fields)
    assert message in str(caught.value)
    assert str(caught.value).startswith("server.json")


def test_a_package_is_written_with_its_inputs() -> None:
    server = MCPServer.stdio(
        "weather",
        "npx",
        ("-y", "@u/weather@1.2.3", "--dir", "${DIR}/x", "{braces}"),
        env={"API_KEY": "${API_KEY}", "LEVEL": "${LEVEL:-info}", "MODE": "fast", "OTHER": "a-${TOKEN}"},
        description="The weather",
    )
    assert write(ServerEntry(server, title="Weather")) == {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "com.example/weather",
        "description": "The weather",
        "title": "Weather",
        "version": "0.0.0",
        "packages": [
            {
                "registryType": "npm",
                "identifier": "@u/weather",
                "version": "1.2.3",
                "runtimeHint": "npx",
                "transport": {"type": "stdio"},
                "packageArguments": [
                    {"type": "positional", "value": "--dir"},
                    {"type": "positional", "value": "{DIR}/x", "variables": {"DIR": {"isRequired": True}}},
                    {"type": "positional", "value": "{braces}"},
                ],
                "environmentVariables": [
                    {"name": "API_KEY", "isRequired": True, "isSecret": True},
                    {"name": "LEVEL", "default": "info"},
                    {"name": "MODE", "value": "fast"},
                    {
                        "name": "OTHER",
                        "value": "a-{TOKEN}",
                        "variables": {"TOKEN": {"isRequired": True, "isSecret": True}},
                    },
                ],
            }
        ],
    }


def test_a_remote_is_written_with_its_headers() -> None:
    entry = ServerEntry(
        MCPServer.sse("weather", "https://${TENANT}.x.example/sse"),
        default_headers={"Authorization": "Bearer ${TOKEN}", "X-A": "${A:-b}"},
        header_schema={
            "Authorization": HeaderSchema(sensitive=True, required=True),
            "X-B": HeaderSchema(description="B"),
        },
    )
    assert write(entry)["remotes"] == [
        {
            "type": "sse",
            "url": "https://{TENANT}.x.example/sse",
            "variables": {"TENANT": {"isRequired": True}},
            "headers": [
                {
                    "name": "Authorization",
                    "isRequired": True,
                    "isSecret": True,
                    "value": "Bearer {TOKEN}",
                    "variables": {"TOKEN": {"isRequired": True, "isSecret": True}},
                },
                {"name": "X-B", "description": "B"},
                {"name": "X-A", "value": "{A}", "variables": {"A": {"default": "b"}}},
            ],
        }
    ]


def test_an_existing_file_keeps_what_only_it_knows() -> None:
    existing = {
        "name": "io.github.me/w",
        "version": "2.0.0",
        "repository": {"url": "u", "source": "github"},
        "packages": [1],
    }
    entry = ServerEntry(MCPServer.http("weather", "https://x.example/mcp"))
    file = write_client(Client.SERVER_JSON, [entry], json.dumps(existing))
    document = json.loads(file.text)
    assert document["name"] == "io.github.me/w"
    assert document["version"] == "2.0.0"
    assert document["repository"] == existing["repository"]
    assert "packages" not in document
    assert file.notes == ()


def test_placeholders_for_name_and_version_are_told() -> None:
    entry = ServerEntry(MCPServer.uvx("weather", "weather@latest", description="x" * 101))
    file = write_client(Client.SERVER_JSON, [entry])
    document = json.loads(file.text)
    assert len(document["description"]) == 100
    assert "version" not in document["packages"][0]
    notes = "\n".join(file.notes)
    for words in ("the name is a placeholder", "version 0.0.0", "the description is cut", "'latest' is not allowed"):
        assert words in notes


@pytest.mark.parametrize(
    "server",
    [
        MCPServer.stdio("a", "python", ("server.py",)),
        MCPServer.stdio("a", "npx", ()),
        MCPServer.stdio("a", "npx", ("-y", "--package=x", "y")),
        MCPServer.stdio("a", "npx", ("-y", "${PACKAGE}")),
        MCPServer.stdio("a", "uvx", ("--from", "git+https://x.example/y", "y")),
        MCPServer.stdio("a", "docker", ("compose", "up")),
        MCPServer.stdio("a", "docker", ("run", "--unknown", "x", "y")),
    ],
)
def test_a_command_that_no_registry_knows_is_refused(server: MCPServer) -> None:
    with pytest.raises(InvalidServer, match="no package registry knows"):
        write(ServerEntry(server))


@pytest.mark.parametrize("count", [0, 2])
def test_a_server_json_describes_one_server(count: int) -> None:
    entry = ServerEntry(MCPServer.http("a", "https://x.example/mcp"))
    with pytest.raises(InvalidServer, match=f"one server, not {count}"):
        write_client(Client.SERVER_JSON, [entry] * count)
