"""Who is of the team? The tables of ``team.md``, joined with the casting registry and the charters.

Pure: text in, members out. Headings and columns may be named in several ways, and rows may lack cells. Which files
are read is ``reader_files``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from outfitter.squad.folder_files import Text
from outfitter.squad.markdown import bullets_of, plain, sections_of, slug_of, tables_of
from outfitter.squad.team import Member, MemberKind

RETIRED = frozenset({"retired", "alumni", "inactive", "former", "removed", "departed"})
_NAME_COLUMNS = ("name", "agent", "member")
_ROLE_COLUMNS = ("role", "title", "position")
_STATUS_COLUMNS = ("status", "state", "badge")
_CHARTER_COLUMNS = ("charter", "file", "path")
_NOTE_COLUMNS = ("notes", "note", "description")
_NOT_MEMBERS = ("alumni", "retired", "former", "routing", "issue", "project", "capabilit", "ceremon", "module")
_FOLDER = re.compile(r"agents/([^/\s`|)]{1,64})/")
_AGENT_ID = re.compile(r"[^\W_][\w-]{0,63}")
_STATUS_WORD = re.compile(r"[^\W\d_]{2,}")
_TITLE_ROLE = re.compile(r"\s+[—–-]\s+")


@dataclass(frozen=True, slots=True)
class TeamFile:
    """What ``team.md`` says: who is in its tables, and what the team is called."""

    name: str = ""
    members: tuple[Member, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cast:
    """One entry of the casting registry."""

    id: str
    name: str
    role: str = ""
    is_retired: bool = False
    previous: str = ""


@dataclass(frozen=True, slots=True)
class Registry:
    """The casting registry."""

    cast: Mapping[str, Cast]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Charter:
    """What a charter says of its agent."""

    name: str = ""
    role: str = ""
    expertise: str = ""
    model: str = ""
    notes: tuple[str, ...] = ()


def read_team(text: Text) -> TeamFile:
    """The members in the tables of ``team.md``; a table of something else is passed over."""
    members: dict[str, Member] = {}
    notes = list(text.notes)
    for table in tables_of(text.text):
        heading = plain(table.heading).lower()
        if any(heading.startswith(word) for word in _NOT_MEMBERS):
            continue
        for row in table.rows:
            member = _member(row, heading)
            if member is not None and members.setdefault(member.id, member) is not member:
                notes.append(f"{text.key}: '{member.id}' stands there twice; the first one counts")
    if not members and text.text.strip():
        notes.append(f"{text.key}: it has no table of members that can be read")
    return TeamFile(_team_name(text.text), tuple(members.values()), tuple(notes))


def _team_name(text: str) -> str:
    title = next((section.title for section in sections_of(text) if section.level == 1), "")
    return plain(title)


def _member(row: Mapping[str, str], heading: str) -> Member | None:
    name = plain(_cell(row, _NAME_COLUMNS))
    charter = _cell(row, _CHARTER_COLUMNS)
    folder = _FOLDER.search(charter)
    id_ = folder[1].lower() if folder and is_agent_id(folder[1]) else slug_of(name.removeprefix("@"))
    if not id_ or not name or name.startswith("{"):
        return None
    role = plain(_cell(row, _ROLE_COLUMNS))
    status = status_of(_cell(row, _STATUS_COLUMNS))
    kind = _kind(heading, role, name)
    where = f"agents/{folder[1]}/charter.md" if folder and is_agent_id(folder[1]) else ""
    return Member(id_, name, role, status, kind, where, notes=plain(_cell(row, _NOTE_COLUMNS)))


def is_agent_id(text: str) -> bool:
    """Whether the text can be an agent's id: letters, digits, '-' and '_', at most 64."""
    return _AGENT_ID.fullmatch(text) is not None


def _cell(row: Mapping[str, str], columns: Sequence[str]) -> str:
    return next((row[column] for column in columns if row.get(column)), "")


def _kind(heading: str, role: str, name: str) -> MemberKind:
    if heading.startswith("coordinator") or role.lower() == "coordinator":
        return "coordinator"
    if heading.startswith("coding agent") or role.lower() == "coding agent" or name.startswith("@"):
        return "coding_agent"
    return "member"


def status_of(cell: str) -> str:
    """The status as one word in lower case, without its emoji; empty when nobody says."""
    word = _STATUS_WORD.search(plain(cell).lower())
    found = word[0] if word else ""
    return "active" if found == "coding" else found


