"""Whatever is asked and whatever a server answers, both lanes say the same."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import anyio.from_thread
import anyio.to_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outfitter.catalog import MCPServer
from tests.gateway.fast_kit import Pair, pair, parrot
from tests.gateway.kit import agent

pytestmark = pytest.mark.anyio
Strategy: TypeAlias = "st.SearchStrategy[Any]"
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
NUMBER = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
LEAF: Strategy = st.none() | st.booleans() | NUMBER | TEXT
VALUE: Strategy = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)
OBJECT: Strategy = st.dictionaries(TEXT, VALUE, max_size=4)
RESULT: Strategy = st.fixed_dictionaries(
    {"content": st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXT}), max_size=2)},
    optional={
        "isError": st.booleans(), "_meta": OBJECT | LEAF, "structuredContent": OBJECT, "ttlMs": NUMBER,
        "resultType": st.just("complete") | TEXT, "cacheScope": TEXT,
    },
)  # fmt: skip
ERROR: Strategy = st.fixed_dictionaries({"code": st.integers(-40000, 40000), "message": TEXT}, optional={"data": VALUE})
ANSWER: Strategy = st.one_of(
    st.fixed_dictionaries({"result": RESULT | VALUE}, optional={"other": VALUE}),
    st.fixed_dictionaries({"error": ERROR}),
    OBJECT,
)
WANTED: Strategy = st.fixed_dictionaries(
    {"answer": ANSWER}, optional={"events": st.booleans(), "more": OBJECT, "status": st.sampled_from((200, 201, 404))}
)
IDENT = st.integers(-(2**62), 2**62) | TEXT
NAME = st.sampled_from(("say", "héllo wörld")) | TEXT


def same(answers: tuple[tuple[int, Any], tuple[int, Any]]) -> None:
    (fast_status, fast), (full_status, full) = answers
    assert fast_status == full_status
    assert json.dumps(fast, sort_keys=True) == json.dumps(full, sort_keys=True)


@pytest.mark.promise("FAST-SAME")
@pytest.mark.parametrize("upstream", ["modern", "legacy"])
@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_both_lanes_say_the_same_to_anything(era: str, upstream: str) -> None:
    async with parrot(upstream) as bird:
        server = MCPServer.http("x", bird.url)
        async with pair(agent("a", server), era=era, server="x", patience=20) as both:
            await anyio.to_thread.run_sync(_try_many, both)
            assert both.fast.taken()["fast"] > 0
            assert both.full.taken()["fast"] == 0


def _try_many(both: Pair) -> None:
    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=(HealthCheck.too_slow,))
    @given(name=st.just("say") | NAME, arguments=WANTED | OBJECT | VALUE, ident=IDENT)
    def compare(name: str, arguments: object, ident: object) -> None:
        if both.era == "modern" and (name != name.strip() or not name.isprintable()):
            name = "say"  # a header cannot carry it as it is
        same(anyio.from_thread.run(_ask, both, name, arguments, ident))

    compare()


async def _ask(both: Pair, name: str, arguments: object, ident: object) -> tuple[Any, Any]:
    return await both.call(name, arguments, id=ident)
