"""What a server's answer to a tool call means: a text for the model, a value for the program, the answer itself.

Pure. The text is everything a model can read, other content is named; it has a limit. The value is an instance of what
the tool promises, or the answer as it is when it promises nothing. An answer that breaks its own promise is a failure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from outfitter.calls import ToolResult
from outfitter.catalog import JsonValue
from outfitter.errors import UpstreamError
from outfitter.schemas import Fault, Shape

_MOST_FAULTS = 8
_KILO = 1000
_BASE64 = 3 / 4


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """How much of an answer is turned into text and into typed values; the answer itself stays whole in ``raw``."""

    characters: int = 100_000
    nodes: int = 200_000
    """The values in a structured answer above which it is checked but stays as it is."""


DEFAULT_LIMITS = ResultLimits()


def read_answer(
    answer: Mapping[str, Any], promise: Shape | None, limits: ResultLimits = DEFAULT_LIMITS
) -> ToolResult[Any]:
    """The result of a call that was answered."""
    raw = cast("Mapping[str, JsonValue]", answer)
    text = _text(answer.get("content"), limits.characters)
    if answer.get("isError") is True:
        return ToolResult(text or "the tool failed and said nothing", None, success=False, code="tool_error", raw=raw)
    message = text or "Success"
    if promise is None:
        return ToolResult(message, raw, raw=raw)
    fault = _promise_fault(answer, promise)
    if fault is not None:
        return ToolResult(fault, None, success=False, code="schema_mismatch", raw=raw)
    structured = cast("JsonValue", answer["structuredContent"])
    is_large = _is_larger(structured, limits.nodes)
    return ToolResult(message, raw if is_large else promise.load(structured), raw=raw)


def _promise_fault(answer: Mapping[str, Any], promise: Shape) -> str | None:
    if "structuredContent" not in answer:
        return "the tool promises structured content and sent none"
    faults = promise.faults(cast("JsonValue", answer["structuredContent"]))
    return f"the result does not fit the tool's output schema: {_told(faults)}" if faults else None


def read_refusal(error: UpstreamError) -> ToolResult[Any]:
    """The result of a call that the server answered with an error of the protocol: no such tool, unfit arguments."""
    said: dict[str, JsonValue] = {"code": error.rpc_code, "message": error.message}
    if error.data is not None:
        said["data"] = cast("JsonValue", error.data)
    return ToolResult(error.message or "MCP error", None, success=False, code=error.code, raw={"error": said})


def _told(faults: tuple[Fault, ...]) -> str:
    left = len(faults) - _MOST_FAULTS
    told = "; ".join(map(str, faults[:_MOST_FAULTS]))
    return f"{told}; and {left} more" if left > 0 else told


def _is_larger(value: object, most: int) -> bool:
    """Whether there are more values in it than so many; no more than that are looked at."""
    waiting: list[Iterator[object]] = [iter((value,))]
    seen = 0
    while waiting:
        for item in waiting[-1]:
            seen += 1
            if seen > most:
                return True
            if isinstance(item, dict | list):
                inside = cast("dict[str, object] | list[object]", item)
                waiting.append(iter(inside.values() if isinstance(inside, dict) else inside))
                break
        else:
            waiting.pop()
    return False


# ── text ──


def _text(content: object, most: int) -> str:
    """The blocks as one text, cut at the limit with a word about what is missing."""
    parts: list[str] = []
    size = left_out = 0
    for block in cast("list[object]", content) if isinstance(content, list) else ():
        part = block_text(cast("dict[str, Any]", block)) if isinstance(block, dict) else ""
        if not part:
            continue
        kept = part[: max(0, most - size)]
        left_out += len(part) - len(kept)
        size += len(kept)
        if kept:
            parts.append(kept)
    if left_out:
        parts.append(f"[{left_out} more characters were left out]")
    return "\n".join(parts)


def block_text(block: Mapping[str, Any]) -> str:
    """One block of content as a model can read it: its text, or what it is."""
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in {"image", "audio"}:
        return f"[{kind} {block.get('mimeType', 'of unknown type')}, {_size(block.get('data'))}]"
    if kind == "resource_link":
        return f"[link to {block.get('title') or block.get('name') or 'a resource'}: {block.get('uri', '')}]"
    if kind == "resource":
        inside = block.get("resource")
        return _resource_text(cast("dict[str, Any]", inside)) if isinstance(inside, dict) else "[resource]"
    return f"[{kind or 'content without a type'}]"


def _resource_text(resource: Mapping[str, Any]) -> str:
    if isinstance(resource.get("text"), str):
        return resource["text"]
    return f"[resource {resource.get('uri', '')} {resource.get('mimeType', '')}, {_size(resource.get('blob'))}]"


def _size(encoded: object) -> str:
    size = int(len(encoded) * _BASE64) if isinstance(encoded, str) else 0
    return f"{size} bytes" if size < _KILO else f"{size / _KILO:.0f} kB"
