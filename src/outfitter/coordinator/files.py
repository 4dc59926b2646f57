"""The registry and a catalog folder beside each other: what differs, and how one becomes the other.

``plan`` says what applying a catalog would do, field by field, secrets masked; ``apply`` does it, all or nothing;
``export`` is the way back. ``follow`` is for a folder that somebody goes on editing while others use the API: an entry
is taken over from its file only if it is still what was last taken from there. Not here: reading and writing files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

from outfitter.catalog import Agent, Capability, Catalog, JsonValue, ServerEntry
from outfitter.coordinator.commands import command_digest
from outfitter.coordinator.entries import Entries, show
from outfitter.coordinator.live import LiveCatalog
from outfitter.coordinator.reading import Value
from outfitter.coordinator.sensitive import masked, sensitive_pointers, unmasked
from outfitter.coordinator.values import Author, Draft, Shown
from outfitter.coordinator.view import View
from outfitter.errors import NotFound, VersionConflict
from outfitter.formats import pointer, write_agent, write_capability, write_entry
from outfitter.storage import User

Documents: TypeAlias = Mapping[User, Mapping[str, JsonValue]]
Verdict: TypeAlias = Literal["create", "update", "delete", "unchanged"]
_ORDER = ("mcp-servers", "capabilities", "agents")


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that differs; None is one that is not there. A secret is a mask on both sides."""

    path: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one entry."""

    name: User
    action: Verdict
    differences: tuple[Difference, ...] = ()
    command: str | None = None
    """The command line of a program that would have to be approved."""


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What applying a catalog would do."""

    steps: tuple[Step, ...]
    drafts: tuple[Draft, ...] = field(default=(), repr=False)
    deletes: tuple[User, ...] = ()
    revision: int = 0
    """The revision of the registry that it was made from."""

    @property
    def changes(self) -> tuple[Step, ...]:
        """The steps that change something."""
        return tuple(step for step in self.steps if step.action != "unchanged")

    def count(self, action: Verdict) -> int:
        """How many entries this becomes of."""
        return sum(step.action == action for step in self.steps)


@dataclass(frozen=True, slots=True)
class Exported:
    """The registry as documents of files; ``hidden`` are the places of secrets that were masked."""

    documents: Documents
    hidden: tuple[str, ...]
    known: frozenset[User] = frozenset()
    """What the catalog that is there already says in the same way."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What was taken over from a folder, what was not because others have changed it, and what to remember."""

    taken: tuple[User, ...]
    drifted: tuple[User, ...]
    applied: Mapping[str, str]
    """The digest of what each entry is in the folder, by ``kind/id``: given back the next time."""


