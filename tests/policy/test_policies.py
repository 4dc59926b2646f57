"""Policies that hold for tools of our own and of MCP servers alike: sequences, reading before writing, rules, roles."""

from __future__ import annotations

import pytest

from outfitter.calls import Call, Done, Failed, Outcome, ToolResult
from outfitter.catalog import Effect, JsonValue, ToolRule
from outfitter.policy import (
    Allow,
    Ask,
    Deny,
    Facts,
    ReadBeforeWritePolicy,
    RolePolicy,
    RulePolicy,
    SequentialDependencyPolicy,
    ToolPolicy,
)

DONE = Done(ToolResult.ok("fine"))
FAILED = Failed(ToolResult.error("no"))
NOTHING: Facts = frozenset()


def _git(tool: str) -> Call:
    return Call(f"git_{tool}", tool, {}, "git")


def _file(tool: str, **arguments: JsonValue) -> Call:
    return Call(tool, tool, arguments)


@pytest.mark.promise("POLICY-SEQUENCE")
@pytest.mark.parametrize(("tool", "first"), [("git_commit", "git_diff"), ("commit", "diff"), ("commit", "git_diff")])
def test_a_tool_waits_until_what_it_depends_on_has_succeeded(tool: str, first: str) -> None:
    policy = SequentialDependencyPolicy({tool: {first}})
    denied = policy.check(_git("commit"), NOTHING)
    assert isinstance(denied, Deny)
    assert repr(first) in denied.reason
    failed = policy.on_result(_git("diff"), FAILED, NOTHING)
    assert isinstance(policy.check(_git("commit"), failed), Deny)
    done = policy.on_result(_git("diff"), DONE, failed)
    assert isinstance(policy.check(_git("commit"), done), Allow)


def test_all_dependencies_must_have_succeeded_and_other_tools_are_free() -> None:
    policy = SequentialDependencyPolicy({"c": {"a", "b"}})
    facts = policy.on_result(_file("a"), DONE, NOTHING)
    denied = policy.check(_file("c"), facts)
    assert isinstance(denied, Deny)
    assert "'b'" in denied.reason
    assert "'a'" not in denied.reason
    assert isinstance(policy.check(_file("d"), NOTHING), Allow)


@pytest.mark.promise("POLICY-SEQUENCE")
def test_a_tool_of_the_same_own_name_at_another_server_does_not_count() -> None:
    policy = SequentialDependencyPolicy({"commit": {"diff"}})
    elsewhere = policy.on_result(Call("other_diff", "diff", {}, "other"), DONE, NOTHING)
    assert isinstance(policy.check(_git("commit"), elsewhere), Deny)


@pytest.mark.promise("POLICY-READ-FIRST")
def test_a_path_is_written_only_after_it_was_read() -> None:
    policy = ReadBeforeWritePolicy()
    write = _file("write_file", path="src/./a.py")
    denied = policy.check(write, NOTHING)
    assert isinstance(denied, Deny)
    assert "read 'src/a.py'" in denied.reason
    unread = policy.on_result(_file("read_file", path="src/a.py"), FAILED, NOTHING)
    assert isinstance(policy.check(write, unread), Deny)
    known = policy.on_result(_file("read_file", path="src/b/../a.py"), DONE, NOTHING)
    assert isinstance(policy.check(write, known), Allow)
    assert isinstance(policy.check(_file("write_file", path="src/b.py"), known), Deny)


def test_what_was_written_is_known_and_several_paths_are_checked_each() -> None:
    policy = ReadBeforeWritePolicy(write_tools={"write_all"}, read_tools={"read_all"}, path_arguments=("paths",))
    known = policy.on_result(_file("read_all", paths=["a", "b"]), DONE, NOTHING)
    assert isinstance(policy.check(_file("write_all", paths=["a", "b"]), known), Allow)
    assert isinstance(policy.check(_file("write_all", paths=["a", "c"]), known), Deny)
    more = policy.on_result(_file("write_all", paths=["c"]), DONE, known)
    assert isinstance(policy.check(_file("write_all", paths=["a", "c"]), more), Allow)


@pytest.mark.parametrize("arguments", [{}, {"path": 3}, {"path": []}, {"other": "a"}])
def test_a_write_that_names_no_path_is_denied(arguments: dict[str, JsonValue]) -> None:
    assert isinstance(ReadBeforeWritePolicy().check(_file("write_file", **arguments), NOTHING), Deny)


def test_new_files_may_be_written_and_other_tools_are_free() -> None:
    policy = ReadBeforeWritePolicy(exists=lambda path: path == "old")
    assert isinstance(policy.check(_file("write_file", path="new"), NOTHING), Allow)
    assert isinstance(policy.check(_file("write_file", path="old"), NOTHING), Deny)
    assert isinstance(policy.check(_file("delete_file", path="old"), NOTHING), Allow)


@pytest.mark.promise("POLICY-RULES")
def test_rules_speak_of_paths_by_globs_and_of_any_place_by_pointers() -> None:
    policy = RulePolicy(
        [
            ToolRule(("write_*",), arguments={"/path": ("docs/**",)}),
            ToolRule(("*",), Effect.DENY, arguments={"/items/*/kind": ("secret",)}),
            ToolRule(("deploy",), Effect.ASK, server="native"),
        ]
    )

    def answer(call: Call) -> type:
        return type(policy.check(call, NOTHING))

    assert answer(_file("write_file", path="docs/a.md")) is Allow
    assert answer(_file("write_file", path="docs/../src/a.py")) is Deny
    assert answer(_file("send", items=[{"kind": "plain"}, {"kind": "secret"}])) is Deny
    assert answer(_file("deploy")) is Ask
    assert answer(Call("ops_deploy", "deploy", {}, "ops")) is Allow
    assert policy.on_result(_file("deploy"), DONE, NOTHING) == NOTHING


def test_a_rule_holds_under_either_name_of_a_tool() -> None:
    for name in ("fs_write", "write"):
        policy = RulePolicy([ToolRule((name,), Effect.DENY)])
        assert isinstance(policy.check(Call("fs_write", "write", {}, "fs"), NOTHING), Deny)


@pytest.mark.promise("POLICY-RULES")
def test_a_role_has_its_own_rules_and_an_unknown_role_may_call_nothing() -> None:
    rules = {"scribe": [ToolRule(("write_file",), arguments={"/path": ("docs/**",)})], "lead": []}
    write = _file("write_file", path="src/a.py")
    assert isinstance(RolePolicy("scribe", rules).check(write, NOTHING), Deny)
    assert isinstance(RolePolicy("lead", rules).check(write, NOTHING), Allow)
    denied = RolePolicy("stranger", rules).check(write, NOTHING)
    assert isinstance(denied, Deny)
    assert "stranger" in denied.reason
    assert RolePolicy("lead", rules).on_result(write, DONE, NOTHING) == NOTHING


def test_the_policies_of_the_house_and_any_class_of_the_same_form_are_policies() -> None:
    class Own:
        name = "own"

        def check(self, call: Call, facts: Facts) -> Allow | Deny:
            return Deny("known") if call.name in facts else Allow()

        def on_result(self, call: Call, outcome: Outcome, facts: Facts) -> Facts:
            return facts | {call.name} if isinstance(outcome, Done) else facts

    own: ToolPolicy = Own()
    for policy in (own, RulePolicy([]), RolePolicy("x"), ReadBeforeWritePolicy(), SequentialDependencyPolicy({})):
        assert isinstance(policy, ToolPolicy)
