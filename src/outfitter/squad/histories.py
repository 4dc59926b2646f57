"""What has an agent done? Its ``history.md``, and the team's orchestration log in both of its styles.

Pure: text in, values out. What the log adds up to is ``reader``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from outfitter.squad.folder_files import Text
from outfitter.squad.markdown import Section, fields_of, moment_in, order_of, plain, sections_of, slug_of
from outfitter.squad.team import HistoryEntry

_ENTRY_LEVEL = 3
_UPDATE = re.compile(r"(?:📌|\*\*|[-*] )[^\n]{0,80}?\d{4}-\d{2}-\d{2}")
_TITLE_SIZE = 120
_TOKENS = re.compile(r"([\d,]{1,20})\s{0,4}in\s{0,4}/\s{0,4}([\d,]{1,20})\s{0,4}out", re.IGNORECASE)
_DOLLARS = re.compile(r"\$\s{0,4}(\d[\d.,]{0,20})")
_AGENT_NOTE = re.compile(r"\s*\([^)]*\)\s*$")
_OUTCOMES = ("outcome", "status", "result")
_TASKS = ("task", "why chosen", "summary", "what")


@dataclass(frozen=True, slots=True)
class History:
    """What a history says, newest first."""

    entries: tuple[HistoryEntry, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of the orchestration log. Without ``has_tokens`` it says nothing about what was used."""

    key: str
    agent: str
    moment: str = ""
    task: str = ""
    outcome: str = ""
    has_tokens: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    notes: tuple[str, ...] = ()


def read_history(text: Text) -> History:
    """The entries, those with a date first and newest first; then the others, the last written first."""
    found: list[HistoryEntry] = []
    topic = ""
    for section in sections_of(text.text):
        topic = section.title if section.level < _ENTRY_LEVEL else topic
        found.extend(_entries(section, plain(topic)))
    found.reverse()
    return History(tuple(sorted(found, key=lambda entry: -order_of(entry.date))), text.notes)


def _entries(section: Section, topic: str) -> Iterator[HistoryEntry]:
    if section.level >= _ENTRY_LEVEL:
        body = section.body.strip()
        moment = moment_in(section.title) or moment_in(fields_of(body).get("date", ""))
        yield HistoryEntry(topic, plain(section.title), body, moment[0] if moment else "")
        return
    rest: list[str] = []
    for part in section.body.split("\n\n"):
        paragraph = part.strip()
        update = _UPDATE.match(paragraph)
        moment = moment_in(update[0]) if update else None
        if moment is None:
            rest.append(paragraph)
        else:
            yield HistoryEntry(topic, plain(paragraph.partition("\n")[0])[:_TITLE_SIZE], paragraph, moment[0])
    left = "\n\n".join(paragraph for paragraph in rest if paragraph.strip("- \n>"))
    if left:
        yield HistoryEntry(topic, plain(section.title), left)


def read_log(text: Text) -> LogEntry:
    """The agent, its task, how it ended, and what was used as far as it is told."""
    fields = fields_of(text.text)
    stem = text.key.rpartition("/")[2].removesuffix(".md")
    told = moment_in(stem)
    written = told or moment_in(fields.get("timestamp", "")) or moment_in(fields.get("date", ""))
    agent = fields.get("agent routed") or fields.get("agent") or (stem[told[2] :].strip("-_Z") if told else stem)
    sections = sections_of(text.text)
    entry = LogEntry(
        text.key,
        slug_of(_AGENT_NOTE.sub("", plain(agent))),
        written[0] if written else "",
        _first(fields, _TASKS) or _heading(sections),
        _first(fields, _OUTCOMES) or _said_under(sections, _OUTCOMES),
        notes=text.notes,
    )
    return _with_usage(entry, fields.get("token usage", ""))


def _first(fields: dict[str, str], names: tuple[str, ...]) -> str:
    return next((plain(fields[name]) for name in names if fields.get(name)), "")


def _heading(sections: list[Section]) -> str:
    title = next((section.title for section in sections if section.level), "")
    found = moment_in(title)
    return plain(title[found[2] :].lstrip(" —–:-Z")) if found else plain(title)


def _said_under(sections: list[Section], names: tuple[str, ...]) -> str:
    for section in sections:
        if section.title.strip().lower() in names:
            return plain(section.body.strip().partition("\n")[0])
    return ""


def _with_usage(entry: LogEntry, told: str) -> LogEntry:
    found = _TOKENS.search(told)
    if found is None:
        return entry
    dollars = _DOLLARS.search(told)
    return replace(
        entry,
        has_tokens=True,
        input_tokens=int(found[1].replace(",", "") or 0),
        output_tokens=int(found[2].replace(",", "") or 0),
        cost=_amount(dollars[1]) if dollars else 0.0,
    )


def _amount(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0
