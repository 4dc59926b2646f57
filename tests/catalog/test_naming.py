"""The names a model sees: each means one tool, none is parsed, and they are the same on every start."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.catalog import NameMap, ToolKey, build_name_map

SAFE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def names_of(*tools: tuple[str, str], prefix: str | None = None) -> NameMap:
    return build_name_map((ToolKey(server, tool), server if prefix is None else prefix) for server, tool in tools)


@pytest.mark.promise("NAMES-DISTINCT")
def test_a_plain_tool_is_shown_with_its_servers_prefix() -> None:
    names = names_of(("github", "list_issues"))
    assert names.shown == {ToolKey("github", "list_issues"): "github_list_issues"}
    assert names.keys == {"github_list_issues": ToolKey("github", "list_issues")}
    assert list(names_of(("github", "list_issues"), prefix="").keys) == ["list_issues"]
    assert list(names_of(("github", "list_issues"), prefix="gh").keys) == ["gh_list_issues"]


@pytest.mark.promise("G15", "NAMES-DISTINCT")
def test_two_pairs_that_spell_the_same_name_get_two_names_that_reach_their_own_tool() -> None:
    one, other = ToolKey("a", "b_c"), ToolKey("a_b", "c")
    names = names_of(("a", "b_c"), ("a_b", "c"))
    assert names.shown[one] != names.shown[other]
    assert "a_b_c" not in names.keys
    assert (names.keys[names.shown[one]], names.keys[names.shown[other]]) == (one, other)


@pytest.mark.promise("NAMES-DISTINCT")
@pytest.mark.parametrize("tool", ["x" * 100, "spaces and ünïcode", "a.b/c", "", "\ud800", "新しい", "a\nb"])
def test_a_name_that_is_too_long_or_odd_gets_a_tail_and_stays_safe(tool: str) -> None:
    (name,) = names_of(("server", tool)).keys
    assert SAFE.fullmatch(name)


@pytest.mark.promise("NAMES-DISTINCT")
def test_names_of_64_characters_stay_and_of_65_get_a_tail() -> None:
    assert list(names_of(("s", "x" * 62)).keys) == ["s_" + "x" * 62]
    (name,) = names_of(("s", "x" * 63)).keys
    assert len(name) == 64
    assert name != "s_" + "x" * 62


@pytest.mark.promise("NAMES-STABLE")
def test_the_tail_is_the_same_on_every_start() -> None:
    assert names_of(("a", "b_c"), ("a_b", "c")).shown == {
        ToolKey("a", "b_c"): "a_b_c_662f0bbb",
        ToolKey("a_b", "c"): "a_b_c_0c1d18f5",
    }


@pytest.mark.promise("G15", "NAMES-DISTINCT")
def test_a_server_cannot_take_the_tailed_name_of_another_servers_tool() -> None:
    victim, twin = ToolKey("a", "b_c"), ToolKey("a_b", "c")
    tools = [(victim, "a"), (twin, "a_b")]
    for _ in range(4):
        taken = build_name_map(tools).shown[victim]
        tools.append((ToolKey("evil", taken), ""))
        names = build_name_map(tools)
        assert len(names.keys) == len(tools)
        assert names.keys[taken] == ToolKey("evil", taken)
        assert names.keys[names.shown[victim]] == victim
        assert names.keys[names.shown[twin]] == twin


KEYS = st.builds(
    ToolKey, st.sampled_from(["a", "a_b", "a_b_c", "x"]), st.text(st.sampled_from("abc_-.é "), max_size=70)
)


@pytest.mark.promise("NAMES-DISTINCT", "NAMES-STABLE")
@given(st.lists(KEYS, unique=True, max_size=12), st.randoms(use_true_random=False))
def test_every_tool_has_one_safe_name_whatever_the_order(keys: list[ToolKey], random: Random) -> None:
    names = build_name_map((key, key.server) for key in keys)
    assert set(names.shown) == set(keys)
    assert {names.keys[name]: name for name in names.keys} == dict(names.shown)
    assert all(SAFE.fullmatch(name) for name in names.keys)
    shuffled = list(keys)
    random.shuffle(shuffled)
    assert build_name_map((key, key.server) for key in shuffled).shown == names.shown
