"""Finding the folder: up to the git root, older names, worktrees, and what ``config.json`` moves elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from outfitter.errors import NotFound
from outfitter.squad import SquadFolder, find_squad
from tests.squad.folders import DECISIONS, TEAM, git, new_files, new_folder, old_folder, repository, write


def test_it_is_found_from_any_folder_below(tmp_path: Path) -> None:
    folder = new_folder(tmp_path)
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    for start in (tmp_path, deep, folder):
        place = find_squad(start)
        assert place is not None
        assert (place.root, place.team, place.backend) == (folder, folder, "local")
        assert place.project == tmp_path


def test_the_search_ends_at_the_root_of_the_repository(tmp_path: Path) -> None:
    new_folder(tmp_path)
    inner = tmp_path / "inner" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "inner" / ".git").mkdir()
    assert find_squad(inner) is None
    with pytest.raises(NotFound, match=r"no \.squad folder"):
        SquadFolder.find(inner)


def test_the_new_name_comes_before_the_older_one(tmp_path: Path) -> None:
    older = old_folder(tmp_path)
    place = find_squad(tmp_path)
    assert place is not None
    assert place.root == older
    newer = new_folder(tmp_path)
    place = find_squad(tmp_path)
    assert place is not None
    assert place.root == newer


def test_a_worktree_without_a_folder_has_that_of_its_main_checkout(tmp_path: Path) -> None:
    main = tmp_path / "main"
    write(main, {"readme.md": "x", ".gitignore": ".squad\n"})
    repository(main)
    folder = new_folder(main)
    git(main, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    write(tmp_path / "tree", {"src/x": ""})
    place = find_squad(tmp_path / "tree" / "src")
    assert place is not None
    assert place.root.resolve() == folder.resolve()


@pytest.mark.parametrize("pointer", ["", "gitdir:", "gitdir: /nowhere/.git/worktrees/x", "nonsense\0", "gitdir: \0"])
def test_a_broken_worktree_pointer_leads_nowhere(tmp_path: Path, pointer: str) -> None:
    write(tmp_path, {"tree/.git": pointer})
    assert find_squad(tmp_path / "tree") is None


@pytest.mark.anyio
async def test_team_root_moves_who_the_team_is_and_leaves_what_it_did(tmp_path: Path) -> None:
    config = json.dumps({"version": 1, "teamRoot": "../shared"})
    write(tmp_path / "project/.squad", {"config.json": config, "decisions.md": DECISIONS})
    new_folder(tmp_path / "shared")
    team = SquadFolder.find(tmp_path / "project")
    roster = await team.roster()
    assert "eecom" in [member.id for member in roster.value]
    assert any("teamRoot" in note for note in roster.notes)
    assert (await team.decisions()).value[0].title == "Tokens are hashed"
    assert len((await team.history("eecom")).value) == 5


@pytest.mark.anyio
@pytest.mark.parametrize("root", ["../nowhere", "/", "\0", "", 3, None])
async def test_a_team_root_without_a_team_is_not_used(tmp_path: Path, root: object) -> None:
    write(tmp_path / ".squad", {"team.md": TEAM, "config.json": json.dumps({"version": 1, "teamRoot": root})})
    team = SquadFolder.find(tmp_path)
    assert len((await team.roster()).value) == 7
    assert team.place.team == team.place.root


@pytest.mark.anyio
@pytest.mark.parametrize(
    "config", [{"stateLocation": "external"}, {"stateBackend": "external", "projectKey": "My Key"}]
)
async def test_external_state_is_read_in_the_users_own_folder(tmp_path: Path, config: dict[str, str]) -> None:
    write(tmp_path / "project/.squad", {"config.json": json.dumps({"version": 1, **config})})
    key = "My-Key" if "projectKey" in config else "project"
    write(tmp_path / "user/squad/projects" / key, new_files())
    place = find_squad(tmp_path / "project", {"XDG_CONFIG_HOME": str(tmp_path / "user"), "HOME": str(tmp_path)})
    assert place is not None
    assert (place.backend, place.root.name) == ("external", key)
    assert len((await SquadFolder(place).roster()).value) == 7


@pytest.mark.parametrize("key", ["nobody", "../../etc", "..", ""])
def test_external_state_that_is_not_there_leaves_the_folder_with_a_note(tmp_path: Path, key: str) -> None:
    config = {"version": 1, "stateLocation": "external", "projectKey": key}
    folder = write(tmp_path / "project/.squad", {"config.json": json.dumps(config), "team.md": TEAM})
    (tmp_path / "user/squad/projects").mkdir(parents=True)
    place = find_squad(tmp_path / "project", {"XDG_CONFIG_HOME": str(tmp_path / "user")})
    assert place is not None
    assert place.root == folder
    assert any("external" in note and "may be old" in note for note in place.notes)


def test_an_unknown_backend_is_a_note(tmp_path: Path) -> None:
    write(tmp_path / ".squad", {"config.json": '{"stateBackend": "blockchain"}'})
    place = find_squad(tmp_path)
    assert place is not None
    assert place.backend == "local"
    assert any("blockchain" in note for note in place.notes)
