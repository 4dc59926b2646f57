"""The team's registry in the official form: others can browse it, nothing secret is in it, and ours reads it back."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from outfitter.app import open_official
from outfitter.errors import NeedsAuth, NotFound
from outfitter.formats import write_entry
from tests.coordinator.api.kit import Served
from tests.coordinator.api.official_shape import LIST, ONE
from tests.coordinator.document4 import CONTEXT_STORE

pytestmark = pytest.mark.anyio
SECRET = "canary-5b1f77"
WEATHER: dict[str, Any] = {
    "id": "weather", "command": "npx", "args": ["-y", "@u/weather@1.2.3", "--units", "${UNITS:-metric}"],
    "env": {"WEATHER_KEY": SECRET, "WEATHER_MODE": "${MODE}"},
}  # fmt: skip
LOCKED: dict[str, Any] = {
    "id": "locked", "name": "Locked", "url": "https://locked.example/mcp", "description": "Things " * 40,
    "default_headers": {"Authorization": f"Bearer {SECRET}", "X-Team": "blue"},
}  # fmt: skip
HOME: dict[str, Any] = {"id": "home-made", "command": "/opt/home/made", "args": []}
PAGE = "/v0.1/servers"
STORE = f"{PAGE}/local.outfitter%2Fcontext-store/versions"


async def _fill(served: Served) -> None:
    for document in (CONTEXT_STORE, WEATHER, LOCKED, HOME):
        await served.must("/mcp-servers", document)
    for name in ("weather", "home-made"):
        reply = await served.post(f"/mcp-servers/{name}/approve", if_match='"1"')
        assert reply.status == 200, reply.content


async def _names(served: Served, query: str = "") -> list[str]:
    reply = await served.get(f"{PAGE}{query}")
    assert reply.status == 200, reply.content
    jsonschema.validate(reply.json, LIST)
    return [item["server"]["name"] for item in reply.json["servers"]]


@pytest.mark.promise("REGISTRY-PUBLISHED")
async def test_a_viewer_browses_the_teams_servers_in_the_official_form(served: Served) -> None:
    await _fill(served)
    viewer = await served.as_role("viewer")
    store, locked, weather = (f"local.outfitter/{name}" for name in ("context-store", "locked", "weather"))
    assert await _names(viewer) == [store, locked, weather]  # what no package registry knows is left out
    assert await _names(viewer, "?search=WEATH&version=latest") == [weather]
    assert await _names(viewer, "?updated_since=2999-01-01T00:00:00Z") == []
    first = (await viewer.get(f"{PAGE}?limit=2")).json
    assert first["metadata"] == {"count": 2, "nextCursor": "locked"}
    assert await _names(viewer, "?limit=2&cursor=locked") == [weather]
    assert (await viewer.get(f"{PAGE}?updated_since=soon")).status == 400
    assert (await served.nobody().get(PAGE)).status == 401
    assert (await viewer.post(PAGE, {})).status == 405


@pytest.mark.promise("REGISTRY-PUBLISHED")
async def test_nothing_secret_is_published_and_what_is_secret_becomes_a_variable(served: Served) -> None:
    await _fill(served)
    content = (await served.get(PAGE)).content
    assert SECRET.encode() not in content
    assert b"******" not in content
    found = {item["server"]["name"]: item["server"] for item in (await served.get(PAGE)).json["servers"]}
    (remote,) = found["local.outfitter/locked"]["remotes"]
    authorization = next(header for header in remote["headers"] if header["name"] == "Authorization")
    assert [one["isSecret"] for one in authorization["variables"].values()] == [True]
    (package,) = found["local.outfitter/weather"]["packages"]
    assert (package["identifier"], package["version"]) == ("@u/weather", "1.2.3")
    variables = {one["name"]: one for one in package["environmentVariables"]}
    assert variables["WEATHER_KEY"] == {"name": "WEATHER_KEY", "isRequired": True, "isSecret": True}


@pytest.mark.promise("REGISTRY-PUBLISHED")
async def test_a_program_that_no_admin_approved_is_not_published(served: Served) -> None:
    await served.must("/mcp-servers", WEATHER)
    assert await _names(served) == []
    assert (await served.get(f"{PAGE}/local.outfitter%2Fweather/versions/latest")).status == 404


@pytest.mark.promise("REGISTRY-PUBLISHED")
async def test_every_version_of_a_server_can_be_asked_for(served: Served) -> None:
    made = await served.must("/mcp-servers", CONTEXT_STORE)
    moved = {**CONTEXT_STORE, "url": "http://localhost:9502/mcp"}
    assert (await served.put("/mcp-servers/context-store", moved, made.etag)).status == 200
    versions = (await served.get(STORE)).json
    jsonschema.validate(versions, LIST)
    told = [(one["server"]["version"], one["server"]["remotes"][0]["url"]) for one in versions["servers"]]
    assert told == [("2.0.0", "http://localhost:9502/mcp"), ("1.0.0", "http://localhost:9501/mcp")]
    newest = (await served.get(f"{STORE}/latest")).json
    jsonschema.validate(newest, ONE)
    assert newest["server"]["version"] == "2.0.0"
    assert (await served.get(f"{STORE}/1.0.0")).json["server"]["remotes"][0]["url"].endswith(":9501/mcp")
    for wrong in (f"{STORE}/3.0.0", f"{STORE}/1.0", f"{PAGE}/other%2Fcontext-store/versions", "/v0.1/nothing"):
        assert (await served.get(wrong)).status == 404, wrong


@pytest.mark.promise("REGISTRY-PUBLISHED")
async def test_our_own_client_browses_it_and_reads_the_same_servers_back(served: Served) -> None:
    await _fill(served)
    viewer = await served.as_role("viewer")
    async with open_official(served.url, token=viewer.token) as registry:
        assert [offer.name for offer in await registry.search("store")] == ["local.outfitter/context-store"]
        assert len(await registry.search(most=2)) == 2
        (store,) = (await registry.find("local.outfitter/context-store")).ways("registry")
        (weather,) = (await registry.find("local.outfitter/weather", "2.0.0")).ways("registry")
        with pytest.raises(NotFound, match="has no"):
            await registry.find("local.outfitter/home-made")
    written = write_entry(store.entry)
    assert written["url"] == CONTEXT_STORE["url"]
    assert written["default_headers"] == CONTEXT_STORE["default_headers"]
    assert written["id"] == "context-store"
    assert weather.command_line == "npx -y @u/weather@1.2.3 --units '${UNITS:-metric}'"
    assert weather.entry.server.env == {"WEATHER_KEY": "${WEATHER_KEY}", "WEATHER_MODE": "${MODE}"}
    async with open_official(served.url) as registry:
        with pytest.raises(NeedsAuth):
            await registry.search()
