"""A server's prompt as a section: its messages as text, in which nothing is read as a template."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from outfitter.bridge.results import block_text
from outfitter.prompt import MarkdownSection

_UNSAFE = re.compile(r"[^a-z0-9._-]+")
_LONGEST_KEY = 64


def write_prompt(server: str, prompt: str, answer: Mapping[str, Any]) -> MarkdownSection[None]:
    """The section of a prompt that a server gave."""
    key = _UNSAFE.sub("-", f"mcp.{server}.{prompt}".lower())[:_LONGEST_KEY]
    title = " ".join(f"{server}: {prompt}".split())
    return MarkdownSection(title=title, key=key, template=_messages_text(answer).replace("$", "$$"))


def _messages_text(answer: Mapping[str, Any]) -> str:
    """The text of the messages; who speaks is said where several do."""
    messages = answer.get("messages")
    found = [cast("dict[str, Any]", one) for one in cast("list[object]", messages or []) if isinstance(one, dict)]
    texts = [(str(one.get("role") or "user"), _content_text(one.get("content"))) for one in found]
    if len({role for role, _ in texts}) <= 1:
        return "\n\n".join(text for _, text in texts)
    return "\n\n".join(f"**{role}**: {text}" for role, text in texts)


def _content_text(content: object) -> str:
    blocks = cast("list[object]", content) if isinstance(content, list) else [content]
    return "\n".join(block_text(cast("dict[str, Any]", block)) for block in blocks if isinstance(block, dict))
