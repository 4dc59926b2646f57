"""How a view becomes a rendered prompt: texts joined; tools, servers, policies and resources gathered.

One pass in reading order. Only sections that are shown whole contribute.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Any

from outfitter.calls import META_NAMES
from outfitter.errors import PromptValidationError
from outfitter.policy import ToolPolicy
from outfitter.prompt.disclosure import RESERVED_TOOLS, disclosing_tools, known_below
from outfitter.prompt.overrides import PromptOverrides, override_tools
from outfitter.prompt.rendered import RenderedPrompt
from outfitter.prompt.servers import ServerList, settle_server
from outfitter.prompt.tree import SectionNode
from outfitter.prompt.view import Sight, View
from outfitter.tools import SearchedTool, Tool, searching_tools

_log = logging.getLogger(__name__)
_DUPLICATE = "prompt.render.duplicate_resource"


@dataclass(slots=True)
class _Gathered:
    """What the sections of one rendering contribute besides their text."""

    servers: ServerList
    tools: dict[str, tuple[Tool[Any, Any], str]] = field(default_factory=dict[str, tuple[Tool[Any, Any], str]])
    policies: list[ToolPolicy] = field(default_factory=list[ToolPolicy])
    resources: dict[type, object] = field(default_factory=dict[type, object])
    searched: list[SearchedTool] = field(default_factory=list[SearchedTool])
    searched_servers: set[str] = field(default_factory=set[str])

    def take(self, sight: Sight) -> None:
        """Add what the section brings."""
        section, where = sight.node.section, sight.node.name
        searched = section.searched()
        self.searched += [SearchedTool(tool) for tool in searched]
        for tool in section.tools():
            if tool not in searched:
                self._take_tool(tool, where)
        for server in section.mcps():
            self.servers.add(settle_server(server, sight.params, where), where)
            if section.tool_search:
                self.searched_servers.add(server.name)
        self.policies += [policy for policy in section.policies() if all(policy is not own for own in self.policies)]
        for kind, resource in section.resources().items():
            if self.resources.setdefault(kind, resource) != resource:
                told = "%s: section '%s' brings another %s; the first one is used"
                _log.warning(told, _DUPLICATE, where, kind.__name__, extra={"event": _DUPLICATE})

    def _take_tool(self, tool: Tool[Any, Any], where: str) -> None:
        check_reserved(tool, where)
        first, owner = self.tools.setdefault(tool.name, (tool, where))
        if first is not tool:
            message = f"sections '{owner}' and '{where}' both have a tool '{tool.name}'"
            raise PromptValidationError(message, hint="rename one of them, or give a server another tool_prefix")


def check_reserved(tool: Tool[Any, Any], where: str) -> None:
    """Refuse a tool with a name that disclosure needs."""
    if tool.name in RESERVED_TOOLS:
        raise PromptValidationError(f"section '{where}': the tool name '{tool.name}' is reserved")


def _find_tools(gathered: _Gathered) -> tuple[Tool[Any, Any], ...]:
    """The tools by which the others are found, where any are searched."""
    if not gathered.searched:
        return ()
    taken = next((name for name in gathered.tools if name in META_NAMES), None)
    if taken is not None:
        where = gathered.tools[taken][1]
        raise PromptValidationError(f"section '{where}': the tool name '{taken}' is reserved where tools are searched")
    return searching_tools(gathered.searched)


def render_view(
    view: View, *, prompt: str, is_strict: bool, overrides: PromptOverrides, ending: str | None = None
) -> RenderedPrompt[Any]:
    """The prompt as this view shows it; ``ending`` is the text that comes last."""
    gathered = _Gathered(ServerList(is_strict))
    blocks: list[str] = []
    closed: list[SectionNode] = []
    for sight in view.walk():
        blocks.append(view.text(sight))
        if not sight.is_whole:
            closed.append(sight.node)
            gathered.searched += known_below(view, sight.node)
        elif not sight.node.is_plain:
            gathered.take(sight)
    if ending is not None:
        blocks.append(ending)
    tools = override_tools((tool for tool, _ in gathered.tools.values()), overrides)
    said = override_tools((one.tool for one in gathered.searched), overrides)
    gathered.searched = [replace(one, tool=tool) for one, tool in zip(gathered.searched, said, strict=True)]
    return RenderedPrompt(
        text="\n\n".join(blocks),
        tools=(*tools, *_find_tools(gathered), *disclosing_tools(prompt, view, closed)),
        mcps=gathered.servers.all(),
        policies=tuple(gathered.policies),
        resources=gathered.resources,
        summarised=tuple(node.name for node in closed),
        searched=tuple(gathered.searched),
        searched_servers=frozenset(gathered.searched_servers),
    )
