"""Is a tool still what somebody approved? What a model sees of it in one form, its digest, and what waits for a person.

Pure: who keeps pins is ``storage`` at the gateway and a file of the bridge in the library; both ask ``review`` what is
to be written and what is to be held back. The instructions of a server are pinned like a tool without a name. What is
laid over a tool for one agent is not in its pin; ``bind`` adds it where an approval must hold for both.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

from outfitter.catalog import JsonValue, PinMode, ToolOverride
from outfitter.policy.hidden_text import HiddenText, find_hidden

SEEN = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
"""What a model sees of a tool."""
Kind: TypeAlias = Literal["tool", "instructions"]
_MOST_TOOLS = 10_000
_SUSPECT = re.compile(r"\\[ubf]|\x7f|<!--")
_MANY = 200


class PinState(StrEnum):
    """Where a definition stands."""

    PINNED = "pinned"
    PENDING = "pending"
    REJECTED = "rejected"


class Why(StrEnum):
    """Why a definition is pinned, or waits."""

    FIRST_USE = "first_use"
    APPROVED = "approved"
    CHANGED = "changed"
    RENAMED = "renamed"
    NEW = "new"
    HIDDEN_TEXT = "hidden_text"
    LATE = "late"
    UNKNOWN = "unknown"


_WORDS = {
    Why.FIRST_USE: "it was there when the server was first seen",
    Why.APPROVED: "somebody approved it",
    Why.CHANGED: "its definition is not the one that was approved",
    Why.RENAMED: "an approved tool has another name now",
    Why.NEW: "nobody has approved it yet",
    Why.HIDDEN_TEXT: "its definition hides text from people",
    Why.LATE: "it appeared later under an exclude rule",
    Why.UNKNOWN: "what was approved cannot be read",
}


@dataclass(frozen=True, slots=True)
class Definition:
    """What a model sees of a tool, or the instructions of a server, in the form that is compared."""

    kind: Kind
    name: str
    text: str = field(repr=False)
    """Canonical JSON in ASCII: equal texts mean equal definitions. Empty for one that cannot be written."""
    digest: str
    bare: str = field(default="", repr=False)
    """The digest without the name."""
    hidden: tuple[HiddenText, ...] = ()

    @classmethod
    def of_tool(cls, entry: Mapping[str, JsonValue]) -> Definition:
        """That of an entry of a list."""
        seen = {key: entry[key] for key in SEEN if entry.get(key) is not None}
        text = canonical(seen)
        seen.pop("name", None)
        return cls("tool", str(entry.get("name")), text, digest_of(text), digest_of(canonical(seen)), _hidden(text))

    @classmethod
    def of_instructions(cls, said: str) -> Definition:
        """That of what a server says of itself."""
        text = canonical(said)
        return cls("instructions", "", text, digest_of(text), "", _hidden(text))


def canonical(value: JsonValue) -> str:
    """The value as JSON in its one form; empty when it is nested too deeply to be written."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    except RecursionError:
        return ""


def digest_of(text: str) -> str:
    """The digest of a canonical text; empty for an empty one."""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def _hidden(text: str) -> tuple[HiddenText, ...]:
    # In this form whatever is hidden is an escape or a comment, and what is deep has many brackets: most definitions
    # need no second look.
    if not text:
        return (HiddenText("depth", "", 0, "⟦…⟧"),)
    if _SUSPECT.search(text) is None and text.count("[") + text.count("{") < _MANY:
        return ()
    return find_hidden(json.loads(text))


def bind(digest: str, override: ToolOverride | None) -> str:
    """A pin together with what is laid over the tool for one agent: another override is another digest."""
    if override is None:
        return digest
    laid: dict[str, JsonValue] = {
        "title": override.title,
        "description": override.description,
        "defaults": dict(override.defaults),
        "hidden": [*sorted(override.hidden)],
    }
    return digest_of(canonical({"pin": digest, "override": laid}))