def read_registry(text: Text) -> Registry:
    """The entries of ``casting/registry.json``, or of the older flat file, by id."""
    notes = list(text.notes)
    if not text.text.strip():
        return Registry({}, tuple(notes))
    try:
        found = json.loads(text.text)
    except (ValueError, RecursionError) as error:
        return Registry({}, (*notes, f"{text.key}: it cannot be read as JSON ({type(error).__name__})"))
    cast_ = {entry.id: entry for entry in _entries(found)}
    return Registry(cast_, tuple(notes))


def _entries(found: object) -> Iterator[Cast]:
    whole = _of(found)
    agents = whole.get("agents", whole)
    if isinstance(agents, list):
        named = [
            (str(_of(entry).get("id") or _of(entry).get("name") or ""), entry) for entry in cast("list[object]", agents)
        ]
    elif isinstance(agents, dict):
        named = list(cast("Mapping[str, object]", agents).items())
    else:
        named = []
    for key, entry in named:
        given = _of(entry)
        if slug_of(key) and given:
            yield Cast(
                key.lower() if is_agent_id(key) else slug_of(key),
                _text(given, "display_name") or _text(given, "persistent_name") or key,
                _text(given, "role"),
                _text(given, "status").lower() in RETIRED
                or bool(given.get("succeeded_by") or given.get("merged_into")),
                _text(given, "previous_name"),
            )


def _of(entry: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", entry) if isinstance(entry, dict) else {}


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    return value.strip() if isinstance(value, str) else ""


def read_charter(text: Text) -> Charter:
    """Name, role, expertise and model, wherever the charter has them."""
    sections = sections_of(text.text)
    title = next((section.title for section in sections if section.level == 1), "")
    parts = _TITLE_ROLE.split(plain(title), maxsplit=1)
    identity, model = "", ""
    for section in sections:
        heading = section.title.lower()
        if heading == "identity":
            identity = section.body
        elif heading.startswith("model"):
            given = bullets_of(section.body)
            model = plain(given.get("preferred", given.get("model", "")))
    said = bullets_of(identity or (sections[1].body if len(sections) > 1 else ""))
    return Charter(
        plain(said.get("name", parts[0])),
        plain(said.get("role", parts[1] if len(parts) > 1 else "")),
        plain(said.get("expertise", "")),
        model,
        text.notes,
    )


def join_team(
    team: TeamFile, registry: Registry, charters: Mapping[str, Charter], folders: Sequence[str]
) -> tuple[tuple[Member, ...], tuple[str, ...]]:
    """Everybody who is not retired, and the notes; without a readable table the registry and the charters tell."""
    notes = [*team.notes, *registry.notes]
    listed = team.members or _from_elsewhere(registry, charters, folders, notes)
    members: list[Member] = []
    for member in listed:
        entry = registry.cast.get(member.id) or registry.cast.get(slug_of(member.name))
        if member.status in RETIRED or (entry is not None and entry.is_retired):
            if member.status not in RETIRED:
                notes.append(f"'{member.id}' stands in team.md, but the casting registry says retired: left out")
            continue
        members.append(_dressed(member, entry, charters.get(member.id)))
    known = {member.id for member in listed}
    for folder in folders:
        is_retired = folder.lower() in registry.cast and registry.cast[folder.lower()].is_retired
        if folder.lower() not in known and folder.lower() in charters and not is_retired:
            notes.append(f"agents/{folder} has a charter, but team.md does not name it: left out")
    notes.extend(note for charter in charters.values() for note in charter.notes)
    return tuple(members), tuple(notes)


def _from_elsewhere(
    registry: Registry, charters: Mapping[str, Charter], folders: Sequence[str], notes: list[str]
) -> tuple[Member, ...]:
    found = {entry.id: Member(entry.id, entry.name, entry.role) for entry in registry.cast.values()}
    for folder in folders:
        charter = charters.get(folder.lower())
        if charter is not None and folder.lower() not in found:
            found[folder.lower()] = Member(folder.lower(), charter.name or folder, charter.role)
    if found:
        notes.append("team.md names nobody; the members are those of the casting registry and of the charters")
    return tuple(found.values())


def _dressed(member: Member, entry: Cast | None, charter: Charter | None) -> Member:
    said = charter or Charter()
    notes = member.notes
    if entry is not None and entry.previous:
        notes = f"{notes}; formerly {entry.previous}".removeprefix("; ")
    status = member.status or ("active" if entry is not None else "")
    return replace(
        member,
        role=member.role or said.role or (entry.role if entry else ""),
        status=status,
        charter=(member.charter or f"agents/{member.id}/charter.md") if charter is not None else "",
        expertise=said.expertise,
        model=said.model,
        notes=notes,
    )
