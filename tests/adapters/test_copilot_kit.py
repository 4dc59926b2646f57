"""The kit with the real program of Copilot, by what each test shows: a run takes seconds.

Servers are bridged here; ``test_copilot_routes`` has the other ways. Where Copilot has its own manner (what it does
about an answer that was cut, arguments that are no JSON, a tool that is not there), its own words hold.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.adapters import test_calls, test_ending, test_output, test_servers
from tests.adapters.candidates import COPILOT
from tests.adapters.kit import Candidate

KIT: tuple[Callable[[Candidate], Awaitable[None]], ...] = (
    test_calls.test_the_model_is_offered_the_prompt_s_tools_and_those_of_its_servers,
    test_calls.test_every_call_leaves_its_event_and_its_result_reaches_the_model,
    test_calls.test_a_policy_refuses_a_call_and_the_model_is_told_why,
    test_calls.test_a_failed_call_leaves_the_session_as_it_was,
    test_calls.test_the_calls_of_one_turn_are_made_at_the_same_time,
    test_ending.test_a_spent_budget_of_calls_is_told_to_the_model_which_may_still_answer,
    test_ending.test_nothing_is_begun_when_the_tokens_are_spent,
    test_ending.test_a_model_that_does_not_answer_is_waited_for_until_the_deadline,
    test_ending.test_after_the_deadline_nothing_is_started_and_nothing_asked,
    test_ending.test_a_model_that_goes_on_calling_is_stopped,
    test_ending.test_cancelling_cancels_the_calls_and_lets_the_servers_go,
    test_ending.test_servers_are_let_go_when_the_provider_fails,
    test_output.test_an_answer_becomes_the_value_that_the_prompt_asks_for,
    test_output.test_an_answer_that_does_not_fit_is_mended_once,
    test_servers.test_two_tools_of_one_name_are_refused_before_the_model_is_asked,
    test_servers.test_a_prompt_whose_only_server_is_dead_is_evaluated_without_it_and_says_so,
    test_servers.test_a_prompt_whose_required_server_is_dead_is_not_evaluated,
    test_servers.test_an_opened_section_is_shown_whole_and_its_tools_are_there_in_the_next_turn,
    test_servers.test_a_required_server_of_an_opened_section_must_be_there,
)


@pytest.mark.anyio
@pytest.mark.promise("COPILOT-KIT")
@pytest.mark.parametrize("test", KIT, ids=lambda test: test.__name__)
async def test_the_kit_holds(test: Callable[[Candidate], Awaitable[None]]) -> None:
    await test(COPILOT)
