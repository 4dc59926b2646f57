"""The kit with the Claude Agent SDK, by what each test shows: a run of the real program takes seconds.

Servers are bridged here; ``test_claude_routes`` has the other ways. Where Claude Code has its own manner (the order of
tools, the form of an answer, what it does about an answer that was cut), ``test_claude`` says what holds instead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.adapters import test_calls, test_ending, test_servers
from tests.adapters.candidates import CLAUDE
from tests.adapters.kit import Candidate

KIT: tuple[Callable[[Candidate], Awaitable[None]], ...] = (
    test_calls.test_every_call_leaves_its_event_and_its_result_reaches_the_model,
    test_calls.test_a_policy_refuses_a_call_and_the_model_is_told_why,
    test_calls.test_a_failed_call_leaves_the_session_as_it_was,
    test_calls.test_a_server_that_dies_in_a_call_does_not_end_the_evaluation,
    test_calls.test_the_calls_of_one_turn_are_made_at_the_same_time,
    test_ending.test_nothing_is_begun_when_the_tokens_are_spent,
    test_ending.test_a_model_that_does_not_answer_is_waited_for_until_the_deadline,
    test_ending.test_after_the_deadline_nothing_is_started_and_nothing_asked,
    test_ending.test_a_model_that_goes_on_calling_is_stopped,
    test_ending.test_cancelling_cancels_the_calls_and_lets_the_servers_go,
    test_ending.test_servers_are_let_go_when_the_provider_fails,
    test_servers.test_two_tools_of_one_name_are_refused_before_the_model_is_asked,
    test_servers.test_a_server_that_does_not_start_is_waited_for_until_the_deadline,
    test_servers.test_the_model_hears_that_the_server_of_an_opened_section_is_dead,
    test_servers.test_a_required_server_of_an_opened_section_must_be_there,
)


@pytest.mark.anyio
@pytest.mark.promise("CLAUDE-KIT")
@pytest.mark.parametrize("test", KIT, ids=lambda test: test.__name__)
async def test_the_kit_holds(test: Callable[[Candidate], Awaitable[None]]) -> None:
    await test(CLAUDE)
