"""A ``.squad`` folder in each of its shapes: right answers or a clear note, never an exception."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from outfitter.errors import NotFound
from outfitter.squad import SquadFolder, TeamState
from tests.squad.folders import (
    branch_folder,
    broken_folder,
    commit_state,
    empty_folder,
    git,
    large_folder,
    new_files,
    new_folder,
    old_folder,
    repository,
    write,
)

pytestmark = pytest.mark.anyio


def team_of(root: Path) -> SquadFolder:
    return SquadFolder.find(root)


@pytest.mark.promise("SQUAD-FOLDERS")
@pytest.mark.parametrize(
    "make", [new_folder, old_folder, branch_folder, broken_folder, empty_folder, partial(large_folder, decisions=200)]
)
async def test_every_shape_of_a_folder_answers_every_question(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    make(tmp_path)
    team: TeamState = team_of(tmp_path)
    members = (await team.roster()).value
    for member in members:
        assert (await team.status(member.id)).value.id == member.id
        assert isinstance((await team.history(member.id)).value, tuple)
    decisions = (await team.decisions()).value
    assert len({decision.id for decision in decisions}) == len(decisions)
    assert (await team.backlog()).value.source == "files"
    assert (await team.metrics()).value.source == "orchestration-log"
    assert (await team.search("decision")).notes is not None


@pytest.mark.promise("SQUAD-FOLDERS")
async def test_the_roster_has_coordinator_members_and_coding_agent_but_nobody_who_left(tmp_path: Path) -> None:
    new_folder(tmp_path)
    told = await team_of(tmp_path).roster()
    by_id = {member.id: member for member in told.value}
    assert list(by_id) == ["squad", "flight", "eecom", "fact-checker", "scribe", "ralph", "copilot"]
    assert [by_id[name].kind for name in ("squad", "flight", "copilot")] == ["coordinator", "member", "coding_agent"]
    assert [by_id[name].status for name in ("flight", "scribe", "ralph")] == ["active", "silent", "monitor"]
    assert by_id["eecom"].expertise == "Backend Dev things"
    assert by_id["eecom"].model == "claude-opus"
    assert by_id["eecom"].notes == "formerly Fenster"
    assert by_id["flight"].charter == "agents/flight/charter.md"
    assert by_id["ralph"].charter == ""
    assert told.notes == ()


async def test_a_member_that_the_registry_retired_is_left_out_with_a_note(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    write(folder, {"casting/registry.json": json.dumps({"agents": {"eecom": {"status": "retired"}}})})
    told = await team_of(tmp_path).roster()
    assert "eecom" not in [member.id for member in told.value]
    assert any("eecom" in note and "retired" in note for note in told.notes)


async def test_a_charter_that_nobody_lists_is_a_note(tmp_path: Path) -> None:
    write(new_folder(tmp_path), {"agents/Rai/charter.md": "# Rai — Reviewer\n"})
    told = await team_of(tmp_path).roster()
    assert "rai" not in [member.id for member in told.value]
    assert any("agents/Rai" in note for note in told.notes)


@pytest.mark.promise("SQUAD-FOLDERS")
async def test_the_old_layout_is_read_with_its_headings_and_its_flat_registry(tmp_path: Path) -> None:
    old_folder(tmp_path)
    team = team_of(tmp_path)
    told = await team.roster()
    assert [(m.id, m.role, m.status) for m in told.value] == [("keaton", "Lead", "active"), ("mcmanus", "Backend", "")]
    assert told.value[0].expertise == "planning"
    assert told.value[0].model == "gpt-5"
    assert any(".ai-team" in note for note in told.notes)
    decisions = (await team.decisions()).value
    assert [(d.title, d.date, d.dated_by) for d in decisions] == [
        ("Tabs, not spaces.", "2026-02-14", "file_name"),
        ("Extension naming", "2026-02-13", "field"),
        ("Keep one ledger", "", None),
    ]
    assert decisions[0].author == "keaton"
    assert "### Decision" in decisions[1].text


@pytest.mark.promise("SQUAD-FOLDERS")
async def test_a_broken_team_file_falls_back_to_registry_and_charters_and_says_so(tmp_path: Path) -> None:
    broken_folder(tmp_path)
    team = team_of(tmp_path)
    told = await team.roster()
    assert [member.id for member in told.value] == ["flight", "eecom"]
    notes = "\n".join(told.notes)
    assert "team.md: it is not a text" in notes
    assert "team.md names nobody" in notes
    assert "config.json" in notes
    assert "not UTF-8" in notes
    decisions = await team.decisions()
    assert decisions.value == ()
    assert any("none of its 2 headings" in note for note in decisions.notes)
    assert any("binary.md" in note for note in decisions.notes)


async def test_an_empty_folder_says_what_is_missing(tmp_path: Path) -> None:
    empty_folder(tmp_path)
    team = team_of(tmp_path)
    assert (await team.roster()).notes == ("there is no team.md",)
    assert (await team.decisions()).value == ()
    assert (await team.backlog()).notes == ("there is no identity/now.md",)
    with pytest.raises(NotFound):
        await team.status("flight")


# ── decisions ──


async def test_decisions_come_newest_first_and_prose_headings_are_none(tmp_path: Path) -> None:
    new_folder(tmp_path)
    decisions = (await team_of(tmp_path).decisions()).value
    assert [(d.title, d.date, d.is_pending) for d in decisions] == [
        ("Ship the squad server", "2026-03-05T08:00:00Z", True),
        ("Extract inline scripts", "2026-03-04", True),
        ("Tokens are hashed", "2026-03-02T10:15:00Z", False),
        ("Use PostgreSQL for the registry", "2026-02-20", False),
        ("Type safety is not negotiable", "", False),
    ]
    assert decisions[2].author == "EECOM (Backend Dev)"
    assert "# not a heading" in decisions[2].text
    assert not any(d.is_archived for d in decisions)


async def test_a_file_that_was_merged_whole_is_one_decision_with_its_sections(tmp_path: Path) -> None:
    ledger = (
        "# Decisions\n\n### Shell first\n**By:** Brady\n\n### Root Cause\n\n**Fix 1** is prose\n\n---\n\n"
        "# Decision: Triage plan\n\n**By:** Flight  \n**Date:** 2026-03-25\n\n## Context\n\nx\n\n### Quick wins\n\n"
        "- **#610** (docs) first\n\n---\n\n### 2026-03-26: Guard\n**By:** Booster (CI/CD)\n**What:** a canary\n"
    )
    write(tmp_path / ".squad", {"decisions.md": ledger})
    decisions = (await team_of(tmp_path).decisions()).value
    assert [(d.title, d.author) for d in decisions] == [
        ("Guard", "Booster (CI/CD)"), ("Triage plan", "Flight"), ("Shell first", "Brady"),
    ]  # fmt: skip
    assert "### Quick wins" in decisions[1].text
    assert decisions[1].text.endswith("first")


async def test_latest_is_a_limit(tmp_path: Path) -> None:
    new_folder(tmp_path)
    team = team_of(tmp_path)
    assert (await team.decisions(2)).value == (await team.decisions()).value[:2]
    assert (await team.decisions(0)).value == ()


async def test_without_a_date_git_tells_when_the_line_or_the_file_was_written(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    write(folder, {"decisions/inbox/flight-undated.md": "# Keep it small\n\n**What:** small files\n"})
    repository(tmp_path)
    told = await team_of(tmp_path).decisions()
    dated = {d.title: (d.date, d.dated_by) for d in told.value}
    assert dated["Type safety is not negotiable"] == ("2026-01-02T03:04:05Z", "git")
    assert dated["Keep it small"] == ("2026-01-02T03:04:05Z", "git")
    assert any("without a date of their own: 2" in note for note in told.notes)


async def test_what_is_not_committed_yet_has_the_time_of_the_file(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    repository(tmp_path)
    with (folder / "decisions.md").open("a") as file:
        file.write("\n### Written just now\n\n**By:** Flight\n")
    newest = (await team_of(tmp_path).decisions()).value[0]
    assert (newest.title, newest.dated_by) == ("Written just now", "file_time")


async def test_git_runs_no_program_that_the_repository_names(tmp_path: Path) -> None:
    folder = branch_folder(tmp_path / "project")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\ncat\n")
    program.chmod(0o700)
    with (tmp_path / "project/.git/config").open("a") as file:
        file.write(
            f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n\teditor = {program}\n"
            f'[diff "evil"]\n\ttextconv = {program}\n\tcommand = {program}\n[diff]\n\texternal = {program}\n'
            f'[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n'
            f"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {program}\n[alias]\n\tblame = !{program}\n"
        )
    write(
        tmp_path / "project",
        {".gitattributes": "*.md diff=evil filter=evil\n", ".squad/decisions.md": "### A\n**By:** a\n"},
    )
    for config in ('{"stateBackend": "orphan"}', '{"stateBackend": "local"}'):
        write(folder, {"config.json": config, "decisions/inbox/flight-a.md": "# B\n\n**What:** b\n"})
        assert (await team_of(tmp_path / "project").decisions()).value
    assert not (tmp_path / "was-run").exists()


async def test_without_git_the_time_of_the_file_stands_in_when_no_decision_of_it_has_a_date(tmp_path: Path) -> None:
    write(tmp_path / ".squad", {"decisions.md": "### One\n**By:** a\n\n### Two\n**By:** b\n"})
    told = await team_of(tmp_path).decisions()
    assert [(d.title, d.dated_by) for d in told.value] == [("Two", "file_time"), ("One", "file_time")]


async def test_a_date_that_is_none_is_not_taken_for_one(tmp_path: Path) -> None:
    write(tmp_path / ".squad", {"decisions.md": "### 2026-13-45: Odd\n**By:** a\n\n### 2026-01-01: Even\n"})
    told = await team_of(tmp_path).decisions()
    assert [(d.title, d.date) for d in told.value] == [("Even", "2026-01-01"), ("2026-13-45: Odd", "")]


async def test_ids_stay_the_same_when_others_are_written_and_when_a_pending_one_is_merged(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    team = team_of(tmp_path)
    before = {d.title: d.id for d in (await team.decisions()).value}
    ledger = (folder / "decisions.md").read_text()
    merged = (folder / "decisions/inbox/flight-squad-server.md").read_text()
    (folder / "decisions/inbox/flight-squad-server.md").unlink()
    write(folder, {"decisions.md": f"{ledger}\n### 2026-09-09: Another\n\n**By:** x\n\n{merged}"})
    now = (await team.decisions()).value
    after = {d.title: d.id for d in now}
    assert {title: after[title] for title in before} == before
    assert [d.is_pending for d in now if d.title == "Ship the squad server"] == [False]


async def test_equal_decisions_have_different_ids(tmp_path: Path) -> None:
    write(tmp_path / ".squad", {"decisions.md": "### 2026-01-01: Same\n**By:** a\n\n" * 3})
    ids = [d.id for d in (await team_of(tmp_path).decisions()).value]
    assert len(ids) == len(set(ids)) == 3


async def test_an_inbox_file_with_several_dated_headings_holds_several_decisions(tmp_path: Path) -> None:
    text = "# Inbox\n\n### 2026-01-01: One\n\n**By:** a\n\n### 2026-01-02: Two\n\n**By:** b\n"
    write(tmp_path / ".squad", {"decisions/inbox/a-many.md": text})
    assert [d.title for d in (await team_of(tmp_path).decisions()).value] == ["Two", "One"]


# ── history, status, metrics, backlog ──


async def test_history_is_newest_first_and_capped(tmp_path: Path) -> None:
    new_folder(tmp_path)
    team = team_of(tmp_path)
    told = await team.history("eecom")
    assert [(e.section, e.date) for e in told.value] == [
        ("Learnings", "2026-03-04"), ("Learnings", "2026-03-01"), ("Patterns", "2026-02-22"), ("Patterns", ""),
        ("Project Context", ""),
    ]  # fmt: skip
    capped = await team.history("EECOM", limit=1)
    assert capped.value == told.value[:1]
    assert "the newest 1 of 5 entries are shown" in capped.notes
    assert (await team.history("flight")).notes == ("'flight' has no history yet",)


async def test_status_is_the_newest_entry_of_the_log_in_either_style(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    team = team_of(tmp_path)
    status = (await team.status("eecom")).value
    assert status.status == "active"
    assert status.last_task == "Rework the dispatcher"
    assert status.last_outcome == "Merged; issue closed."
    assert status.last_seen == "2026-03-06T19:42:25-07:00"
    (folder / status.source).unlink()
    status = (await team.status("eecom")).value
    assert (status.last_task, status.last_outcome) == ("Implement the pool", "Completed")


async def test_metrics_add_up_tokens_and_dollars_and_say_who_told_none(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    entry = "| **Agent routed** | Fact Checker (QA) |\n| **Token usage** | 1,000 in / 20 out — $1,000.5 |\n"
    write(folder, {"orchestration-log/2026-01-01T00-00-00Z-fact-checker.md": entry})
    told = await team_of(tmp_path).metrics()
    usage = {one.agent: one for one in told.value.usage}
    assert (usage["eecom"].tasks, usage["eecom"].input_tokens, usage["eecom"].output_tokens) == (2, 12450, 3200)
    assert usage["eecom"].cost == pytest.approx(0.0234)
    assert (usage["fact-checker"].input_tokens, usage["fact-checker"].cost) == (1000, 1000.5)
    assert told.value.since == "2026-01-01T00:00:00Z"
    assert told.notes == ("1 of 3 entries of the orchestration log tell no tokens",)


async def test_the_backlog_of_the_files_has_issues_steps_and_triage_but_not_what_is_done(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    table = "| Issue | Title | Assigned To |\n|---|---|---|\n| #7 | Slow start | Flight |\n"
    write(folder, {"triage/table.md": table, "triage/closed.md": "---\nstatus: resolved\n---\n# Old\n"})
    backlog = (await team_of(tmp_path).backlog()).value
    assert backlog.source == "files"
    assert [(item.id, item.assignee) for item in backlog.items] == [
        ("#101", ""), ("#102", "eecom"), ("#1245", ""), ("now-expand-the-tests", ""),
        ("triage-tr-0047-codes", "flight"), ("#7", "flight"),
    ]  # fmt: skip


# ── state on a branch ──


@pytest.mark.promise("SQUAD-BRANCH")
@pytest.mark.parametrize("backend", ["orphan", "two-layer", "git-notes"])
async def test_what_changes_is_read_from_the_branch_and_never_from_the_copy(tmp_path: Path, backend: str) -> None:
    branch_folder(tmp_path, backend)
    team = team_of(tmp_path)
    decisions = await team.decisions()
    assert "Tokens are hashed" in [d.title for d in decisions.value]
    assert "An old copy" not in [d.title for d in decisions.value]
    assert next(d.date for d in decisions.value if d.title.startswith("Type safety")) == "2026-01-05T00:00:00Z"
    assert len((await team.history("eecom")).value) == 5
    assert (await team.metrics()).value.usage[0].input_tokens == 12450
    assert [item.id for item in (await team.backlog()).value.items][:2] == ["#101", "#102"]
    commit_state(tmp_path, {"decisions.md": "### 2026-05-05: Only this\n\n**By:** a\n"})
    assert [d.title for d in (await team.decisions()).value] == ["Only this"]


@pytest.mark.promise("SQUAD-BRANCH")
async def test_without_the_branch_the_copy_is_used_and_called_old(tmp_path: Path) -> None:
    branch_folder(tmp_path)
    git(tmp_path, "update-ref", "-d", "refs/heads/squad-state")
    told = await team_of(tmp_path).decisions()
    assert [d.title for d in told.value] == ["An old copy"]
    assert any("squad-state" in note and "may be old" in note for note in told.notes)


@pytest.mark.promise("SQUAD-BRANCH")
async def test_without_a_repository_or_git_the_copy_is_used_and_called_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / ".squad", {**new_files(), "config.json": '{"version": 1, "stateBackend": "orphan"}'})
    assert any("may be old" in note for note in (await team_of(tmp_path).decisions()).notes)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = await team_of(tmp_path).decisions()
    assert len(told.value) == 5
    assert any("may be old" in note for note in told.notes)


async def test_a_branch_that_only_the_remote_has_is_read_with_a_note(tmp_path: Path) -> None:
    branch_folder(tmp_path)
    git(tmp_path, "update-ref", "refs/remotes/origin/squad-state", "refs/heads/squad-state")
    git(tmp_path, "update-ref", "-d", "refs/heads/squad-state")
    told = await team_of(tmp_path).decisions()
    assert "Tokens are hashed" in [d.title for d in told.value]
    assert any("origin/squad-state" in note for note in told.notes)
