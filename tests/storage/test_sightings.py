"""What servers have shown, in files that several processes share."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from outfitter.errors import InvalidName, NotFound, StorageUnavailable
from outfitter.storage import ToolSightings


def test_the_first_listing_is_trusted_and_what_comes_later_waits_for_each_agent(tmp_path: Path) -> None:
    seen = ToolSightings(tmp_path / "seen")
    assert not seen.sift("x", "tester", ["a", "b"], ["a"])
    assert not seen.sift("x", "tester", ["a", "b"], ["a", "b"]), "it was there, though a rule kept it out"
    assert list(seen.sift("x", "tester", ["a", "b", "c"], ["a", "b", "c"])) == ["c"]
    assert not seen.sift("x", "lead", ["a", "b", "c"], ["a", "b", "c"]), "another agent, another first listing"
    assert not seen.sift("y", "tester", [], []), "an empty list is nobody's first"
    assert not seen.sift("y", "tester", ["d"], ["d"])
    assert [(one.server, one.agent, one.tool) for one in seen.waiting()] == [("x", "tester", "c")]


def test_an_approval_is_seen_by_others_who_hold_the_same_folder(tmp_path: Path) -> None:
    gateway, person = ToolSightings(tmp_path), ToolSightings(tmp_path)
    for tools in (["a"], ["a", "b", "c"]):
        gateway.sift("x", "tester", tools, tools)
    assert gateway.changed() == ()
    assert [one.tool for one in person.approve("x", ["b"])] == ["b"]
    assert (gateway.changed(), gateway.changed()) == (("x",), ()), "it is told once"
    assert list(gateway.sift("x", "tester", ["a", "b", "c"], ["a", "b", "c"])) == ["c"]
    assert [one.tool for one in person.approve("x")] == ["c"]
    assert person.waiting() == ()


def test_a_change_is_told_even_when_a_list_was_made_before_anybody_looked(tmp_path: Path) -> None:
    gateway, person = ToolSightings(tmp_path), ToolSightings(tmp_path)
    for tools in (["a"], ["a", "b"]):
        gateway.sift("x", "tester", tools, tools)
        gateway.sift("x", "lead", tools, tools)
    person.approve("x")
    assert not gateway.sift("x", "tester", ["a", "b"], ["a", "b"])
    assert gateway.changed() == ("x",), "the lists of the lead are old"


def test_approving_what_does_not_wait_names_what_does(tmp_path: Path) -> None:
    seen = ToolSightings(tmp_path)
    for tools in (["a"], ["a", "create_issue"]):
        seen.sift("x", "tester", tools, tools)
    with pytest.raises(NotFound, match="create_issu") as caught:
        seen.approve("x", ["create_issu"])
    assert "create_issue" in caught.value.hint
    with pytest.raises(NotFound, match="for agent 'lead'"):
        seen.approve("x", ["create_issue"], agent="lead")
    assert seen.approve("nothing") == ()


def test_only_the_owner_can_read_it_and_a_broken_file_hides_everything(tmp_path: Path) -> None:
    seen = ToolSightings(tmp_path / "seen")
    seen.sift("x", "tester", ["a"], ["a"])
    file = tmp_path / "seen" / "x.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_text("[")
    assert list(seen.sift("x", "tester", ["a", "b"], ["a"])) == ["a"]
    with pytest.raises(StorageUnavailable) as caught:
        seen.waiting()
    assert str(file) in str(caught.value)


def test_where_nothing_can_be_written_the_first_listing_holds_while_the_process_lives(tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("a file stands where the folder should be")
    seen = ToolSightings(tmp_path / "seen")
    assert not seen.sift("x", "tester", ["a"], ["a"])
    assert list(seen.sift("x", "tester", ["a", "b"], ["a", "b"])) == ["b"]


def test_a_name_that_no_server_can_have_leads_to_no_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidName):
        ToolSightings(tmp_path / "seen").approve("../elsewhere")
