"""How a view becomes a rendered prompt: texts joined; tools, servers, policies and resources gathered.

One pass in reading order. Only sections that are shown whole contribute.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

from outfitter.errors import PromptValidationError
from outfitter.policy import ToolPolicy
from outfitter.prompt.disclosure import RESERVED_TOOLS, disclosing_tools
from outfitter.prompt.overrides import PromptOverrides, override_tools
from outfitter.prompt.rendered import RenderedPrompt
from outfitter.prompt.servers import ServerList, settle_server
from outfitter.prompt.tree import SectionNode
from outfitter.prompt.view import Sight, View
from outfitter.tools import Tool

_log = logging.getLogger(__name__)
_DUPLICATE = "prompt.render.duplicate_resource"


@dataclass(slots=True)
class _Gathered:
    """What the sections of one rendering contribute besides their text."""

    servers: ServerList
    tools: dict[str, tuple[Tool[Any, Any], str]] = field(default_factory=dict[str, tuple[Tool[Any, Any], str]])
    policies: list[ToolPolicy] = field(default_factory=list[ToolPolicy])
    resources: dict[type, object] = field(default_factory=dict[type, object])

    def take(self, sight: Sight) -> None:
        """Add what the section brings."""
        section, where = sight.node.section, sight.node.name
        for tool in section.tools():
            self._take_tool(tool, where)
        for server in section.mcps():
            self.servers.add(settle_server(server, sight.params, where), where)
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
        elif not sight.node.is_plain:
            gathered.take(sight)
    if ending is not None:
        blocks.append(ending)
    tools = override_tools((tool for tool, _ in gathered.tools.values()), overrides)
    return RenderedPrompt(
        text="\n\n".join(blocks),
        tools=(*tools, *disclosing_tools(prompt, view, closed)) if closed else tools,
        mcps=gathered.servers.all(),
        policies=tuple(gathered.policies),
        resources=gathered.resources,
        summarised=tuple(node.name for node in closed),
    )
