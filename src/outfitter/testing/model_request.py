"""What reached a scripted model: one request, read alike for every API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from outfitter.testing.model_wires import Json


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request as it reached the provider."""

    path: str
    headers: dict[str, str] = field(repr=False)
    """Under their names in lower case."""
    body: Json

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model was offered; one of a group under the group's name and a dot."""
        offered: list[Json] = self.body.get("tools") or []
        return tuple(name for tool in offered for name in _names(tool))

    @property
    def answers(self) -> tuple[str, ...]:
        """What the model was told about the calls it made, in the order it was told."""
        said: list[Json] = self.body.get("messages") or self.body.get("input") or []
        return tuple(answer for item in said if isinstance(cast("object", item), dict) for answer in _answers(item))

    @property
    def text(self) -> str:
        """The whole body as text."""
        return json.dumps(self.body, ensure_ascii=False)


def _names(tool: Json) -> Iterator[str]:
    if tool.get("type") == "namespace":
        grouped: list[Json] = tool.get("tools") or []
        yield from (f"{tool.get('name')}.{name}" for inner in grouped for name in _names(inner))
    else:
        yield str((tool.get("function") or tool).get("name"))


def _answers(item: Json) -> Iterator[str]:
    content: Any = item.get("content")
    if item.get("role") == "tool":
        yield _plain(content)
    elif item.get("type") == "function_call_output":
        yield _plain(item.get("output"))
    elif isinstance(content, list):
        blocks = cast("list[Json]", content)
        yield from (_plain(block.get("content")) for block in blocks if block.get("type") == "tool_result")


def _plain(content: object) -> str:
    """The text of a content; blocks of text one after the other."""
    if not isinstance(content, list):
        return str(content)
    return "\n".join(str(block.get("text", block)) for block in cast("list[Json]", content))
