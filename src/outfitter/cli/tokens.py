"""What tool definitions cost a model, printed: a table of the heaviest tools, or one line."""

from __future__ import annotations

import click

from outfitter.app import LiveTools
from outfitter.calls import definition_tokens
from outfitter.catalog import SearchMode
from outfitter.cli.console import print_json, print_table, visible
from outfitter.resolution import RunPlan, ToolWeights, WeighedTool

_HEAVIEST = 3


def weigh_live(plan: RunPlan, live: LiveTools) -> ToolWeights:
    """What the tools cost that servers have just told; those of the others are not known."""
    shown = live.names.shown
    tools = [
        WeighedTool(key.server, key.tool, shown[key], definition_tokens({**tool, "name": shown[key]}))
        for key, tool in live.tools.items()
    ]
    tools.sort(key=lambda tool: (-tool.tokens, tool.shown))
    answered = {tool.server for tool in tools}
    unseen = tuple(alias for alias in plan.servers if alias not in answered)
    return ToolWeights(plan.agent.name, plan.agent.tool_search, tuple(tools), unseen)


def print_weights(weights: ToolWeights, *, as_json: bool) -> None:
    """The heaviest tools first, and what they cost together."""
    if as_json:
        print_json(weights.to_json())
        return
    print_table(("TOKENS", "TOOL", "SERVER"), [(str(tool.tokens), tool.shown, tool.server) for tool in weights.tools])
    click.echo(summary_of(weights))


def summary_of(weights: ToolWeights) -> str:
    """One line: what all definitions cost, and what of them a model reads."""
    text = f"about {weights.total} tokens for the definitions of {len(weights.tools)} tools"
    if weights.is_searched:
        return f"{text}; the model reads {weights.read}: it searches them"
    if weights.search.mode is SearchMode.AUTO:
        return f"{text}; searched above {weights.search.threshold}"
    return text


def seen_line(weights: ToolWeights) -> str:
    """The same of tools as they were last seen, with the heaviest."""
    heaviest = ", ".join(f"{tool.shown} {tool.tokens}" for tool in weights.tools[:_HEAVIEST])
    missing = f"; not seen yet: {', '.join(weights.unseen)}" if weights.unseen else ""
    return visible(f"As last seen, {summary_of(weights)} (heaviest: {heaviest}){missing}")
