"""The playground: one tool called as an agent would call it, with that agent's filters, rules and records."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outfitter.dashboard.as_agent import as_agent
from outfitter.errors import Invalid, OutfitterError

if TYPE_CHECKING:
    from starlette.responses import Response

    from outfitter.dashboard.page import Page

_MOST = 500


async def show(page: Page) -> Response:
    """Choose an agent, then a tool."""
    return await _show(page, page.asked("agent"), page.asked("tool"))


async def call(page: Page) -> Response:
    """Call it."""
    form = await page.form()
    agent, tool, text = (form.get(name, "") for name in ("agent", "tool", "arguments"))
    try:
        arguments = _read(text)
        began = time.perf_counter()
        async with as_agent(page, agent) as one:
            answer = await one.ask("tools/call", {"name": tool, "arguments": arguments})
            took = time.perf_counter() - began
            tools = await one.tools()
    except OutfitterError as error:
        return await _show(page, agent, tool, _Tried(text), error)
    return await _show(page, agent, tool, _Tried(text, answer, took, tools))


def _read(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise Invalid(f"the arguments are no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Invalid("the arguments must be a JSON object")
    return found  # pyright: ignore[reportUnknownVariableType]


@dataclass(frozen=True, slots=True)
class _Tried:
    """What was tried, and what came of it."""

    text: str = ""
    answer: dict[str, Any] | None = None
    took: float | None = None
    tools: list[dict[str, Any]] | None = None
    """What the agent is shown, if that is known already."""


_NOTHING = _Tried()


async def _show(
    page: Page, agent: str, tool: str, tried: _Tried = _NOTHING, error: OutfitterError | None = None
) -> Response:
    agents = [one["id"] for one in (await page.api.get("/agents", limit=_MOST))["items"]]
    tools = tried.tools or []
    if agent in agents and tried.tools is None:
        try:
            async with as_agent(page, agent) as one:
                tools = await one.tools()
        except OutfitterError as refused:
            error = error or refused
    chosen = next((one for one in tools if one["name"] == tool), None)
    command = f"outfitter call {agent or 'AGENT'} {tool or 'TOOL'}"
    if tried.text.strip() not in ("", "{}"):
        command += f" {shlex.quote(tried.text)}"
    return page.render(
        "playground.html", command=command, agents=agents, agent=agent,
        tools=tools, tool=tool, chosen=chosen, tried=tried, error=error,
    )  # fmt: skip
