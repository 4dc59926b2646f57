"""What one rendering sees: which sections are enabled, which are whole, with which parameters and which text.

Nothing is collected here; ``rendering`` does that, and ``disclosure`` looks again when a section is opened or read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from outfitter.errors import PromptValidationError
from outfitter.prompt.params import ParamTable, made_of_defaults
from outfitter.prompt.section import SectionVisibility
from outfitter.prompt.text import Text
from outfitter.prompt.tree import SectionNode
from outfitter.session import Session

OPEN_SECTIONS = "open_sections"
READ_SECTION = "read_section"


class Sight(NamedTuple):
    """One section as it is seen."""

    node: SectionNode
    params: object
    is_whole: bool


@dataclass(frozen=True, slots=True)
class View:
    """A template's sections with one set of parameters."""

    nodes: tuple[SectionNode, ...]
    params: ParamTable
    session: Session | None = None
    forced: Mapping[str, SectionVisibility] = field(default_factory=dict[str, SectionVisibility])
    """The visibility of sections that were opened or closed from outside, by name."""
    bodies: Mapping[str, Text] = field(default_factory=dict[str, Text])
    """Texts that replace those of the sections."""

    def walk(self, start: int = 0, stop: int | None = None) -> Iterator[Sight]:
        """The enabled sections in reading order; what lies below a closed one is left out."""
        nodes, index = self.nodes, start
        last = len(nodes) if stop is None else stop
        while index < last:
            node = nodes[index]
            if node.enabled is not None and not self.is_enabled(node):
                index = node.end
                continue
            params = None if node.params_type is None else self.params_of(node)
            is_whole = self._is_whole(node, params)
            yield Sight(node, params, is_whole)
            index = index + 1 if is_whole else node.end

    def is_enabled(self, node: SectionNode) -> bool:
        """Whether the section itself wants to be there."""
        choice = node.enabled
        if choice is None:
            return True
        return bool(choice.ask(self.params_of(node) if choice.wants_params else None, self.session))

    def params_of(self, node: SectionNode) -> object:
        """The parameters of the section; PromptValidationError when there are none."""
        kind = node.params_type
        if kind is None:
            return None
        found = self.params.get(kind, node.default)
        found = made_of_defaults(kind) if found is None else found
        if found is None:
            raise PromptValidationError(
                f"section '{node.name}' needs parameters of type {kind.__name__}",
                hint=f"give {kind.__name__}(…) to bind or render, or default_params to the section",
            )
        return found

    def _is_whole(self, node: SectionNode, params: object) -> bool:
        chosen = node.visibility
        if self.forced and node.name in self.forced:
            chosen = self.forced[node.name]
        elif not isinstance(chosen, SectionVisibility):
            chosen = chosen.ask(params, self.session)
        if chosen is SectionVisibility.FULL:
            return True
        if chosen != SectionVisibility.SUMMARY:
            raise PromptValidationError(f"section '{node.name}': a visibility is FULL or SUMMARY")
        if node.summary is None:
            message = f"section '{node.name}' is to be shown as its summary and has none"
            raise PromptValidationError(message, hint="give summary='…'")
        return False

    def text(self, sight: Sight) -> str:
        """The heading and what stands below it."""
        node = sight.node
        body = self._body(node, sight.params) if sight.is_whole else _told(node, sight.params)
        return f"{node.heading}\n\n{body}" if body else node.heading

    def _body(self, node: SectionNode, params: object) -> str:
        if self.bodies and node.name in self.bodies:
            return self.bodies[node.name].fill(params)
        return node.section.render_body(params)

    def opened(self, *names: str) -> View:
        """The same with these sections, and those they lie in, shown whole."""
        forced = dict(self.forced)
        places = [index for index, node in enumerate(self.nodes) if node.name in names]
        for index, node in enumerate(self.nodes):
            if any(index <= place < node.end for place in places):
                forced[node.name] = SectionVisibility.FULL
        return replace(self, forced=forced)

    def find(self, name: str) -> int | None:
        """The index of a section that is enabled with all it lies in; None when there is none."""
        for index, node in enumerate(self.nodes):
            if node.name == name:
                above = (other for other in self.nodes[: index + 1] if other.end > index)
                return index if all(self.is_enabled(other) for other in above) else None
        return None

    def read(self, index: int) -> str:
        """The whole text of one section and those below it."""
        node = self.nodes[index]
        seen = self.opened(node.name)
        return "\n\n".join(seen.text(sight) for sight in seen.walk(index, node.end))


def _told(node: SectionNode, params: object) -> str:
    summary = "" if node.summary is None else node.summary.fill(params)
    if node.opens:
        return f'{summary}\n\n(Summarised: call {OPEN_SECTIONS} with "{node.name}" to see it and use its tools.)'
    return f'{summary}\n\n(Summarised: call {READ_SECTION} with "{node.name}" to see it whole.)'


def forced_by(
    nodes: tuple[SectionNode, ...], opened: frozenset[str], asked: Mapping[str, SectionVisibility]
) -> dict[str, SectionVisibility]:
    """The visibilities from outside: what was opened, with all it lies in; what is asked now counts more."""
    whole = {*opened, *(name for name, visibility in asked.items() if visibility == SectionVisibility.FULL)}
    if not whole and not asked:
        return {}
    return {**View(nodes, {}).opened(*whole).forced, **asked}
