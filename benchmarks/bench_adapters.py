"""What an adapter adds to a turn, against the bare SDK with a loop of ten lines: the same model endpoint for both.

A turn is one request with its answer and the one tool that the model calls in it, in a conversation of ten such turns.
CPU of this process is counted; the scripted model is a process of its own, and answers at once. A real model takes a
thousand times as long, so this is the strictest reading of the share.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from openai import AsyncOpenAI

from benchmarks.measure import Ratio
from outfitter import MarkdownSection, Prompt, PromptTemplate, Tool
from outfitter.adapters import OpenAIAdapter

_CALLS, _ROUNDS, _WARM, _LIMIT = 10, 30, 2, 1.05
_TEXT = "Add the numbers, one after the other, and say what comes of it."
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
_ENDPOINT = f"""
import sys
from outfitter.testing import ModelSays, ScriptedModel, model_calls
turns = ([model_calls("add", {{"a": 1, "b": 2}})] * {_CALLS} + [ModelSays("three")]) * {2 * (_ROUNDS + _WARM)}
with ScriptedModel(*turns) as model:
    print(model.url, flush=True)
    sys.stdin.read()
"""


def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


async def _bare(client: AsyncOpenAI) -> str:
    tool: Any = {"type": "function", "name": "add", "description": "Add two numbers.", "parameters": _FORM}
    items: list[Any] = [{"role": "user", "content": _TEXT}]
    while True:
        answer = await client.responses.create(model="any", input=items, tools=[tool])
        items += answer.output
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        for call in calls:
            output = add(**json.loads(call.arguments))
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})


async def _fitted(client: AsyncOpenAI) -> str:
    section = MarkdownSection(title="Task", key="task", template=_TEXT, tools=[Tool.wrap(add)])
    prompt: Prompt[None] = Prompt(PromptTemplate(ns="bench", key="add", sections=[section]))
    return (await OpenAIAdapter("any", client=client).aevaluate(prompt)).text


@contextmanager
def _endpoint() -> Generator[str]:
    with subprocess.Popen(
        [sys.executable, "-c", _ENDPOINT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as model:
        assert model.stdout is not None
        yield model.stdout.readline().strip()
        model.communicate("")


async def _cpu_of(job: Callable[[AsyncOpenAI], Awaitable[str]], client: AsyncOpenAI) -> float:
    start = time.process_time()
    assert await job(client) == "three"
    return (time.process_time() - start) / (_CALLS + 1)


async def _compare(url: str) -> tuple[float, float]:
    best = [float("inf"), float("inf")]
    async with AsyncOpenAI(base_url=url, api_key="any") as client:
        for turn in range(_ROUNDS + _WARM):
            for index, job in enumerate((_fitted, _bare)):
                seconds = await _cpu_of(job, client)
                best[index] = min(best[index], seconds if turn >= _WARM else float("inf"))
    return best[0], best[1]


def measure() -> Iterator[Ratio]:
    """One ratio: a turn of an evaluated prompt, and of the bare loop."""
    with _endpoint() as url:
        subject, yardstick = anyio.run(_compare, url)
    yield Ratio("a turn of OpenAIAdapter", subject, yardstick, "the bare OpenAI SDK in a loop", _LIMIT)