@dataclass(frozen=True, slots=True)
class Pin:
    """A definition that somebody keeps: since when, and what was decided about it by whom."""

    server: str
    kind: Kind
    name: str
    digest: str
    bare: str = field(repr=False)
    text: str = field(repr=False)
    state: PinState
    why: Why
    was: str = ""
    """The name that it had before, where it was renamed."""
    since: str = ""
    decided: str = ""
    by: str = ""

    @property
    def hidden(self) -> tuple[HiddenText, ...]:
        """What the definition hides from people."""
        return _hidden(self.text)

    @property
    def definition(self) -> JsonValue:
        """The definition as values."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Held:
    """A tool that is held back, and why."""

    name: str
    why: Why
    was: str = ""
    is_rejected: bool = False

    @property
    def reason(self) -> str:
        """The reason in words."""
        said = f"it was '{self.was}' when it was approved" if self.was else _WORDS[self.why]
        return f"{said}, and somebody rejected it" if self.is_rejected else said


@dataclass(frozen=True, slots=True)
class News:
    """A definition that is not kept yet, and what becomes of it."""

    definition: Definition
    state: PinState
    why: Why
    was: str = ""

    def pin(self, server: str, now: str) -> Pin:
        """As it is kept."""
        one, decided = self.definition, now if self.state is PinState.PINNED else ""
        return Pin(
            server, one.kind, one.name, one.digest, one.bare, one.text, self.state, self.why, self.was, now, decided
        )


@dataclass(frozen=True, slots=True)
class Review:
    """What is held back of a list, and what is to be written down."""

    held: Mapping[str, Held]
    news: tuple[News, ...]


def review(listed: Sequence[Definition], pins: Iterable[Pin], mode: PinMode, wary: Collection[str] = ()) -> Review:
    """Which of a server's definitions wait for a person.

    ``pins`` are all that is kept of the server. New tools named in ``wary`` wait, once the server is known at all.
    """
    if mode is PinMode.OFF:
        return Review({}, ())
    known = _Known.of(pins)
    gone = known.gone({one.name for one in listed})
    held: dict[str, Held] = {}
    news: list[News] = []
    first = {one.name: one for one in reversed(listed)}  # of two with one name the first counts
    for one in reversed(first.values()):
        kept = known.of_name(one)
        pin = kept.get(one.digest)
        if pin is None:
            is_wary = mode is PinMode.APPROVE or known.is_full or (known.has_tools and one.name in wary)
            pin = _judge(one, kept.values(), gone.get(one.bare, ""), is_wary=is_wary)
            news.append(pin)
        if pin.state is not PinState.PINNED:
            held[one.name] = Held(one.name, pin.why, pin.was, pin.state is PinState.REJECTED)
    return Review(held, tuple(one for one in news if one.definition.digest))


@dataclass(frozen=True, slots=True)
class _Known:
    """What is kept of a server, by kind, name and digest."""

    pins: Mapping[tuple[Kind, str], Mapping[str, Pin]]

    @classmethod
    def of(cls, pins: Iterable[Pin]) -> _Known:
        known: dict[tuple[Kind, str], dict[str, Pin]] = {}
        for pin in pins:
            known.setdefault((pin.kind, pin.name), {})[pin.digest] = pin
        return cls(known)

    @property
    def is_full(self) -> bool:
        """Whether the server has shown more tools than any has: no more are trusted by themselves."""
        return len(self.pins) >= _MOST_TOOLS

    @property
    def has_tools(self) -> bool:
        return any(kind == "tool" for kind, _ in self.pins)

    def of_name(self, one: Definition) -> Mapping[str, Pin]:
        return self.pins.get((one.kind, one.name), {})

    def gone(self, names: Collection[str]) -> Mapping[str, str]:
        """The approved tools that are not in a list: what they were without their names, and the names."""
        return {
            pin.bare: name
            for (kind, name), kept in self.pins.items()
            if kind == "tool" and name not in names
            for pin in kept.values()
            if pin.state is PinState.PINNED
        }


def _judge(one: Definition, kept: Iterable[Pin], was: str, *, is_wary: bool) -> News:
    """What becomes of a definition that is not kept yet."""
    states = {pin.state for pin in kept}
    if one.kind == "instructions" and one.text == '""':
        return News(one, PinState.PINNED, Why.FIRST_USE)  # there is nothing to read
    if states & {PinState.PINNED, PinState.REJECTED}:
        return News(one, PinState.PENDING, Why.CHANGED)
    if was:
        return News(one, PinState.PENDING, Why.RENAMED, was)
    if is_wary:
        return News(one, PinState.PENDING, Why.NEW)
    if one.hidden or not one.digest:
        return News(one, PinState.PENDING, Why.HIDDEN_TEXT)
    return News(one, PinState.PINNED, Why.FIRST_USE)