@dataclass(frozen=True, slots=True)
class Files:
    """The use cases."""

    entries: Entries
    live: LiveCatalog

    async def plan(self, catalog: Catalog, *, prune: bool = False) -> FilePlan:
        """What applying the catalog would do; ``prune`` takes away what it does not have."""
        return make_plan(await self.live.newest(), catalog, prune=prune)

    async def apply(
        self,
        catalog: Catalog,
        who: Author,
        *,
        prune: bool = False,
        approve: bool = False,
        confirmed: int | None = None,
    ) -> tuple[FilePlan, tuple[str, ...]]:
        """Make the registry like the catalog, all or nothing; answers what was done and which programs wait.

        ``approve`` approves the commands that it brings; without it they wait for an admin. ``confirmed`` is the
        revision of the plan that somebody has agreed to: VersionConflict when it is another one by now.
        """
        plan, shown = await self.plan(catalog, prune=prune), ()
        if plan.changes:
            made: list[FilePlan] = []

            def choose(view: View) -> tuple[Sequence[Draft], Sequence[User]]:
                made.append(make_plan(view, catalog, prune=prune))
                if confirmed is not None and made[-1].revision != confirmed:
                    hint = "look at the plan again"
                    raise VersionConflict(
                        "the registry has changed since the plan was made", current=made[-1].revision, hint=hint
                    )
                return made[-1].drafts, made[-1].deletes

            shown = await self.entries.apply_chosen(choose, who)
            plan = made[-1]
        return plan, await self._approve(_programs(shown), who if approve else None)

    async def export(self, existing: Catalog | None = None) -> Exported:
        """The whole registry, as it is written in files. Secrets that are not references are masked."""
        view = await self.live.newest()
        there = make_plan(view, existing or Catalog()).steps
        documents: dict[User, Mapping[str, JsonValue]] = {}
        hidden: list[str] = []
        for name, document in documents_of(view.catalog).items():
            places = sensitive_pointers(name.kind, document, view.catalog) | view.entries[name].sealed
            hidden += [f"{name.kind}/{name.id}{place}" for place in sorted(places)]
            documents[name] = masked(document, places) if places else document
        known = frozenset(step.name for step in there if step.action == "unchanged")
        return Exported(documents, tuple(sorted(hidden)), known)

    async def follow(self, catalog: Catalog, applied: Mapping[str, str] | None, who: Author) -> Followed:
        """Take over what has changed in a folder since ``applied``; commands in it are approved.

        Without an ``applied`` an empty registry takes everything, and any other one nothing.
        """
        view = await self.live.newest()
        if applied is None or not view.revision:
            applied = {} if not view.revision else digests_of(documents_of(catalog))
        found, known = compare(view, catalog, applied), applied
        shown: tuple[Shown, ...] = ()
        if found.taken:
            compared: list[tuple[Comparison, View]] = []

            def choose(now: View) -> tuple[Sequence[Draft], Sequence[User]]:
                compared.append((compare(now, catalog, known), now))
                return compared[-1][0].changes(catalog)

            shown = await self.entries.apply_chosen(choose, who)
            found, view = compared[-1]
        equal = (show(view, view.entries[name]) for name in found.equal if name in view.entries)
        mine = [server for server in equal if server.updated_by == who.name]
        await self._approve(_programs((*mine, *shown)), who)
        return Followed(found.taken, found.drifted, found.applied)

    async def _approve(self, servers: Iterable[Shown], who: Author | None) -> tuple[str, ...]:
        """Approve the commands of these servers, in the version that was compared or written; the others wait."""
        waiting: list[str] = []
        for server in servers:
            try:
                if who is not None:
                    await self.entries.approve(server.id, server.etag, who, server.kind)
                    continue
            except (NotFound, VersionConflict):  # somebody was faster: nobody has looked at what stands there now
                pass
            waiting.append(server.id if server.kind == "mcp-servers" else f"{server.kind}/{server.id}")
        return tuple(waiting)


def _programs(shown: Iterable[Shown]) -> list[Shown]:
    """Those that start a command that is not approved."""
    return [server for server in shown if server.approved is False]


# ── documents ──


def documents_of(catalog: Catalog) -> dict[User, Mapping[str, JsonValue]]:
    """Every entry as a document: the same entry is always written in the same way. Prompts are texts, not files."""
    values: tuple[Mapping[str, Value], ...] = (catalog.servers, catalog.capabilities, catalog.agents)
    return {
        User(kind, name): document_of(value)
        for kind, shelf in zip(("mcp-servers", "capabilities", "agents"), values, strict=True)
        for name, value in shelf.items()
    }


def document_of(value: Value) -> dict[str, JsonValue]:
    """An entry as a document."""
    if isinstance(value, ServerEntry):
        return write_entry(value)
    if isinstance(value, Capability):
        return write_capability(value)
    return write_agent(value if value.system_prompt_file is None else replace(value, system_prompt_file=None))


def digests_of(documents: Documents) -> dict[str, str]:
    """What stands for each document, by ``kind/id``."""
    return {f"{name.kind}/{name.id}": _digest(document) for name, document in documents.items()}


