"""What the model reads: sections, templates, and what they render to.

    git = MarkdownSection(title="Git", key="git", template="Inspect it.", mcps=[MCPServer.npm("git", "…")])
    rendered = Prompt(PromptTemplate(ns="demo", key="review", sections=[git])).render()
    rendered.text, rendered.tools, rendered.mcps

``MCPServer`` is the catalog's, offered here because sections are written with it.
"""

from outfitter.catalog import MCPServer
from outfitter.prompt.disclosure import RESERVED_TOOLS, OpenedSections
from outfitter.prompt.external import ExternalToolBundle, ExternalToolProvider, ExternalToolSpec
from outfitter.prompt.markdown import MarkdownSection
from outfitter.prompt.output import StructuredOutput
from outfitter.prompt.override_files import load_overrides, save_overrides
from outfitter.prompt.overrides import PromptOverrides, SectionOverride, ToolOverride, tool_hash
from outfitter.prompt.prompt import Prompt, RenderOptions
from outfitter.prompt.rendered import PromptDescriptor, RenderedPrompt
from outfitter.prompt.section import (
    EnabledPredicate,
    Section,
    SectionOptions,
    SectionVisibility,
    VisibilitySelector,
)
from outfitter.prompt.template import PromptTemplate
from outfitter.prompt.tree import SectionNode

__all__ = [
    "RESERVED_TOOLS",
    "EnabledPredicate",
    "ExternalToolBundle",
    "ExternalToolProvider",
    "ExternalToolSpec",
    "MCPServer",
    "MarkdownSection",
    "OpenedSections",
    "Prompt",
    "PromptDescriptor",
    "PromptOverrides",
    "PromptTemplate",
    "RenderOptions",
    "RenderedPrompt",
    "Section",
    "SectionNode",
    "SectionOptions",
    "SectionOverride",
    "SectionVisibility",
    "StructuredOutput",
    "ToolOverride",
    "VisibilitySelector",
    "load_overrides",
    "save_overrides",
    "tool_hash",
]
