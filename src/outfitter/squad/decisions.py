"""What has the team decided? Ledgers (``decisions.md``, its archive) and single files of the inbox, as decisions.

A heading is a decision when it has a date, or when what stands below it says By, What or Decision; other headings are
prose. Pure: text in, decisions out; what git knows is given as functions, and asked only when nothing else tells
the date.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from outfitter.squad.folder_files import Text
from outfitter.squad.markdown import Section, fields_of, moment_in, order_of, plain, sections_of, slug_of
from outfitter.squad.team import DateSource, Decision

_AUTHORS = ("by", "author", "authors", "decided by", "from", "proposed by", "owner", "requested by")
_DATES = ("date", "decided", "timestamp", "created")
_SIGNS = frozenset({"by", "author", "what", "decision", "decided by", "proposed by", "date"})
_LEVELS = frozenset({1, 2, 3})
"""Files of the inbox are merged into the ledger as they are, with their heading of the first level."""
_PREFIX = re.compile(r"^[\s:—–|.-]*(?:(?:decision|adr)\b[\s\d#.-]*[:—–-])?[\s:—–-]*", re.IGNORECASE)
_ID_WORDS = 48


@dataclass(frozen=True, slots=True)
class Draft:
    """A decision as its file has it: without a date that only git or the file system knows, and without an id."""

    decision: Decision
    heading: str
    time: float | None = None
    """When the file was last changed."""
    is_as_old: bool = False
    """Whether the file's time may stand for this decision's: not when others in the file have a date."""


@dataclass(frozen=True, slots=True)
class DecisionFile:
    """What a file holds."""

    key: str
    drafts: tuple[Draft, ...] = field(repr=False, default=())
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Clocks:
    """When git says that something was written; None when it does not know, or not yet."""

    heading: Callable[[str, str], float | None]
    """A heading of a ledger."""
    file: Callable[[str], float | None]
    """A file of the inbox."""
    knows: Callable[[str], bool]
    """Whether the ledger is committed: then a heading without a time is new."""


# ── reading ──


def read_ledger(text: Text) -> DecisionFile:
    """The decisions of a file that holds many."""
    sections = sections_of(text.text)
    drafts = [_draft(text, group) for group in _groups(sections)]
    notes = text.notes
    headings = sum(1 for section in sections if section.level in _LEVELS - {1})
    if headings and not drafts:
        notes = (*notes, f"{text.key}: none of its {headings} headings reads like a decision (a date, or By and What)")
    is_as_old = not any(draft.decision.date for draft in drafts)
    return DecisionFile(text.key, tuple(replace(draft, is_as_old=is_as_old) for draft in drafts), notes)


def read_archive(text: Text) -> DecisionFile:
    """The same of a ledger that is not in force any more."""
    found = read_ledger(text)
    return replace(found, drafts=tuple(_marked(draft, is_archived=True) for draft in found.drafts))


def read_pending(text: Text) -> DecisionFile:
    """The decisions of a file of the inbox: its dated headings when there are several, else the whole file."""
    if not text.text.strip():
        return DecisionFile(text.key, (), text.notes)
    groups = list(_groups(sections_of(text.text), is_dated=True))
    drafts = [_draft(text, group) for group in groups] if len(groups) > 1 else [_whole(text)]
    drafts = [_marked(replace(_named(draft, text.key), is_as_old=True)) for draft in drafts]
    return DecisionFile(text.key, tuple(drafts), text.notes)


def _marked(draft: Draft, *, is_archived: bool = False) -> Draft:
    return replace(draft, decision=replace(draft.decision, is_archived=is_archived, is_pending=not is_archived))


def _groups(sections: Sequence[Section], *, is_dated: bool = False) -> Iterator[list[Section]]:
    """Each decision's heading with the deeper headings that belong to it."""
    group: list[Section] = []
    for section in sections:
        starts = section.level in _LEVELS and (_dated(section) if is_dated else _is_decision(section))
        ends = bool(group) and section.level <= group[0].level
        if (starts or ends) and group:
            yield group
            group = []
        if starts:
            group = [section]
        elif group:
            group.append(section)
    if group:
        yield group


def _dated(section: Section) -> bool:
    found = moment_in(section.title[:40])
    return found is not None and not section.title[: found[1]].strip(" :[(#*`")


