"""What executes an agent's runs, as it is written: read, written back, and refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from outfitter.basics import SecretRef
from outfitter.catalog import Executor
from outfitter.errors import OutfitterError
from outfitter.formats import Syntax, read_agent, read_document, write_agent

FULL: dict[str, Any] = {
    "type": "command",
    "model": "m",
    "command": "bin/work",
    "args": ["--all", "two words"],
    "env": {"A": "1", "B": "${B}", "C": {"$secret": "env:C"}},
    "timeout": 12.5,
    "recover": True,
    "concurrency": 3,
}


def read(executor: object) -> Executor | None:
    return read_agent({"name": "a", "executor": executor}, "a", "a.json").executor


@pytest.mark.parametrize("executor", [FULL, {"type": "claude-code"}, {"type": "openai", "model": "gpt"}])
def test_an_executor_is_written_as_it_was_read(executor: dict[str, Any]) -> None:
    agent = read_agent({"name": "a", "executor": executor}, "a", "a.json")
    assert write_agent(agent) == {"name": "a", "executor": executor}
    assert read_agent(write_agent(agent), "a", "a.json") == agent


def test_every_field_is_read() -> None:
    found = read(FULL)
    assert found is not None
    assert found == Executor(
        "command",
        model="m",
        command="bin/work",
        args=("--all", "two words"),
        env={"A": "1", "B": "${B}", "C": SecretRef.parse("env:C")},
        timeout=12.5,
        recover=True,
        concurrency=3,
    )
    assert found.is_approved
    assert "${B}" not in repr(found)
    assert read(None) is None


@pytest.mark.parametrize(
    ("executor", "place"),
    [
        ("[]", "/executor"),
        ("{}", "/executor"),
        ('{"type": "magic"}', "/executor/type"),
        ('{"type": "command"}', "/executor"),
        ('{"type": "command", "command": "a; b"}', "/executor/command"),
        ('{"type": "copilot", "command": "x"}', "/executor/command"),
        ('{"type": "openai", "timeout": -1}', "/executor/timeout"),
        ('{"type": "openai", "timeout": "9"}', "/executor/timeout"),
        ('{"type": "openai", "concurrency": true}', "/executor/concurrency"),
        ('{"type": "openai", "env": {"A-B": "1"}}', "/executor/env"),
        ('{"type": "openai", "env": {"A": []}}', "/executor/env/A"),
        ('{"type": "openai", "shell": true}', "/executor/shell"),
    ],
)
def test_a_bad_executor_is_refused_with_its_line_and_place(executor: str, place: str) -> None:
    text = f'{{"name": "a",\n\n "executor": {executor}}}'
    with pytest.raises(OutfitterError) as refused:
        read_document(text, "a.json", Syntax.JSON, lambda value: read_agent(value, "a", "a.json"))
    assert f"a.json:3 at {place}" in refused.value.where
