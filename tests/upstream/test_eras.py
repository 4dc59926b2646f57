"""What a request carries in each era, how the era is found out, and the table of states."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.errors import ProtocolViolation, UpstreamDown, UpstreamError, UpstreamLost, UpstreamTimeout
from outfitter.upstream import (
    Era,
    Happening,
    Health,
    Identity,
    Message,
    Patience,
    State,
    header_text,
    mirrored_parameters,
    negotiate,
    parameter_headers,
    routing_headers,
    stamp,
)

MODERN: Message = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "instructions": "Hi"}
LEGACY: Message = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "old"}}


@pytest.mark.promise("LINK-ERA")
def test_a_modern_request_carries_version_and_capabilities_and_keeps_what_was_there() -> None:
    given_params = {"name": "echo", "_meta": {"progressToken": 7}}
    meta = stamp(given_params, Identity(capabilities={"roots": {}}), "2026-07-28")["_meta"]
    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {"roots": {}}
    assert meta["progressToken"] == 7
    assert given_params == {"name": "echo", "_meta": {"progressToken": 7}}


def test_routing_headers_repeat_method_and_name() -> None:
    assert routing_headers("tools/call", {"name": "echo"}, "2026-07-28") == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "echo",
    }
    assert routing_headers("resources/read", {"uri": "a://b"}, "2026-07-28")["Mcp-Name"] == "a://b"
    assert "Mcp-Name" not in routing_headers("tools/list", {"name": "x"}, "2026-07-28")


@pytest.mark.promise("H19")
@given(st.text(max_size=60))
def test_a_header_text_is_plain_ascii_whatever_the_value(value: str) -> None:
    try:
        text = header_text(value)
    except UnicodeEncodeError:
        return
    assert text.isascii()
    assert text.isprintable()
    assert text == text.strip()


@pytest.mark.promise("H19")
def test_a_value_with_a_line_break_or_the_sentinel_itself_is_wrapped() -> None:
    assert header_text("a\r\nX-Admin: 1").startswith("=?base64?")
    assert header_text("=?base64?YQ==?=").startswith("=?base64?")
    assert header_text("plain") == "plain"


@pytest.mark.promise("H19")
def test_annotated_arguments_are_repeated_and_malformed_annotations_told() -> None:
    schema = {
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry"}}},
        }
    }
    mirrored = mirrored_parameters(schema)
    assert parameter_headers(mirrored, {"region": "é", "deep": {"dry": True}}) == {
        "Mcp-Param-Region": "=?base64?w6k=?=",
        "Mcp-Param-Dry": "true",
    }
    assert parameter_headers(mirrored, {"region": None}) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": "A B"}}},
        {"properties": {"a": {"type": "string", "x-mcp-header": 1}}},
        {"anyOf": [{"properties": {"a": {"type": "string", "x-mcp-header": "A"}}}]},
        {
            "properties": {
                "a": {"type": "string", "x-mcp-header": "A"},
                "b": {"type": "string", "x-mcp-header": "a"},
            }
        },
    ],
)
def test_a_malformed_annotation_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="x-mcp-header"):
        mirrored_parameters(schema)


class _Server:
    """A server that answers discover and initialize as told, and counts."""

    def __init__(self, *discover: Message | Exception) -> None:
        self.answers = list(discover)
        self.asked: list[str] = []

    async def discover(self, _version: str) -> Message:
        self.asked.append("discover")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def initialize(self) -> Message:
        self.asked.append("initialize")
        return LEGACY


def _unsupported(*versions: str) -> UpstreamError:
    return UpstreamError("no", rpc_code=-32022, data={"supported": list(versions)})


@pytest.mark.anyio
@pytest.mark.promise("LINK-ERA")
@pytest.mark.parametrize(
    ("discover", "era", "asked"),
    [
        ((MODERN,), Era.MODERN, ["discover"]),
        (({"supportedVersions": ["2025-11-25"]},), Era.LEGACY, ["discover", "initialize"]),
        (({"nonsense": True},), Era.LEGACY, ["discover", "initialize"]),
        ((UpstreamError("?", rpc_code=-32601),), Era.LEGACY, ["discover", "initialize"]),
        ((UpstreamTimeout("slow"),), Era.LEGACY, ["discover", "initialize"]),
        ((_unsupported("2026-07-28"), MODERN), Era.MODERN, ["discover", "discover"]),
        ((_unsupported("2025-11-25"),), Era.LEGACY, ["discover", "initialize"]),
    ],
)
async def test_the_era_is_found_by_asking_once(
    discover: tuple[Message | Exception, ...], era: Era, asked: list[str]
) -> None:
    server = _Server(*discover)
    agreement = await negotiate(server.discover, server.initialize)
    assert agreement.era is era
    assert server.asked == asked


@pytest.mark.anyio
async def test_a_known_legacy_server_is_not_probed() -> None:
    server = _Server(MODERN)
    assert (await negotiate(server.discover, server.initialize, Era.LEGACY)).era is Era.LEGACY
    assert server.asked == ["initialize"]


@pytest.mark.anyio
async def test_an_outage_is_never_a_verdict_about_the_era() -> None:
    server = _Server(UpstreamLost("refused"))
    with pytest.raises(UpstreamLost):
        await negotiate(server.discover, server.initialize)
    assert server.asked == ["discover"]


@pytest.mark.anyio
async def test_a_server_that_shares_no_version_is_told_so() -> None:
    server = _Server(_unsupported("2031-01-01"))
    with pytest.raises(ProtocolViolation, match="2031-01-01"):
        await negotiate(server.discover, server.initialize)


def test_the_back_off_doubles_with_jitter_and_has_a_bound() -> None:
    patience, dice = Patience(first_wait=1, longest_wait=4), random.Random(1)
    assert patience.wait_before(0, dice) == 0
    for attempt, full in ((1, 1), (2, 2), (3, 4), (9, 4)):
        assert full / 2 <= patience.wait_before(attempt, dice) <= full


@pytest.mark.promise("LINK-STATES")
def test_a_server_that_keeps_failing_rests_and_says_how_long() -> None:
    health = Health().after(Happening.TRIED, 1).after(Happening.LOST, 2, UpstreamLost("connection refused"))
    assert health.state is State.DEGRADED
    assert health.refusal(3, "server 'x'") is None
    health = health.after(Happening.GAVE_UP, 3).resting(3, 60)
    refusal = health.refusal(13, "server 'x'")
    assert isinstance(refusal, UpstreamDown)
    assert refusal.retry_after == 50
    assert "connection refused" in refusal.message
    assert health.refusal(63, "server 'x'") is None
    assert health.after(Happening.TRIED, 64).after(Happening.OPENED, 65) == Health(State.READY, 65)
