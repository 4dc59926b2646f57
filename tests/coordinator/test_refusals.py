"""What the registry does not take in: addresses, schemes, names, headers, unknown fields. Nothing is stored of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from outfitter.coordinator import MASK, Coordinator, open_coordinator
from outfitter.errors import Invalid, InvalidDocument, InvalidHeader, OutfitterError, Refused, SsrfBlocked
from outfitter.formats import pointer
from outfitter.storage import KeyRing, Kind, open_database
from outfitter.upstream import Guard
from tests.coordinator.document4 import ADMIN, ATLASSIAN, EDITOR, agent, files_with, fill, server

pytestmark = pytest.mark.anyio
BREAKS = ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\0b", "a\u0085b", "a\u2028b", " a", "a "]
METADATA = ["169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "2852039166"]
DISGUISED = ["2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "0", "0177.0.0.1", "127.0.0.1.", "[::ffff:7f00:1]"]


async def _is_refused(coordinator: Coordinator, document: Mapping[str, Any]) -> OutfitterError:
    with pytest.raises(OutfitterError) as refused:
        await coordinator.entries.create("mcp-servers", document, ADMIN)
    assert coordinator.live.entries == {}
    assert await coordinator.database.registry.revision() == 0
    return refused.value


@pytest.mark.promise("R01")
@pytest.mark.parametrize("host", METADATA)
async def test_metadata_services_are_refused_even_where_private_addresses_are_not(
    tmp_path: Path, keys: KeyRing, host: str
) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'r.db'}", keys) as database:
        for guard in (Guard(), Guard(allow_private=True)):
            async with open_coordinator(database, guard=guard) as opened:
                error = await _is_refused(opened, {"id": "x", "url": f"http://{host}/latest"})
                assert (error.code, isinstance(error, SsrfBlocked)) == ("ssrf_blocked", True)


@pytest.mark.promise("R02")
@pytest.mark.parametrize("host", DISGUISED)
async def test_addresses_in_disguise_are_refused(local: Coordinator, host: str) -> None:
    error = await _is_refused(local, {"id": "x", "url": f"http://{host}:9501/mcp"})
    assert error.code == "ssrf_blocked"
    assert error.trail == ("url",)


@pytest.mark.promise("R02")
@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.1", "[fe80::1]", "0.0.0.0"])  # noqa: S104 - nothing listens
async def test_private_addresses_are_refused_until_they_are_allowed(tmp_path: Path, keys: KeyRing, host: str) -> None:
    document = {"id": "x", "url": f"http://{host}/mcp"}
    async with open_database(f"sqlite:///{tmp_path / 'r.db'}", keys) as database:
        async with open_coordinator(database) as opened:
            assert (await _is_refused(opened, document)).code == "ssrf_blocked"
        async with open_coordinator(database, guard=Guard(allow_private=True)) as opened:
            assert (await opened.entries.create("mcp-servers", document, EDITOR)).version == 1


async def test_the_same_rule_holds_for_token_urls_and_for_servers_in_place(local: Coordinator) -> None:
    auth = {"type": "oauth2_client_credentials", "token_url": "http://169.254.169.254/t", "client_id": "a"}
    error = await _is_refused(local, server("x", auth={**auth, "client_secret": "${S}"}))
    assert (error.code, error.trail) == ("ssrf_blocked", ("auth", "token_url"))
    uses = {"m": {"url": "http://169.254.169.254/mcp"}}
    with pytest.raises(SsrfBlocked) as refused:
        await local.entries.create("agents", agent("a", mcpServers=uses), EDITOR)
    assert refused.value.trail == ("mcpServers", "m", "url")


@pytest.mark.parametrize(
    "url",
    ["http://localhost:9501/mcp", "http://127.0.0.1:9501/mcp", "http://[::1]/mcp", "https://mcp.example/x", "${U}"],
)
async def test_plain_addresses_of_this_machine_and_names_are_taken(local: Coordinator, url: str) -> None:
    assert (await local.entries.create("mcp-servers", {"id": "x", "url": url}, EDITOR)).document["url"] == url


@pytest.mark.promise("R05")
@pytest.mark.parametrize("scheme", ["file", "gopher", "javascript", "data", "ftp"])
async def test_other_schemes_are_refused(local: Coordinator, scheme: str) -> None:
    error = await _is_refused(local, {"id": "x", "url": f"{scheme}://host/x"})
    assert isinstance(error, Invalid)


@pytest.mark.promise("R06")
async def test_a_password_in_a_url_is_refused_and_told_nowhere(
    local: Coordinator, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        error = await _is_refused(local, {"id": "x", "url": "http://user:CNRY-77@host/mcp"})
    assert isinstance(error, Invalid)
    assert "CNRY-77" not in f"{error} {error!r} {caplog.text}"
    assert files_with(tmp_path, "CNRY-77") == []


@pytest.mark.promise("R07")
@pytest.mark.parametrize(
    "name", ["../x", "a%2f..%2fb", "a\0b", "a" * 300, "\u0441ontext", "wink", "wink-x", "", ".", "A b"]
)
async def test_strange_ids_are_refused(local: Coordinator, tmp_path: Path, name: str) -> None:
    before = files_with(tmp_path, "")
    assert isinstance(await _is_refused(local, {"id": name, "url": "http://localhost/"}), Invalid)
    for kind in ("capabilities", "agents"):
        if not name.startswith("wink"):
            with pytest.raises(Invalid):
                await local.entries.create(kind, {"name": name}, ADMIN)
    assert files_with(tmp_path, "") == before


@pytest.mark.promise("R15")
@pytest.mark.parametrize("field", ["approved", "pin", "created_by", "version", "is_approved", "colour"])
async def test_fields_that_are_not_the_authors_are_refused(local: Coordinator, field: str) -> None:
    await local.entries.create("mcp-servers", server("one"), ADMIN)
    with pytest.raises(InvalidDocument) as refused:
        await local.entries.replace("mcp-servers", "one", server("one", **{field: "x"}), '"1"', ADMIN)
    assert refused.value.trail == (field,)
    shown = await local.entries.get("mcp-servers", "one")
    assert (shown.version, shown.document) == (1, server("one"))


async def test_all_faults_of_a_document_are_told_at_once(local: Coordinator) -> None:
    document = server(
        "one",
        colour="red",
        header_schema={"X-A": {"type": "text"}, "X-B": {"type": "json", "wrong": 1}},
        default_headers={"Host": "x"},
    )
    error = await _is_refused(local, document)
    assert isinstance(error, Refused)
    places = {problem.trail for problem in error.problems}
    assert {("colour",), ("header_schema", "X-A", "type"), ("header_schema", "X-B", "wrong")} <= places
    assert ("default_headers", "Host") in places


@pytest.mark.parametrize("document", [None, [], "x", 3, {}, {"id": 3}, {"id": "x"}, {"id": "x", "url": 3}])
async def test_what_is_no_entry_is_refused(local: Coordinator, document: Any) -> None:  # noqa: ANN401
    assert isinstance(await _is_refused(local, document), Invalid)


async def test_what_no_reader_could_handle_is_refused(local: Coordinator) -> None:
    deep: Any = "x"
    for _ in range(900):
        deep = {"x": [deep]}
    for value in (deep, float("nan"), float("inf"), 10**400):
        error = await _is_refused(local, server("one", default_headers={"X-F": value}))
        assert isinstance(error, Invalid)
        error = await _is_refused(local, server("one", timeout=value))
        assert isinstance(error, Invalid)
        with pytest.raises(Invalid):
            await local.runs.start({"agent_name": "a", "mcp_headers": {"x": {"X-F": value}}}, EDITOR)


async def test_an_id_cannot_be_changed(local: Coordinator) -> None:
    await local.entries.create("mcp-servers", server("one"), EDITOR)
    with pytest.raises(InvalidDocument):
        await local.entries.replace("mcp-servers", "one", server("two"), '"1"', EDITOR)
    bare = {"url": "http://localhost/other"}
    shown = await local.entries.replace("mcp-servers", "one", bare, '"1"', EDITOR)
    assert shown.document == {"id": "one", **bare}


def _levels(name: str, value: object) -> list[tuple[str, Any]]:
    """The header at each level that is written in the registry."""
    return [
        ("mcp-servers", server("new", default_headers={name: value})),
        ("capabilities", {"name": "new", "mcpServers": {"x": {"ref": "atlassian", "headers": {name: value}}}}),
        ("agents", agent("new", mcpServers={"x": {"ref": "atlassian", "headers": {name: value}}})),
    ]


@pytest.mark.promise("H01", "H02")
@pytest.mark.parametrize("value", BREAKS)
async def test_values_that_would_break_a_request_are_refused_at_every_level(local: Coordinator, value: str) -> None:
    await fill(local, ("mcp-servers", ATLASSIAN), ("agents", agent("a", mcpServers={"x": {"ref": "atlassian"}})))
    for kind, document in _levels("X-Jira-Projects", value):
        with pytest.raises(InvalidHeader) as refused:
            await local.entries.create(kind, document, EDITOR)  # pyright: ignore[reportArgumentType]
        assert value.strip() not in str(refused.value) or value.strip() == "a"
    for asked in ({"mcp_headers": {"x": {"X-Jira-Projects": value}}}, {"credentials": {"x": {"api_key": value}}}):
        with pytest.raises(InvalidHeader):
            await local.runs.start({"agent_name": "a", **asked}, EDITOR)
    assert len(local.live.entries) == 2
    assert (await local.runs.list()).items == ()


_NAMES = ["X Y", "X:Y", "X,Y", "", "X-Ü"]
_RESERVED = [
    "Mcp-Method", "Mcp-Name", "Mcp-Param-x", "Mcp-Session-Id", "MCP-Protocol-Version", "Last-Event-ID", "Accept",
    "Content-Type", "Host", "Transfer-Encoding",
]  # fmt: skip


@pytest.mark.promise("H03", "H05", "H07")
@pytest.mark.parametrize("name", [*_NAMES, *_RESERVED, "X_API_Key"])
async def test_names_that_no_header_may_have_are_refused_at_every_level(local: Coordinator, name: str) -> None:
    await fill(local, ("mcp-servers", ATLASSIAN), ("agents", agent("a", mcpServers={"x": {"ref": "atlassian"}})))
    levels = [*_levels(name, "v"), ("mcp-servers", server("new", header_schema={name: {"type": "string"}}))]
    for kind, document in levels:
        with pytest.raises(InvalidHeader):
            await local.entries.create(kind, document, EDITOR)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidHeader):
        await local.runs.start({"agent_name": "a", "mcp_headers": {"x": {name: "v"}}}, EDITOR)
    assert len(local.live.entries) == 2


@pytest.mark.promise("H06")
async def test_two_spellings_are_one_header_and_the_later_wins(local: Coordinator) -> None:
    uses = {"x": {"ref": "atlassian", "headers": {"x-api-key": "${LATER}"}}}
    await fill(local, ("mcp-servers", ATLASSIAN), ("agents", agent("a", mcpServers=uses)))
    (shown,) = (await local.blueprints.explain("a"))["servers"]
    (header,) = shown["headers"]
    assert (header["name"], header["value"]) == ("X-API-Key", "${LATER}")
    assert [other["value"] for other in header["overruled"]] == ["${ATLASSIAN_API_KEY}"]


@pytest.mark.promise("API-PROVIDERS")
async def test_a_secret_of_a_provider_that_nobody_has_is_refused_when_it_is_saved(local: Coordinator) -> None:
    lost = {"$secret": "lost:key"}
    use = {"x": {"url": "http://localhost:1/mcp", "headers": {"X-Key": lost}}}
    documents: list[tuple[Kind, dict[str, Any], str]] = [
        ("mcp-servers", server("s", default_headers={"X-Key": lost}), "/default_headers/X-Key"),
        ("agents", agent("a", mcpServers=use), "/mcpServers/x/headers/X-Key"),
    ]
    for kind, document, place in documents:
        with pytest.raises(OutfitterError) as caught:
            await local.entries.create(kind, document, ADMIN)
        assert (caught.value.message, pointer(caught.value.trail)) == ("no secret provider 'lost'", place)
        assert caught.value.hint == "known: env, file, keyring, vault"
    for known in ("bare-name", "env:KEY", "file:key", "keyring:a/b", "vault:a/b/c"):
        fine = server(known.partition(":")[0], default_headers={"X-Key": {"$secret": known}})
        await local.entries.create("mcp-servers", fine, ADMIN)


async def test_a_trial_of_a_run_that_gives_a_mask_is_refused_as_the_run_would_be(local: Coordinator) -> None:
    uses = {"x": {"url": "http://localhost:1/mcp"}}
    await fill(local, ("agents", agent("a", mcpServers=uses)))
    for part in ("mcp_headers", "credentials"):
        with pytest.raises(OutfitterError) as caught:
            await local.blueprints.what_if("a", run={part: {"x": {"X-Key": MASK}}})
        assert (caught.value.code, pointer(caught.value.trail)) == ("invalid_run", f"/{part}/x/X-Key")
