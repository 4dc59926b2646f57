"""Which file answers which question? The files of a team by what they are for, on disk or on the state branch.

One question at a time; ``reader`` sees to it. What changes may be on the branch ``squad-state``: then the copy in the
working tree is used only for what the branch does not have, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_

from outfitter.squad.decisions import Clocks, DecisionFile, read_archive, read_ledger, read_pending, settle
from outfitter.squad.folder_files import DiskShelf, Files, Version
from outfitter.squad.folder_git import STATE_BRANCH, BranchShelf, Git, open_git
from outfitter.squad.folder_place import SquadPlace
from outfitter.squad.histories import History, LogEntry, read_history, read_log
from outfitter.squad.markdown import order_of, slug_of
from outfitter.squad.roster import Charter, Registry, TeamFile, join_team, read_charter, read_registry, read_team
from outfitter.squad.tasks import Tasks, read_now, read_triage
from outfitter.squad.team import BacklogItem, Decision, Member

_LEDGER = "decisions.md"
_ARCHIVE = "decisions-archive.md"
_ARCHIVES = "decisions/archive"
_INBOX = "decisions/inbox"
_LOG = "orchestration-log"
_NOW = "identity/now.md"
_TRIAGE = "triage"
_REGISTRIES = ("casting/registry.json", "casting-registry.json", "casting/casting-registry.json")


@dataclass(slots=True)
class TeamFiles:
    """The files of one team."""

    place: SquadPlace
    _team: Files = field(init=False)
    _work: Files = field(init=False)
    _branch: Files | None = None
    _git: Git | None = None
    _is_git_known: bool = False
    _joined: tuple[object, tuple[tuple[Member, ...], tuple[str, ...]]] | None = None
    _settled: tuple[list[DecisionFile], tuple[Decision, ...], tuple[str, ...]] | None = None
    _notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Look at nothing yet."""
        self._team, self._work = Files(DiskShelf(self.place.team)), Files(DiskShelf(self.place.root))

    # ── who they are ──

    def roster(self) -> tuple[tuple[Member, ...], tuple[str, ...]]:
        """The members and the notes."""
        team = self._team.make("team.md", read_team) or self._older_team()
        registry = self._registry()
        folders = self._team.shelf.folders("agents")
        charters = self._charters(team, folders)
        parts = (team, registry, charters, folders)
        if self._joined is None or self._joined[0] != parts:
            self._joined = (parts, join_team(team, registry, charters, folders))
        return self._joined[1]

    def _older_team(self) -> TeamFile:
        """Without ``team.md`` where the team is, that of the folder itself; else nobody."""
        if self.place.team != self.place.root:
            found = self._work.make("team.md", read_team)
            if found is not None:
                return found
        return TeamFile(notes=("there is no team.md",))

    def _registry(self) -> Registry:
        notes: tuple[str, ...] = ()
        for key in _REGISTRIES:
            found = self._team.make(key, read_registry)
            if found is not None and found.cast:
                return Registry(found.cast, (*notes, *found.notes))
            notes = notes if found is None else (*notes, *found.notes)
        return Registry({}, notes)

    def _charters(self, team: TeamFile, folders: Sequence[str]) -> dict[str, Charter]:
        keys = {folder.lower(): f"agents/{folder}/charter.md" for folder in folders}
        keys |= {member.id: member.charter for member in team.members if member.charter}
        found = {id_: self._team.make(key, read_charter) for id_, key in keys.items()}
        return {id_: charter for id_, charter in found.items() if charter is not None}

    def ids(self) -> dict[str, str]:
        """What the members are called in logs, and their ids."""
        members, _ = self.roster()
        return {name: member.id for member in members for name in (slug_of(member.name.lstrip("@")), member.id)}

    # ── what changes ──

    def _state(self) -> Files | None:
        """The files on the state branch as it is now; None when the working tree is what counts."""
        if self.place.backend != "branch":
            return None
        git = self._repository()
        if git is not None:
            if self._branch is None:
                self._branch = Files(BranchShelf(git))
            shelf = self._branch.shelf
            if isinstance(shelf, BranchShelf) and shelf.look():
                is_remote = f"the state is that of origin/{STATE_BRANCH}; there is no local branch"
                self._notes = (is_remote,) if shelf.is_remote else ()
                return self._branch
        why = "this is no git repository, or git cannot be used" if git is None else git.problem
        self._notes = (f"the branch {STATE_BRANCH} could not be read ({why}); the copy in the folder may be old",)
        return None

    def _repository(self) -> Git | None:
        if not self._is_git_known:
            self._git, self._is_git_known = open_git(self.place.root), True
        return self._git

    def state_notes(self) -> tuple[str, ...]:
        """What is to be known about where the last answer's changing files came from."""
        return self._notes

    def _at(self, state: Files | None, key: str) -> Files:
        """Where this key is to be read: the branch when it has it, else the folder."""
        if state is not None and state.shelf.version(key) is not None:
            return state
        files = self._team if key.startswith("agents/") else self._work
        if state is not None and files.shelf.version(key) is not None:
            self._note_old(key)
        return files

    def _note_old(self, what: str) -> None:
        self._notes = (*self._notes, f"{what}: not on the branch {STATE_BRANCH}; the copy in the folder may be old")

    def _under(self, state: Files | None, folder: str) -> tuple[Files, Mapping[str, Version]]:
        if state is not None:
            found = state.under(folder)
            if found:
                return state, found
        files = self._work
        found = files.under(folder)
        if state is not None and found:
            self._note_old(folder)
        return files, found

    # ── decisions ──

    def decisions(self) -> tuple[tuple[Decision, ...], tuple[str, ...]]:
        """Every decision, archived ones too, newest first; the same tuple as long as nothing has changed."""
        state = self._state()
        files: list[DecisionFile] = []
        for key, read in ((_LEDGER, read_ledger), (_ARCHIVE, read_archive)):
            found = self._at(state, key).make(key, read)
            if found is not None:
                files.append(found)
        for folder, read in ((_INBOX, read_pending), (_ARCHIVES, read_archive)):
            shelf, keys = self._under(state, folder)
            files.extend(shelf.make_all(keys, read))
        if self._settled is None or not _are_same(self._settled[0], files):
            settled = settle(files, self._clocks(self._revision(state)), self.ids().values())
            notes = (*(note for file in files for note in file.notes), *_undated(settled))
            self._settled = (files, settled, notes)
        return self._settled[1], self._settled[2]

    def _revision(self, state: Files | None) -> str | None:
        return state.shelf.commit if state is not None and isinstance(state.shelf, BranchShelf) else None

    def _clocks(self, revision: str | None) -> Clocks:
        """When git says that something was written; git is asked when first needed, once for each file or folder."""
        headings: dict[str, dict[str, float]] = {}
        times: dict[str, float] = {}
        asked: list[str] = []

        def heading(key: str, title: str) -> float | None:
            git = self._repository()
            if git is not None and key not in headings:
                headings[key] = git.heading_times(self._path(git, key, revision), revision or "HEAD")
            return headings.get(key, {}).get(title)

        def file(key: str) -> float | None:
            git = self._repository()
            if git is None:
                return None
            path = self._path(git, key, revision)
            folder = path.rpartition("/")[0]
            if folder not in asked:
                asked.append(folder)
                times.update(git.file_times(folder, revision or "HEAD"))
            return times.get(path)

        return Clocks(heading, file, lambda key: bool(headings.get(key)))

    def _path(self, git: Git, key: str, revision: str | None) -> str:
        """The file's path from the top of the repository; on the state branch the key itself."""
        if revision is not None:
            return key
        try:
            return f"{self.place.root.resolve().relative_to(git.top.resolve()).as_posix()}/{key}"
        except ValueError:
            return key

    # ── the others ──

    def history(self, member: Member) -> History | None:
        """The agent's history; None when it has none."""
        folder = member.charter.removesuffix("/charter.md") or f"agents/{member.id}"
        key = f"{folder}/history.md"
        return self._at(self._state(), key).make(key, read_history)

    def log(self) -> list[LogEntry]:
        """The orchestration log, newest first."""
        files, keys = self._under(self._state(), _LOG)
        entries = files.make_all(keys, read_log)[::-1]
        return sorted(entries, key=lambda entry: -order_of(entry.moment))

    def tasks(self) -> tuple[tuple[BacklogItem, ...], tuple[str, ...]]:
        """What ``identity/now.md`` and ``triage/`` say is to be done, each once."""
        state = self._state()
        now = self._at(state, _NOW).make(_NOW, read_now) or Tasks(notes=(f"there is no {_NOW}",))
        found = [now, *self._work.make_all(self._work.under(_TRIAGE), read_triage)]
        items: dict[str, BacklogItem] = {}
        for item in (item for tasks in found for item in tasks.items):
            items.setdefault(item.id, item)
        return tuple(items.values()), tuple(note for tasks in found for note in tasks.notes)

    def versions(self) -> Mapping[str, object]:
        """What every file that tells something is now, by key."""
        state = self._state()
        seen: dict[str, object] = {}
        for key in ("team.md", *_REGISTRIES):
            seen[key] = self._team.shelf.version(key)
        for folder in self._team.shelf.folders("agents"):
            seen[f"agents/{folder}/charter.md"] = self._team.shelf.version(f"agents/{folder}/charter.md")
            key = f"agents/{folder}/history.md"
            seen[key] = self._at(state, key).shelf.version(key)
        for key in (_LEDGER, _ARCHIVE, _NOW):
            seen[key] = self._at(state, key).shelf.version(key)
        for folder in (_INBOX, _ARCHIVES, _LOG):
            seen.update(self._under(state, folder)[1])
        return {**seen, **self._work.under(_TRIAGE)}


def _are_same(before: list[DecisionFile], now: list[DecisionFile]) -> bool:
    return len(before) == len(now) and all(map(is_, before, now))


def _undated(decisions: tuple[Decision, ...]) -> tuple[str, ...]:
    by_file = sum(1 for decision in decisions if decision.dated_by == "file_time")
    by_git = sum(1 for decision in decisions if decision.dated_by == "git")
    notes: list[str] = []
    if by_git:
        notes.append(f"decisions without a date of their own: {by_git}; theirs is when git says they were written")
    if by_file:
        notes.append(f"decisions without a date of their own: {by_file}; theirs is when the file was last changed")
    return tuple(notes)
