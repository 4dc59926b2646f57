"""A call that a policy asks about waits for the session's approver, whoever makes the call."""

from __future__ import annotations

import pytest

from outfitter.catalog import Effect, ToolRule
from outfitter.policy import RulePolicy, Verdict, Wish
from outfitter.session import Session
from outfitter.testing import ModelSays, model_calls
from tests.adapters.candidates import CLAUDE, COPILOT, RESPONSES
from tests.adapters.kit import Candidate, Play, prompt_of, scripted


@pytest.mark.anyio
@pytest.mark.promise("APPROVAL-LIBRARY")
@pytest.mark.parametrize(
    ("candidate", "shown", "options"),
    [
        (RESPONSES, "demo_echo", {}),
        (CLAUDE, "mcp__demo__echo", {"route": "native"}),
        (COPILOT, "demo-echo", {"route": "native"}),
    ],
    ids=["ours", "claude", "copilot"],
)
async def test_the_approver_of_the_session_is_asked_by_every_adapter(
    candidate: Candidate, shown: str, options: dict[str, str]
) -> None:
    async def approve(wish: Wish) -> Verdict:
        return Verdict(is_yes=wish.arguments["text"] == "yes", by="alice")

    policy = RulePolicy([ToolRule(("echo",), Effect.ASK, reason="it talks")])
    prompt = prompt_of(mcps=[scripted("demo", "echo")], policies=[policy])
    turns = (model_calls(shown, {"text": "yes"}), model_calls(shown, {"text": "no"}), ModelSays("done"))
    played = await Play(candidate, turns, Session(approver=approve), options=dict(options)).of(prompt)
    assert [(event.name, event.decision, event.result.code) for event in played.events] == [
        ("demo_echo", "approved by alice", ""),
        ("demo_echo", "ask", "denied"),
    ]
    allowed, refused = played.requests[-1].answers
    assert "yes" in allowed
    assert "refused by alice" in refused
