"""The files of a team: names that lead elsewhere, links, sizes, encodings; what is unchanged is not read again."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outfitter.errors import Invalid, NotFound
from outfitter.squad import SquadFolder
from tests.squad.folders import CHARTER, TEAM, branch_folder, commit_state, files_opened, new_folder, write

ESCAPES = [
    "..", "../../x", "agents/../../x", "%2e%2e", "%2e%2e%2f%2e%2e%2fx", "a/b", "a\\b", "a\0b", "\0", "", "~root",
    "\udcc0\udcae\udcc0\udcae", "\ufffd\ufffd", "\xc0\xae\xc0\xae/x", ".", "a\nb", "a\tb", "_alumni", "x" * 65, "C:x",
]  # fmt: skip


@pytest.mark.promise("O01")
@pytest.mark.anyio
@pytest.mark.parametrize("name", ESCAPES, ids=ascii)
async def test_a_name_that_could_lead_elsewhere_is_refused_before_any_read(tmp_path: Path, name: str) -> None:
    new_folder(tmp_path / "project")
    write(tmp_path, {"x/history.md": "### 2026-01-01: secret\n", "history.md": "### secret\n"})
    team = SquadFolder.find(tmp_path / "project")
    with files_opened(tmp_path) as opened:
        with pytest.raises(Invalid):
            await team.history(name)
        with pytest.raises(Invalid):
            await team.status(name)
    assert opened == []


@pytest.mark.promise("O01")
@pytest.mark.anyio
async def test_somebody_unknown_or_retired_is_not_found_and_no_file_of_theirs_is_opened(tmp_path: Path) -> None:
    new_folder(tmp_path)
    write(tmp_path / ".squad", {"agents/kobayashi/history.md": "### 2026-01-01: old\n"})
    team = SquadFolder.find(tmp_path)
    with files_opened(tmp_path) as opened:
        for name in ("nobody", "kobayashi"):
            with pytest.raises(NotFound):
                await team.history(name)
    assert not [path for path in opened if "history.md" in path]


@pytest.mark.promise("O01")
@pytest.mark.anyio
async def test_a_charter_cell_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    rows = "| Evil | Dev | `.squad/agents/../../outside/charter.md` |\n| Worse | Dev | /etc/agents/x y/ |"
    write(tmp_path / "project" / ".squad", {"team.md": f"| Name | Role | Charter |\n|-|-|-|\n{rows}\n"})
    write(tmp_path, {"outside/charter.md": "# Secret", "outside/history.md": "### secret"})
    team = SquadFolder.find(tmp_path / "project")
    with files_opened(tmp_path / "outside") as opened:
        assert [member.id for member in (await team.roster()).value] == ["evil", "worse"]
        assert (await team.history("evil")).value == ()
    assert opened == []


@pytest.mark.promise("O01")
@pytest.mark.anyio
async def test_links_that_leave_the_folder_are_not_followed_and_said_so(tmp_path: Path) -> None:
    folder = new_folder(tmp_path / "project")
    write(tmp_path, {"outside/charter.md": "# Secret", "outside/history.md": "### secret", "outside/a.md": "secret"})
    (folder / "agents/fact-checker").symlink_to(tmp_path / "outside")
    (folder / "triage/link.md").symlink_to(tmp_path / "outside/a.md")
    (folder / "decisions-archive.md").unlink()
    (folder / "decisions-archive.md").symlink_to(tmp_path / "outside/a.md")
    (folder / "decisions/archive").symlink_to(tmp_path / "outside")
    team = SquadFolder.find(tmp_path / "project")
    with files_opened(tmp_path / "outside") as opened:
        roster, history = await team.roster(), await team.history("fact-checker")
        decisions, backlog = await team.decisions(), await team.backlog()
    assert opened == []
    assert history.value == ()
    for told in (roster, history, decisions, backlog):
        assert any("leads out of the folder" in note for note in told.notes)


@pytest.mark.anyio
async def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    (folder / "agents/flight/history.md").symlink_to(folder / "agents/eecom/history.md")
    assert len((await SquadFolder.find(tmp_path).history("flight")).value) == 5


@pytest.mark.anyio
async def test_of_a_huge_history_the_end_is_read_and_said_so(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    line = f"{'x' * 1023}\n"
    text = f"### 2020-01-01: First\n\n{line * (17 * 1024)}\n### 2026-01-01: Last\n\nend\n"
    write(folder, {"agents/flight/history.md": text})
    told = await SquadFolder.find(tmp_path).history("flight")
    assert [entry.title for entry in told.value if entry.date] == ["2026-01-01: Last"]
    assert any("only the last 16 MiB" in note for note in told.notes)


@pytest.mark.anyio
async def test_a_pipe_or_folder_in_the_place_of_a_file_is_no_file(tmp_path: Path) -> None:
    folder = tmp_path / ".squad"
    (folder / "identity/now.md").mkdir(parents=True)
    os.mkfifo(folder / "team.md")
    os.mkfifo(folder / "decisions.md")
    team = SquadFolder.find(tmp_path)
    assert (await team.roster()).notes == ("there is no team.md",)
    assert (await team.decisions()).value == ()
    assert (await team.backlog()).value.items == ()


@pytest.mark.anyio
async def test_other_encodings_and_line_ends_are_read(tmp_path: Path) -> None:
    folder = tmp_path / ".squad"
    write(folder, {"team.md": TEAM.replace("\n", "\r\n").encode("utf-16")})
    team = SquadFolder.find(tmp_path)
    names = [member.id for member in (await team.roster()).value]
    assert "eecom" in names
    write(folder, {"team.md": b"\xef\xbb\xbf" + TEAM.encode()})
    assert [member.id for member in (await team.roster()).value] == names


@pytest.mark.promise("SQUAD-WARM")
@pytest.mark.anyio
async def test_a_warm_roster_opens_no_file_that_is_unchanged(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    team = SquadFolder.find(tmp_path)
    with files_opened(tmp_path) as opened:
        first = await team.roster()
    assert str(folder / "team.md") in opened
    with files_opened(tmp_path) as opened:
        assert await team.roster() == first
        await team.status("flight")
    assert [path for path in opened if "orchestration-log" not in path] == []
    write(folder, {"agents/eecom/charter.md": CHARTER.format(name="EECOM", role="Backend", expertise="Rust")})
    with files_opened(tmp_path) as opened:
        again = {member.id: member for member in (await team.roster()).value}
    assert opened == [str(folder / "agents/eecom/charter.md")]
    assert again["eecom"].expertise == "Rust"


@pytest.mark.promise("SQUAD-WARM")
@pytest.mark.anyio
async def test_warm_decisions_search_history_and_metrics_open_nothing(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    team = SquadFolder.find(tmp_path)

    async def ask_all() -> tuple[object, ...]:
        return (
            await team.decisions(), await team.search("tokens"), await team.history("eecom"), await team.metrics(),
            await team.backlog(),
        )  # fmt: skip

    first = await ask_all()
    with files_opened(tmp_path) as opened:
        assert await ask_all() == first
    assert opened == []
    (folder / "decisions/inbox/eecom-753-refactor.md").unlink()
    assert len((await team.decisions()).value) == 4
    assert (await team.search("inline scripts")).value == ()


@pytest.mark.promise("SQUAD-WARM")
@pytest.mark.anyio
async def test_in_a_folder_of_very_many_files_what_comes_and_what_is_written_is_noticed(tmp_path: Path) -> None:
    decision = "### 2026-01-01: Number {}\n\n**By:** a\n"
    folder = write(tmp_path / ".squad", {f"decisions/inbox/a-{n}.md": decision.format(n) for n in range(1200)})
    team = SquadFolder.find(tmp_path)
    assert len((await team.decisions()).value) == 1200
    with files_opened(tmp_path) as opened:
        assert len((await team.decisions()).value) == 1200
    assert opened == []
    write(folder, {"decisions/inbox/b-new.md": "### 2026-02-02: Brand new\n\n**By:** b\n"})
    with anyio.fail_after(60):
        while (await team.decisions(1)).value[0].title != "Brand new":
            await anyio.lowlevel.checkpoint()
    (folder / "decisions/inbox/b-new.md").unlink()
    write(folder, {"decisions/inbox/a-7.md": "### 2026-03-03: Written in its place\n\n**By:** b\n"})
    with anyio.fail_after(60):
        while (await team.decisions(1)).value[0].title != "Written in its place":
            await anyio.lowlevel.checkpoint()
    assert len((await team.decisions()).value) == 1200


# ── hearing of changes ──


async def heard_of(team: SquadFolder, folder: Path, key: str) -> set[str]:
    """The URIs that are told while a file is written again and again, each time longer."""
    heard: set[str] = set()
    done = anyio.Event()

    async def hear() -> None:
        async for uris in team.changes():
            heard.update(uris)
            done.set()
            return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(hear)
            content = "### 2026-01-01: one more\n\n**By:** a\n"
            while not done.is_set():
                write(folder, {key: content})
                content += "more\n"
                with anyio.move_on_after(0.02):
                    await done.wait()
    return heard


@pytest.mark.promise("SQUAD-CHANGES")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("key", "uris"),
    [
        ("decisions.md", {"squad://decisions", "squad://decisions/latest"}),
        ("decisions/inbox/flight-new.md", {"squad://decisions", "squad://decisions/latest"}),
        ("team.md", {"squad://roster", "squad://agents"}),
        ("agents/eecom/history.md", {"squad://agents/eecom/history"}),
        ("agents/eecom/charter.md", {"squad://roster", "squad://agents", "squad://agents/eecom/status"}),
        ("orchestration-log/2026-04-01T00-00-00Z-flight.md", {"squad://metrics", "squad://agents/flight/status"}),
        ("identity/now.md", {"squad://backlog"}),
        ("triage/new.md", {"squad://backlog"}),
    ],
)
async def test_a_changed_file_names_the_answers_that_may_be_others(tmp_path: Path, key: str, uris: set[str]) -> None:
    folder = new_folder(tmp_path)
    team = SquadFolder.find(tmp_path)
    team.look_seconds = 0.01
    assert await heard_of(team, folder, key) == uris


@pytest.mark.promise("SQUAD-CHANGES")
@pytest.mark.anyio
async def test_a_moved_state_branch_is_a_change(tmp_path: Path) -> None:
    branch_folder(tmp_path)
    team = SquadFolder.find(tmp_path)
    team.look_seconds = 0.01
    changes = team.changes()
    heard: list[str] = []

    async def hear() -> None:
        heard.extend(await anext(changes))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(hear)
            count = 0
            while not heard:
                count += 1
                commit_state(tmp_path, {"decisions.md": f"### 2026-05-05: Number {count}\n\n**By:** a\n"})
                await anyio.lowlevel.checkpoint()
    await changes.aclose()
    assert "squad://decisions" in heard


# ── whatever stands in them ──

KEYS = (
    "team.md", "config.json", "casting/registry.json", "agents/a/charter.md", "agents/a/history.md", "decisions.md",
    "decisions/inbox/a-b.md", "orchestration-log/2026-01-01T00-00-00Z-a.md", "identity/now.md", "triage/t.md",
)  # fmt: skip
PIECES = st.sampled_from(
    ["# ", "## ", "### 2026-01-01: x", "\n", "|", "|---|", "| Name | Role |", "**By:** a", "**", "```", "---",
     "- [ ] x", "{", "}", "[", '"agents":', "null", "📌", "\r", "2026-99-99", "0000-00-00", "### \uff12026-01-01: x",
     "### 9999-12-31T23:59:59-23:59: x", "### 0001-01-01T00:00:00+23:59: x", "**Token usage:** 1,2 in / ,, out — $.",
     "\t", "é", "#1", "a"]
)  # fmt: skip
CONTENTS = st.one_of(st.binary(max_size=200), st.lists(PIECES, max_size=30).map(lambda parts: "".join(parts).encode()))


@pytest.mark.promise("SQUAD-FOLDERS")
@given(st.dictionaries(st.sampled_from(KEYS), CONTENTS, max_size=6))
@settings(max_examples=60, deadline=None)
def test_whatever_stands_in_the_files_nothing_is_raised(files: dict[str, bytes]) -> None:
    async def ask(root: Path) -> None:
        team = SquadFolder.at(root / ".squad")
        members = (await team.roster()).value
        decisions = (await team.decisions()).value
        assert len({decision.id for decision in decisions}) == len(decisions)
        await team.backlog()
        await team.metrics()
        await team.search("x 2026 é")
        for member in members:
            await team.status(member.id)
            await team.history(member.id)

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".squad").mkdir()
        write(Path(folder) / ".squad", files)
        anyio.run(ask, Path(folder))
