"""Sealed values that outlive a change: nobody reads them by changing what stands around them, or has them sent."""

from __future__ import annotations

from typing import Any

import pytest

from outfitter.coordinator import MASK, Coordinator, Draft
from outfitter.errors import Forbidden, InvalidDocument, OutfitterError
from outfitter.storage import Kind, User
from tests.coordinator.document4 import ADMIN, EDITOR, agent, fill, server
from tests.shelf import codes_of

pytestmark = pytest.mark.anyio
CANARY = "CNRY-1"
ELSEWHERE = "http://localhost:9666/mine"


def schema(*, sensitive: bool) -> dict[str, Any]:
    return {"X-Key": {"type": "string", "sensitive": sensitive}}


ONE = server("one", header_schema=schema(sensitive=True), default_headers={"X-Key": f"{CANARY}-server"})
OPEN = {**ONE, "header_schema": schema(sensitive=False)}
USE = {"x": {"ref": "one", "headers": {"X-Key": f"{CANARY}-agent"}}}
KEEP = {"default_headers": {"X-Key": MASK}}


@pytest.fixture
async def filled(local: Coordinator) -> Coordinator:
    capability = {"name": "c", "mcpServers": {"y": {"ref": "one"}}}
    bare = agent("bare", capabilities=["c"], mcpServers={"y": {"headers": {"X-Key": f"{CANARY}-bare"}}})
    plain = server("plain", header_schema=schema(sensitive=False))
    documents: list[tuple[Kind, dict[str, Any]]] = [
        ("mcp-servers", ONE), ("mcp-servers", plain), ("capabilities", capability),
        ("agents", agent("a", mcpServers=USE)), ("agents", bare),
    ]  # fmt: skip
    await fill(local, *documents)
    return local


CHANGES: list[tuple[Kind, dict[str, Any]]] = [
    ("mcp-servers", {**OPEN, **KEEP}),
    ("mcp-servers", {**OPEN, "default_headers": {}}),
    ("capabilities", {"name": "c", "mcpServers": {"y": {"ref": "plain"}}}),
    ("agents", agent("a", mcpServers={"x": {"ref": "plain", "headers": {"X-Key": MASK}}})),
]


@pytest.mark.parametrize(("kind", "document"), CHANGES)
async def test_no_change_makes_a_sealed_value_readable(
    filled: Coordinator, kind: Kind, document: dict[str, Any]
) -> None:
    revision, name = filled.live.revision, document.get("id") or document["name"]
    for one in ("a", "bare"):
        with pytest.raises(OutfitterError) as tried:
            await filled.blueprints.what_if(one, puts=[Draft(kind, document)])
        assert CANARY not in repr(tried.value)
    for who in (EDITOR, ADMIN):
        with pytest.raises(OutfitterError) as refused:
            await filled.entries.replace(kind, name, document, "*", who)
        assert set(codes_of(refused.value)) <= {"invalid_document", "forbidden"}
        with pytest.raises(OutfitterError):
            await filled.entries.apply([Draft(kind, document)], [], who)
    assert filled.live.revision == revision


async def test_a_mask_is_not_kept_for_another_address(filled: Coordinator) -> None:
    with pytest.raises(InvalidDocument, match="another place") as refused:
        await filled.entries.replace("mcp-servers", "one", {**ONE, **KEEP, "url": ELSEWHERE}, "*", ADMIN)
    assert refused.value.path == "/default_headers/X-Key"
    auth = {"type": "oauth2_client_credentials", "token_url": "https://a.example/t", "client_id": "i"}
    made = await filled.entries.create("mcp-servers", server("two", auth={**auth, "client_secret": CANARY}), EDITOR)
    assert CANARY not in repr(made)
    moved = {**auth, "token_url": "https://b.example/t", "client_secret": MASK}
    with pytest.raises(InvalidDocument, match="another place"):
        await filled.entries.replace("mcp-servers", "two", server("two", auth=moved), "*", EDITOR)


async def test_only_an_admin_moves_a_server_that_others_have_sealed_values_for(filled: Coordinator) -> None:
    moved: dict[str, Any] = {**ONE, "url": ELSEWHERE, "default_headers": {}}
    with pytest.raises(Forbidden):
        await filled.entries.replace("mcp-servers", "one", moved, "*", EDITOR)
    await filled.entries.delete("mcp-servers", "one", "*", EDITOR, force=True)
    with pytest.raises(Forbidden):
        await filled.entries.create("mcp-servers", moved, EDITOR)
    await filled.entries.create("mcp-servers", moved, ADMIN)


async def test_a_rollback_brings_no_sealed_value_to_light_or_to_another_place(filled: Coordinator) -> None:
    await filled.entries.replace("agents", "a", agent("a"), '"1"', EDITOR)
    await filled.entries.delete("agents", "bare", '"1"', EDITOR)
    with pytest.raises(Forbidden):
        await filled.entries.rollback("agents", "a", 1, '"2"', EDITOR)
    await filled.entries.replace("mcp-servers", "one", {**OPEN, "default_headers": {}}, '"1"', EDITOR)
    with pytest.raises(InvalidDocument, match="readable"):
        await filled.entries.rollback("agents", "a", 1, '"2"', ADMIN)
    back = await filled.entries.rollback("mcp-servers", "one", 1, '"2"', EDITOR)
    assert back.document["default_headers"] == {"X-Key": MASK}
    await filled.entries.rollback("agents", "a", 1, '"2"', ADMIN)


async def test_a_value_that_is_given_anew_may_be_open_and_go_anywhere(filled: Coordinator) -> None:
    for name in ("a", "bare"):
        await filled.entries.delete("agents", name, "*", EDITOR)
    new = {**OPEN, "url": ELSEWHERE, "default_headers": {"X-Key": "open"}}
    assert (await filled.entries.replace("mcp-servers", "one", new, "*", EDITOR)).document == new
    assert filled.live.entries[User("mcp-servers", "one")].sealed == frozenset()


async def test_a_secret_of_a_capability_says_for_which_server_it_is(local: Coordinator) -> None:
    stray = {"name": "c", "mcpServers": {"x": {"headers": {"X-API-Key": CANARY}}}}
    with pytest.raises(InvalidDocument) as refused:
        await local.entries.create("capabilities", stray, EDITOR)
    assert refused.value.path == "/mcpServers/x/headers/X-API-Key"


@pytest.mark.parametrize("name", ["api_key", "access%5Ftoken"])
async def test_a_secret_in_an_address_is_refused(local: Coordinator, name: str) -> None:
    url = f"https://a.example/mcp?team=x&{name}={CANARY}"
    for kind, document in (
        ("mcp-servers", server("one") | {"url": url}),
        ("agents", agent("a", mcpServers={"x": {"url": url}})),
    ):
        with pytest.raises(OutfitterError, match="looks like a secret") as refused:
            await local.entries.create(kind, document, EDITOR)  # pyright: ignore[reportArgumentType]
        assert CANARY not in str(refused.value)
    await local.entries.create("mcp-servers", server("one") | {"url": "https://a.example/?api_key=${KEY}"}, EDITOR)
