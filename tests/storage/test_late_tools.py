"""Which tools each agent was shown, and which came later, in a file that several processes share."""

from __future__ import annotations

from pathlib import Path

import pytest

from outfitter.errors import NotFound
from outfitter.storage import PinBook


def test_the_first_listing_is_trusted_and_what_comes_later_waits_for_each_agent(tmp_path: Path) -> None:
    seen = PinBook.at(tmp_path / "seen.db")
    assert not seen.sift("x", "tester", ["a", "b"], ["a"])
    assert not seen.sift("x", "tester", ["a", "b"], ["a", "b"]), "it was there, though a rule kept it out"
    assert list(seen.sift("x", "tester", ["a", "b", "c"], ["a", "b", "c"])) == ["c"]
    assert not seen.sift("x", "lead", ["a", "b", "c"], ["a", "b", "c"]), "another agent, another first listing"
    assert not seen.sift("y", "tester", [], []), "an empty list is nobody's first"
    assert not seen.sift("y", "tester", ["d"], ["d"])
    assert [(one.server, one.agent, one.tool) for one in seen.late.waiting()] == [("x", "tester", "c")]


def test_an_approval_is_seen_by_others_who_hold_the_same_file(tmp_path: Path) -> None:
    gateway, person = PinBook.at(tmp_path / "seen.db"), PinBook.at(tmp_path / "seen.db")
    for tools in (["a"], ["a", "b", "c"]):
        gateway.sift("x", "tester", tools, tools)
    assert gateway.changed() == ()
    assert [one.tool for one in person.late.approve("x", ["b"])] == ["b"]
    assert (gateway.changed(), gateway.changed()) == (("x",), ()), "it is told once"
    assert list(gateway.sift("x", "tester", ["a", "b", "c"], ["a", "b", "c"])) == ["c"]
    assert [one.tool for one in person.late.approve("x")] == ["c"]
    assert person.late.waiting() == ()


def test_a_change_is_told_even_when_a_list_was_made_before_anybody_looked(tmp_path: Path) -> None:
    gateway, person = PinBook.at(tmp_path / "seen.db"), PinBook.at(tmp_path / "seen.db")
    for tools in (["a"], ["a", "b"]):
        gateway.sift("x", "tester", tools, tools)
        gateway.sift("x", "lead", tools, tools)
    person.late.approve("x")
    assert not gateway.sift("x", "tester", ["a", "b"], ["a", "b"])
    assert gateway.changed() == ("x",), "the lists of the lead are old"


def test_approving_what_does_not_wait_names_what_does(tmp_path: Path) -> None:
    seen = PinBook.at(tmp_path / "seen.db")
    for tools in (["a"], ["a", "create_issue"]):
        seen.sift("x", "tester", tools, tools)
    with pytest.raises(NotFound, match="create_issu") as caught:
        seen.late.approve("x", ["create_issu"])
    assert "create_issue" in caught.value.hint
    with pytest.raises(NotFound, match="for agent 'lead'"):
        seen.late.approve("x", ["create_issue"], agent="lead")
    assert seen.late.approve("nothing") == ()
