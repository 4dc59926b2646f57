"""A template with parameters: what is rendered, as often as needed, into what a model reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar, Unpack

from outfitter.basics import suggest
from outfitter.errors import PromptValidationError
from outfitter.prompt.disclosure import opened_in
from outfitter.prompt.overrides import NO_OVERRIDES, PromptOverrides, check_tool_names, override_bodies
from outfitter.prompt.params import by_type
from outfitter.prompt.rendered import RenderedPrompt
from outfitter.prompt.rendering import render_view
from outfitter.prompt.section import SectionVisibility
from outfitter.prompt.template import PromptTemplate
from outfitter.prompt.view import View, forced_by
from outfitter.session import Session
from outfitter.tools import Budget, BudgetTracker, Deadline

if TYPE_CHECKING:
    from outfitter.upstream import Pool, SyncPool

T = TypeVar("T")


class RenderOptions(TypedDict, total=False):
    """What rendering may be told besides the parameters."""

    session: Session | None
    """Whose opened sections count, and what predicates are given."""
    deadline: Deadline | None
    budget: Budget | BudgetTracker | None
    visibility: Mapping[str, SectionVisibility] | None
    """Sections to open or close by their path, whatever else says."""


class Prompt(Generic[T]):
    """A template, the parameters bound to it, and the overrides that hold for it."""

    def __init__(self, template: PromptTemplate[T], *params: object, overrides: PromptOverrides | None = None) -> None:
        """Bind the parameters, each found by its dataclass; refuse overrides that do not fit."""
        self.template = template
        self.structured_output = template.structured_output
        self.overrides = overrides or NO_OVERRIDES
        self._params = self._known(params)
        self._bodies = override_bodies(template.sections, self.overrides)
        check_tool_names(template.sections, self.overrides)

    def _known(self, params: Iterable[object]) -> dict[type, object]:
        table = by_type(params)
        for kind in table.keys() - self.template.param_types:
            hint = suggest(kind.__name__, (known.__name__ for known in self.template.param_types))
            raise PromptValidationError(f"no section of '{self.template.id}' takes {kind.__name__}", hint=hint)
        return table

    @property
    def params(self) -> tuple[object, ...]:
        """The bound parameters."""
        return tuple(self._params.values())

    def bind(self, *params: object) -> Prompt[T]:
        """The same prompt with these parameters, in the place of others of their types."""
        table = {**self._params, **self._known(params)}
        return Prompt(self.template, *table.values(), overrides=self.overrides)

    def render(
        self,
        *params: object,
        discover_mcp_tools: bool = False,
        pool: SyncPool | None = None,
        **options: Unpack[RenderOptions],
    ) -> RenderedPrompt[T]:
        """What the model reads; ``discover_mcp_tools`` connects to the servers and lists what they offer."""
        rendered = self._render(params, options)
        if not discover_mcp_tools:
            return rendered
        from outfitter.prompt.discovery import discover

        return replace(rendered, mcp_tools=discover(rendered.mcps, pool))

    async def arender(
        self,
        *params: object,
        discover_mcp_tools: bool = False,
        pool: Pool | None = None,
        **options: Unpack[RenderOptions],
    ) -> RenderedPrompt[T]:
        """What the model reads, with the servers asked in the running loop."""
        rendered = self._render(params, options)
        if not discover_mcp_tools:
            return rendered
        from outfitter.prompt.discovery import adiscover

        return replace(rendered, mcp_tools=await adiscover(rendered.mcps, pool))

    def _render(self, params: tuple[object, ...], options: RenderOptions) -> RenderedPrompt[T]:
        unknown = options.keys() - RenderOptions.__annotations__.keys()
        if unknown:
            raise TypeError(f"render got unknown arguments: {', '.join(sorted(unknown))}")
        template = self.template
        rendered = render_view(
            self._view(params, options.get("session"), options.get("visibility") or {}),
            prompt=template.id,
            is_strict=template.strict_mcps,
            overrides=self.overrides,
            ending=template.ending,
        )
        return replace(
            rendered,
            structured_output=self.structured_output,
            deadline=options.get("deadline"),
            budget=options.get("budget"),
            descriptor=template.descriptor,
            session=options.get("session"),
        )

    def _view(
        self, params: tuple[object, ...], session: Session | None, asked: Mapping[str, SectionVisibility]
    ) -> View:
        nodes = self.template.sections
        names = {node.name for node in nodes} if asked else ()
        for name in asked:
            if name not in names:
                raise PromptValidationError(f"no section '{name}' to show", hint=suggest(name, names))
        table = {**self._params, **self._known(params)} if params else self._params
        forced = forced_by(nodes, opened_in(session, self.template.id), asked)
        return View(nodes, table, session, forced, self._bodies)