def _digest(document: Mapping[str, JsonValue]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _wanted(view: View, catalog: Catalog) -> dict[User, Mapping[str, JsonValue]]:
    """The catalog's documents, each mask in them replaced by what is stored in its place."""
    wanted = documents_of(catalog)
    for name, document in wanted.items():
        stored = view.value(name)
        wanted[name] = unmasked(document, None if stored is None else document_of(stored), f"{name.kind}/{name.id}")
    return wanted


# ── planning ──


def make_plan(view: View, catalog: Catalog, *, prune: bool = False) -> FilePlan:
    """What would have to be done so that the registry has what the catalog has."""
    wanted = _wanted(view, catalog)
    both = Catalog(
        {**view.catalog.servers, **catalog.servers},
        {**view.catalog.capabilities, **catalog.capabilities},
        {**view.catalog.agents, **catalog.agents},
    )
    steps = [_step(view, name, document, both) for name, document in wanted.items()]
    deletes = [name for name in view.entries if name not in wanted] if prune else []
    steps += [Step(name, "delete") for name in deletes]
    moved = {step.name for step in steps if step.action in {"create", "update"}}
    given = documents_of(catalog)  # a mask is still one in it: what may be kept is judged when it is stored
    drafts = tuple(Draft(name.kind, given[name], name.id) for name in wanted if name in moved)
    return FilePlan(tuple(sorted(steps, key=_place)), drafts, tuple(deletes), view.revision)


def _place(step: Step) -> tuple[int, str]:
    return _ORDER.index(step.name.kind), step.name.id


def _step(view: View, name: User, wanted: Mapping[str, JsonValue], catalog: Catalog) -> Step:
    stored = view.value(name)
    before = {} if stored is None else document_of(stored)
    if before == wanted:
        return Step(name, "unchanged")
    hidden = sensitive_pointers(name.kind, wanted, catalog) | sensitive_pointers(name.kind, before, catalog)
    if stored is not None:
        hidden |= sensitive_pointers(name.kind, before, view.catalog) | view.entries[name].sealed
    differences = tuple(
        Difference(path, _shown(old, path, hidden), _shown(new, path, hidden))
        for path, old, new in _differences((), before, wanted)
    )
    value = catalog.servers.get(name.id) if name.kind == "mcp-servers" else catalog.agents.get(name.id)
    value = None if name.kind == "capabilities" else value
    return Step(name, "create" if stored is None else "update", differences, _command(value, stored))


def _command(value: ServerEntry | Agent | None, stored: Value | None) -> str | None:
    """The command line that nobody has approved yet."""
    digest = None if value is None else command_digest(value)
    if value is None or digest is None or (stored is not None and _is_approved(stored, digest)):
        return None
    if isinstance(value, ServerEntry):
        return " ".join((value.server.command or "", *value.server.args))
    executor = value.executor
    return None if executor is None else " ".join((executor.command or executor.type, *executor.args))


def _is_approved(stored: Value, digest: str) -> bool:
    if command_digest(stored) != digest:
        return False
    if isinstance(stored, Agent):
        return stored.executor is not None and stored.executor.is_approved
    return isinstance(stored, ServerEntry) and stored.is_approved


def _differences(trail: tuple[str, ...], before: object, after: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        old, new = cast("Mapping[str, object]", before), cast("Mapping[str, object]", after)
        for key in dict.fromkeys((*old, *new)):
            yield from _differences((*trail, key), old.get(key), new.get(key))
    elif before != after:
        yield pointer(trail), before, after


def _shown(value: object, path: str, hidden: frozenset[str]) -> object:
    """The value with a mask wherever a secret is; ``path`` is where it stands in its document."""
    inner = frozenset(place[len(path) :] for place in hidden if place == path or place.startswith(f"{path}/"))
    return value if value is None or not inner else masked({"": value}, {f"/{place}" for place in inner})[""]


# ── following ──


@dataclass(frozen=True, slots=True)
class Comparison:
    """A folder, the registry, and what was last taken over from the one to the other."""

    wanted: Mapping[User, Mapping[str, Any]]
    taken: tuple[User, ...]
    """Entries to take over; those that are not wanted go."""
    drifted: tuple[User, ...]
    equal: tuple[User, ...]
    """Servers that are in the registry as they are in the folder."""
    applied: Mapping[str, str]

    def changes(self, catalog: Catalog) -> tuple[Sequence[Draft], Sequence[User]]:
        """What takes the entries over, masks still in them, and what goes."""
        given = documents_of(catalog)
        drafts = [Draft(name.kind, given[name], name.id) for name in self.taken if name in given]
        return drafts, [name for name in self.taken if name not in given]


def compare(view: View, catalog: Catalog, applied: Mapping[str, str]) -> Comparison:
    """Which entries can be taken over: those that have changed in the folder, and nowhere else."""
    wanted = _wanted(view, catalog)
    remembered = dict(applied)
    taken: list[User] = []
    drifted: list[User] = []
    equal: list[User] = []
    for name in dict.fromkeys((*wanted, *map(_name, applied))):
        key, value = f"{name.kind}/{name.id}", view.value(name)
        there = None if value is None else _digest(document_of(value))
        here = _digest(wanted[name]) if name in wanted else None
        if here == there:
            equal += [name] if name.kind == "mcp-servers" and value is not None else []
        elif here == remembered.get(key):
            continue  # changed in the registry only
        elif there == remembered.get(key):
            taken.append(name)
        else:
            drifted.append(name)
            continue
        remembered[key] = here or ""
    kept = {key: digest for key, digest in remembered.items() if digest}
    return Comparison(wanted, tuple(taken), tuple(drifted), tuple(equal), kept)


def _name(key: str) -> User:
    kind, _, name = key.partition("/")
    return User(cast("Any", kind), name)
