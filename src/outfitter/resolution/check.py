"""What is wrong with a catalog as a whole: every agent is resolved once; refs that nobody uses are checked too.

Large catalogs are mostly plain: known servers, declared headers, text values. ``_Plain`` sees in one cheap look that
resolution would have nothing to say about such an agent, and only the others are resolved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from outfitter.catalog import Agent, Catalog, HeaderType, ServerEntry, ServerRef, ServerUses
from outfitter.errors import OutfitterError, Refused
from outfitter.resolution.plan import Notice
from outfitter.resolution.resolve import resolve

# Six capabilities and the agent with 1 KiB each on top of 6 KiB of defaults stay below what a server may be sent.
_FEW = 6
_SHORT = 1024


@dataclass(frozen=True, slots=True)
class CatalogCheck:
    """The problems that would refuse a run, and the notices that would not."""

    problems: tuple[OutfitterError, ...]
    notices: tuple[Notice, ...]


def check_catalog(catalog: Catalog) -> CatalogCheck:
    """Everything that resolution would complain about, for every agent."""
    problems: list[OutfitterError] = list(_stale_capability_refs(catalog))
    notices: dict[Notice, None] = {}
    plain = _Plain(catalog)
    for agent in catalog.agents.values():
        if plain.is_plain(agent):
            continue
        try:
            notices.update(dict.fromkeys(resolve(agent, catalog).notices))
        except Refused as refused:
            problems.extend(refused.problems)
    unique = {(problem.code, str(problem)): problem for problem in problems}
    return CatalogCheck(tuple(unique.values()), tuple(notices))


def _stale_capability_refs(catalog: Catalog) -> Iterator[OutfitterError]:
    used = {name for agent in catalog.agents.values() for name in agent.capabilities}
    for capability in catalog.capabilities.values():
        if capability.name in used:
            continue
        for alias, use in capability.servers.items():
            if isinstance(use, ServerRef) and use.ref is not None and use.ref not in catalog.servers:
                where = f"capability '{capability.name}' ({capability.source}) alias '{alias}'"
                try:
                    catalog.server(use.ref, where=where)
                except OutfitterError as error:
                    yield error


@dataclass(frozen=True, slots=True)
class _Plain:
    """Which agents need no resolving: a yes is certain, a no means only that resolution must decide."""

    catalog: Catalog
    texts: dict[str, frozenset[str] | None] = field(default_factory=dict[str, frozenset[str] | None])

    def is_plain(self, agent: Agent) -> bool:
        """Whether resolving the agent can give no problem and no notice."""
        if len(agent.capabilities) > _FEW:
            return False
        refs: dict[str, str] = {}
        for name in agent.capabilities:
            capability = self.catalog.capabilities.get(name)
            if capability is None or not self._are_plain(capability.servers, refs):
                return False
        return self._are_plain(agent.servers, refs)

    def _are_plain(self, uses: ServerUses, refs: dict[str, str]) -> bool:
        for alias, use in uses.items():
            if not isinstance(use, ServerRef):
                return False
            ref = refs.get(alias) if use.ref is None else refs.setdefault(alias, use.ref)
            if ref is None or (use.ref is not None and use.ref != ref):
                return False
            texts = self._texts_of(ref)
            if texts is None or (use.headers and not _are_texts(use, texts)):
                return False
        return True

    def _texts_of(self, ref: str) -> frozenset[str] | None:
        """The headers of an entry that any level may set to any text; None when the entry itself is not plain."""
        if ref not in self.texts:
            entry = self.catalog.servers.get(ref)
            self.texts[ref] = None if entry is None else _plain_texts(entry)
        return self.texts[ref]


def _plain_texts(entry: ServerEntry) -> frozenset[str] | None:
    texts = frozenset(
        name
        for name, schema in entry.header_schema.items()
        if schema.type is HeaderType.STRING and not (schema.locked or schema.narrows or schema.internal)
    )
    if not entry.is_approved or any(
        type(value) is not str or name not in texts for name, value in entry.default_headers.items()
    ):
        return None
    if sum(len(name) + len(str(value)) for name, value in entry.default_headers.items()) > _FEW * _SHORT:
        return None
    unmet = {name for name, schema in entry.header_schema.items() if schema.required} - set(entry.default_headers)
    return None if unmet else texts


def _are_texts(use: ServerRef, texts: frozenset[str]) -> bool:
    """Whether every header is set to a short text, so that neither type nor size can be a problem."""
    size = 0
    for name, value in use.headers.items():
        if type(value) is not str or name not in texts:
            return False
        size += len(name) + len(value)
    return size <= _SHORT