def _is_decision(section: Section) -> bool:
    return _dated(section) or not _SIGNS.isdisjoint(fields_of(section.body))


def _draft(text: Text, group: Sequence[Section]) -> Draft:
    first = group[0]
    deeper = "".join(f"\n{'#' * section.level} {section.title}\n{section.body}" for section in group[1:])
    body = f"{first.body}{deeper}".strip().removesuffix("---").strip()
    return Draft(_decision(text.key, first.title, body, fields_of(first.body)), first.title, text.time)


def _whole(text: Text) -> Draft:
    sections = [section for section in sections_of(text.text) if section.level]
    first = sections[0] if sections else Section(0, "", text.text)
    body = text.text.partition("\n")[2] if text.text.lstrip().startswith("#") else text.text
    title = first.title or text.text.strip().partition("\n")[0][:120]
    return Draft(_decision(text.key, title, body.strip(), fields_of(text.text)), first.title, text.time)


def _decision(key: str, heading: str, body: str, fields: Mapping[str, str]) -> Decision:
    moment, source = _told_date(heading, fields)
    title = heading
    if source == "heading" and (found := moment_in(heading)) is not None:
        title = f"{heading[: found[1]].strip(' ([')} {heading[found[2] :].lstrip(')]')}"
    title = plain(_PREFIX.sub("", title.strip(), count=1)) or plain(fields.get("what", ""))[:120] or plain(heading)
    author = next((plain(fields[name]) for name in _AUTHORS if fields.get(name)), "")
    return Decision("", title, body, author, moment, source, source=key)


def _told_date(heading: str, fields: Mapping[str, str]) -> tuple[str, DateSource | None]:
    found = moment_in(heading)
    if found is not None:
        return found[0], "heading"
    for name in _DATES:
        found = moment_in(fields.get(name, ""))
        if found is not None:
            return found[0], "field"
    return "", None


def _named(draft: Draft, key: str) -> Draft:
    """The date that the file's name tells, where the text does not."""
    decision, stem = draft.decision, key.rpartition("/")[2].removesuffix(".md")
    found = moment_in(stem)
    if not decision.date and found is not None:
        decision = replace(decision, date=found[0], dated_by="file_name")
    return replace(draft, decision=decision)


# ── dates, order and ids ──


def settle(files: Iterable[DecisionFile], clocks: Clocks, agents: Iterable[str] = ()) -> tuple[Decision, ...]:
    """Every decision with its date and its id, newest first; what is written later in a file counts as newer.

    An author that the text does not name is the agent whose id begins the name of the file in the inbox.
    """
    known = sorted(agents, key=len, reverse=True)
    ids: dict[str, int] = {}
    settled: list[Decision] = []
    for file in files:
        for draft in file.drafts:
            decision = _with_author(_with_date(draft, clocks), known)
            settled.append(replace(decision, id=_id(draft.decision, ids)))
    settled.reverse()
    return tuple(sorted(settled, key=lambda decision: -order_of(decision.date)))


def _with_date(draft: Draft, clocks: Clocks) -> Decision:
    decision = draft.decision
    if decision.date:
        return decision
    source = decision.source
    moment = clocks.file(source) if decision.is_pending else clocks.heading(source, draft.heading)
    dated_by: DateSource = "git"
    if moment is None and (draft.is_as_old or clocks.knows(source)):
        moment, dated_by = draft.time, "file_time"
    iso = _iso(moment)
    return replace(decision, date=iso, dated_by=dated_by) if iso else decision


def _with_author(decision: Decision, known: Sequence[str]) -> Decision:
    if decision.author or not decision.is_pending:
        return decision
    stem = decision.source.rpartition("/")[2].lower()
    return replace(decision, author=next((agent for agent in known if stem.startswith(f"{agent}-")), ""))


def _iso(moment: float | None) -> str:
    try:
        return "" if moment is None else datetime.fromtimestamp(int(moment), UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""


def _id(decision: Decision, ids: dict[str, int]) -> str:
    """Its words and a digest of what it says of itself: the same wherever it is moved, and whatever else is written."""
    told = f"{decision.title}\0{decision.date}\0{decision.author}"
    digest = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    base = f"{slug_of(decision.title)[:_ID_WORDS].strip('-') or 'decision'}-{digest}"
    ids[base] = ids.get(base, 0) + 1
    return base if ids[base] == 1 else f"{base}-{ids[base]}"
