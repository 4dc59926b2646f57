"""What rules say about a call: deny beats ask beats allow, and no spelling of an argument slips past a condition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outfitter.catalog import Effect, JsonValue, ToolFilter, ToolRule
from outfitter.errors import InvalidFilter
from outfitter.policy import Allow, Ask, Deny, judge


def rule(effect: Effect = Effect.ALLOW, glob: str | None = None, pointer: str = "/path", tool: str = "t") -> ToolRule:
    return ToolRule((tool,), effect, arguments={} if glob is None else {pointer: (glob,)})


def verdict(rules: list[ToolRule], arguments: dict[str, JsonValue]) -> str:
    return type(judge(rules, "s", "t", arguments)).__name__


@pytest.mark.promise("RULES-ORDER")
@pytest.mark.parametrize(
    ("effects", "answer"),
    [
        ([], Allow),
        ([Effect.ALLOW], Allow),
        ([Effect.ALLOW, Effect.ASK], Ask),
        ([Effect.ASK, Effect.DENY, Effect.ALLOW], Deny),
        ([Effect.DENY], Deny),
    ],
)
def test_deny_beats_ask_beats_allow(effects: list[Effect], answer: type) -> None:
    assert isinstance(judge([rule(effect) for effect in effects], "s", "t", {}), answer)


@pytest.mark.promise("RULES-ORDER")
def test_a_call_that_meets_no_allow_rule_is_refused_with_what_it_must_meet() -> None:
    decision = judge([ToolRule(("t",), arguments={"/path": ("tests/**",)}, reason="testers write tests")], "s", "t", {})
    assert isinstance(decision, Deny)
    assert decision.reason == "testers write tests (/path must match tests/**)"


@pytest.mark.promise("RULES-ARGUMENTS")
@pytest.mark.parametrize(
    ("glob", "path", "is_met"),
    [
        ("tests/**", "tests/unit/a.py", True),
        ("tests/**", "./tests//unit/a.py", True),
        ("tests/**", "tests\\unit\\a.py", True),
        ("tests/**", "src/a.py", False),
        ("tests/**", "tests/../src/a.py", False),
        ("tests/**", "tests/..\\..\\etc/passwd", False),
        ("tests/**", "tests/a\0/../../x", False),
        ("tests/**", "/tests/a.py", False),
        ("tests/**", "tests", False),
        ("tests/**", "xtests/a", False),
        ("tests/*", "tests/a/b", False),
        ("**/*.md", "a/b/c.md", True),
        ("**/*.md", "c.md", True),
        ("**/tests/**", "tests/a", True),
        ("**/tests/**", "app/tests/a", True),
        ("**/tests/**", "mytests/a", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/xb", False),
        ("text:select **", "SELECT 1/../..", True),
        ("text:select **", "DROP t --/../select 1", False),
        ("text:*ab*ba", "xabba", True),
        ("text:*ab*ba", "xaba", False),
        ("text:a?c", "a/c", True),
        ("text:a*b*c", "a/b\nb/c", True),
        ("text:a.c", "abc", False),
        ("text:x[!a-c]", "xd", True),
        ("text:x[!a-c]", "xB", False),
        ("text:", "", True),
        ("text:", "a", False),
        ("**/*.md", "../../c.md", False),
        ("**/*.md", "/etc/c.md", False),
        ("../*.md", "../c.md", True),
        ("**", "../anything", True),
        ("*.md", "a.md\nb", False),
        ("[abc].txt", "b.txt", True),
        ("[a-c].txt", "b.txt", True),
        ("[!a-c].txt", "b.txt", False),
        ("[!a-c].txt", "z.txt", True),
        ("x[!a]y", "x/y", False),
        ("[z-a]", "m", False),
        ("file?.txt", "file1.txt", True),
        ("a.b", "axb", False),
        ("a+b", "a+b", True),
    ],
)
def test_an_allow_rule_opens_only_for_paths_that_really_match(glob: str, path: str, is_met: bool) -> None:
    assert verdict([rule(glob=glob)], {"path": path}) == ("Allow" if is_met else "Deny")


@pytest.mark.promise("RULES-ARGUMENTS")
@pytest.mark.parametrize(
    "path",
    [
        "secrets/key", "./secrets/key", "a/../secrets/key", "secrets\\key", "secrets/" + "x/../" * 2000 + "key",
        "secrets/\0", ["secrets/key"], {"deep": "secrets/key"},
    ],
)  # fmt: skip
def test_a_deny_rule_closes_for_every_spelling_and_for_what_cannot_be_compared(path: JsonValue) -> None:
    assert verdict([rule(Effect.DENY, "secrets/**")], {"path": path}) == "Deny"


@pytest.mark.promise("RULES-ARGUMENTS")
@given(st.text("ab*", max_size=6), st.text("ab", max_size=8))
def test_a_text_is_matched_like_a_path_of_one_segment(glob: str, text: str) -> None:
    assert verdict([rule(glob=f"text:{glob}")], {"path": text}) == verdict([rule(glob=glob)], {"path": text})


@pytest.mark.promise("RULES-ARGUMENTS")
@pytest.mark.parametrize(("text", "is_met"), [("a;b/../../c", True), ("A;B", True), ("a/b", False)])
def test_a_deny_rule_about_text_sees_the_text_as_it_stands(text: str, is_met: bool) -> None:
    assert verdict([rule(Effect.DENY, "text:a;b**")], {"path": text}) == ("Deny" if is_met else "Allow")


@pytest.mark.promise("RULES-ARGUMENTS")
def test_a_deny_rule_sees_what_a_climbing_path_would_hide() -> None:
    assert verdict([rule(Effect.DENY, "**GAMMA**")], {"path": "project = GAMMA AND note = 'a/../..'"}) == "Deny"


@pytest.mark.promise("RULES-ARGUMENTS")
def test_a_deny_rule_with_a_wildcard_closes_for_paths_that_climb() -> None:
    assert verdict([rule(Effect.DENY, "**/*.env")], {"path": "../prod.env"}) == "Deny"
    assert verdict([rule(Effect.DENY, "**/*.env")], {"path": "/srv/prod.env"}) == "Deny"
    assert verdict([rule(Effect.DENY, "**/*.env")], {"path": "prod.txt"}) == "Allow"


@pytest.mark.promise("RULES-ARGUMENTS")
@pytest.mark.parametrize(
    ("effect", "paths", "answer"),
    [
        (Effect.ALLOW, ["tests/a", "tests/b"], "Allow"),
        (Effect.ALLOW, ["tests/a", "src/b"], "Deny"),
        (Effect.ALLOW, [], "Deny"),
        (Effect.DENY, ["src/a", "tests/b"], "Deny"),
        (Effect.DENY, ["src/a"], "Allow"),
        (Effect.ASK, ["src/a", "tests/b"], "Ask"),
    ],
)
def test_of_many_values_all_must_match_to_open_and_one_is_enough_to_close(
    effect: Effect, paths: list[str], answer: str
) -> None:
    files: list[JsonValue] = [{"path": path} for path in paths]
    assert verdict([rule(effect, "tests/**", "/files/*/path")], {"files": files}) == answer


@pytest.mark.promise("RULES-ARGUMENTS")
@pytest.mark.parametrize(("effect", "answer"), [(Effect.ALLOW, "Deny"), (Effect.DENY, "Allow"), (Effect.ASK, "Allow")])
def test_a_missing_argument_meets_no_condition(effect: Effect, answer: str) -> None:
    assert verdict([rule(effect, "**")], {}) == answer


@pytest.mark.promise("RULES-ARGUMENTS")
@pytest.mark.parametrize(
    ("pointer", "arguments", "glob"),
    [
        ("/force", {"force": True}, "true"),
        ("/count", {"count": 3}, "3"),
        ("/nothing", {"nothing": None}, "null"),
        ("/items/1", {"items": ["a", "b"]}, "b"),
        ("/a~1b/c~0d", {"a/b": {"c~d": "x"}}, "x"),
    ],
)
def test_a_condition_finds_any_scalar_by_its_pointer(pointer: str, arguments: dict[str, JsonValue], glob: str) -> None:
    assert verdict([rule(Effect.DENY, glob, pointer)], arguments) == "Deny"


@pytest.mark.promise("RULES-ORDER")
def test_a_rule_speaks_only_of_its_server_and_tools() -> None:
    denied = ToolRule(("delete_*",), Effect.DENY, server="github")
    assert isinstance(judge([denied], "github", "delete_repo", {}), Deny)
    assert isinstance(judge([denied], "gitlab", "delete_repo", {}), Allow)
    assert isinstance(judge([denied], "github", "get_repo", {}), Allow)


@pytest.mark.promise("G22")
@pytest.mark.parametrize("effect", [Effect.ASK, Effect.DENY])
def test_a_rule_that_leaves_out_what_only_reads_speaks_of_everything_else(effect: Effect) -> None:
    closed = [ToolRule(("*",), effect, unless_read_only=True)]
    assert isinstance(judge(closed, "github", "get_repo", {}), Ask | Deny)
    assert isinstance(judge(closed, "github", "get_repo", {}, read_only=True), Allow)
    always = ToolRule(("get_*",), Effect.DENY)
    assert isinstance(judge([*closed, always], "github", "get_repo", {}, read_only=True), Deny)


@pytest.mark.promise("RULES-ORDER")
@pytest.mark.parametrize(
    "make",
    [
        lambda: ToolRule(()),
        lambda: ToolRule(("",)),
        lambda: ToolRule(("a\n",)),
        lambda: ToolRule(("x" * 257,)),
        lambda: ToolRule(("t",), arguments={"path": ("x",)}),
        lambda: ToolRule(("t",), arguments={"/path": ()}),
        lambda: ToolRule(("t",), unless_read_only=True),
        lambda: ToolFilter(("",)),
        lambda: ToolFilter(None, (" a",)),
    ],
)
def test_a_rule_or_filter_that_could_never_match_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidFilter):
        make()


@pytest.mark.promise("RULES-ARGUMENTS")
@given(st.text(st.sampled_from("ab./\\"), max_size=20))
def test_whatever_the_path_an_allowed_one_lies_under_the_folder(path: str) -> None:
    if verdict([rule(glob="a/**")], {"path": path}) == "Allow":
        depth = 0
        parts = [part for part in path.replace("\\", "/").split("/") if part not in {"", "."}]
        for part in parts:
            depth += -1 if part == ".." else 1
            assert depth >= 0 or ".." in parts
        assert not path.replace("\\", "/").startswith("/")
        assert depth >= 1


@pytest.mark.promise("RULES-BOUNDED")
def test_a_glob_with_many_wildcards_answers_a_long_hostile_path_in_bounded_steps() -> None:
    hostile = "a/" * 2000 + "b"
    glob = "**/a/**/a/**/a/**/a/**/a/**/c"
    assert verdict([rule(glob=glob)], {"path": hostile}) == "Deny"


def test_a_double_star_inside_a_text_crosses_slashes() -> None:
    assert verdict([rule(glob="**GAMMA**")], {"path": "project = A/B and GAMMA / x"}) == "Allow"
    assert verdict([rule(glob="*GAMMA*")], {"path": "project = A/B and GAMMA"}) == "Deny"
