"""How a model asks for more: ``open_sections`` for sections with tools or servers, ``read_section`` for mere text.

A section with ``tool_search`` offers its tools by search, open or closed: those that are known without connecting to
anything. Opening is remembered in the session as state, so a failed call leaves nothing open; the next rendering with
that session shows the section whole. Reading changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from outfitter.basics import quote, suggest
from outfitter.calls import ToolResult
from outfitter.errors import McpConnectionError, PromptValidationError
from outfitter.prompt.tree import SectionNode
from outfitter.prompt.view import OPEN_SECTIONS, READ_SECTION, View
from outfitter.session import Session
from outfitter.tools import SearchedTool, Tool, ToolContext

RESERVED_TOOLS = frozenset({OPEN_SECTIONS, READ_SECTION})


@dataclass(frozen=True, slots=True)
class OpenedSections:
    """Which sections of a prompt were opened, and why. As a tool's value it says: render the prompt again."""

    prompt: str
    keys: tuple[str, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OpenSectionsParams:
    """What ``open_sections`` is asked with."""

    section_keys: list[str]
    reason: str


@dataclass(frozen=True, slots=True)
class ReadSectionParams:
    """What ``read_section`` is asked with."""

    section_key: str


def opened_in(session: Session | None, prompt: str) -> frozenset[str]:
    """The sections of the prompt that were opened in this session."""
    if session is None:
        return frozenset()
    return frozenset(key for entry in session[OpenedSections].all() if entry.prompt == prompt for key in entry.keys)


def known_below(view: View, closed: SectionNode) -> Iterator[SearchedTool]:
    """The tools of a closed section and those below it that are searched, as far as they are known by now."""
    start = view.nodes.index(closed)
    for node in view.nodes[start : closed.end]:
        section = node.section
        if section.tool_search and view.find(node.name) is not None:
            try:
                found = section.searched()
            except McpConnectionError:
                continue  # nothing is connected for a section that nobody has opened
            for tool in found:
                yield SearchedTool(tool, section.policies(), section.resources())


def disclosing_tools(prompt: str, view: View, closed: Iterable[SectionNode]) -> Iterable[Tool[Any, Any]]:
    """The tools by which the closed sections can be had."""
    nodes = tuple(closed)
    if any(node.opens for node in nodes):
        yield _open_tool(prompt, view, [node.name for node in nodes if node.opens])
    if not all(node.opens for node in nodes):
        yield _read_tool(view, [node.name for node in nodes if not node.opens])


def _open_tool(prompt: str, view: View, closed: list[str]) -> Tool[Any, Any]:
    def open_sections(params: OpenSectionsParams, *, context: ToolContext) -> ToolResult[OpenedSections]:
        keys = tuple(dict.fromkeys(params.section_keys))
        unknown = [key for key in keys if view.find(key) is None]
        if unknown or not keys:
            told = _unknown(unknown[0], closed) if unknown else f"no section is named ({suggest('', closed)})"
            return ToolResult[OpenedSections].error(told, code="unknown_section")
        try:
            for _ in view.opened(*keys).walk():
                """Each section that will be shown finds its parameters."""
        except PromptValidationError as error:
            return ToolResult[OpenedSections].error(f"it cannot be opened: {error}", code=error.code)
        opened = OpenedSections(prompt, keys, params.reason)
        context.session[OpenedSections].append(opened)
        names = ", ".join(keys)
        return ToolResult[OpenedSections].ok(
            opened, f"Opened: {names}. The prompt is shown again with them whole and their tools."
        )

    description = (
        "Open summarised sections of the prompt: they are shown whole and their tools become available. "
        f"Sections: {', '.join(closed)}."
    )
    return Tool[OpenSectionsParams, OpenedSections](OPEN_SECTIONS, description, open_sections, accepts_overrides=False)


def _read_tool(view: View, closed: list[str]) -> Tool[Any, Any]:
    def read_section(params: ReadSectionParams) -> ToolResult[str]:
        key = params.section_key
        index = view.find(key)
        if index is None:
            return ToolResult[str].error(_unknown(key, closed), code="unknown_section")
        if view.nodes[index].opens:
            return ToolResult[str].error(f"'{key}' has tools: open it with {OPEN_SECTIONS}", code="section_has_tools")
        text = view.read(index)
        return ToolResult[str].ok(text, text)

    description = f"Read a summarised section of the prompt whole. Sections: {', '.join(closed)}."
    return Tool[ReadSectionParams, str](READ_SECTION, description, read_section, accepts_overrides=False)


def _unknown(key: str, closed: list[str]) -> str:
    return f"there is no section {quote(key)} ({suggest(key, closed)})"
