"""The program of a prompted run: reads its document, evaluates the prompt with an adapter, tells what it does.

It is started by ``prompted`` and speaks as any other program of an executor does. It reaches servers by the gateway and
nothing else, with the token of its run. Standard output is for events alone: what a library prints goes to stderr.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from outfitter.basics import Secret
from outfitter.calls import ToolInvoked
from outfitter.catalog import MCPServer
from outfitter.errors import Invalid, OutfitterError, Unavailable
from outfitter.prompt import MarkdownSection, Prompt, PromptTemplate
from outfitter.session import Session
from outfitter.tools import Deadline

if TYPE_CHECKING:
    from outfitter.adapters import Adapter, PromptResponse

Document: TypeAlias = Mapping[str, Any]
Say: TypeAlias = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class _Instructions:
    text: str


@dataclass(frozen=True, slots=True)
class _Task:
    task: str


def main() -> int:
    """The exit code of the program: 0 when the model has answered."""
    say = _speaker()
    try:
        document: Document = json.load(sys.stdin)
        response = asyncio.run(_evaluate(document, say))
    except OutfitterError as error:
        sys.stderr.write(f"[{error.code}] {error}\n")
        return 1
    usage = response.usage
    say({"type": "usage", "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens})
    if not response.is_complete:
        sys.stderr.write(f"the model has not answered ({response.stop_reason.value}): {response.detail}\n")
        return 1
    say({"type": "result", "result": response.text})
    return 0


def _speaker() -> Say:
    """Writes events where standard output was, which is kept for them."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(event: Mapping[str, Any]) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    return say


async def _evaluate(document: Document, say: Say) -> PromptResponse[None]:
    session = Session()
    session.dispatcher.subscribe(ToolInvoked, lambda event: _tell(say, event))
    deadline = Deadline.after(float(document["seconds"]))
    return await _adapter(document).aevaluate(_prompt(document), session=session, deadline=deadline)


def _tell(say: Say, event: ToolInvoked) -> None:
    told = {"name": event.name, "server": event.mcp_server, "seconds": round(event.duration, 3)}
    say({"type": "tool", **told, "outcome": type(event.outcome).__name__.lower()})


def _prompt(document: Document) -> Prompt[None]:
    """What the model reads: the agent's instructions, then the task; both are text and never a template."""
    task = MarkdownSection[_Task](title="Task", key="task", template="$task")
    template = PromptTemplate(ns="outfitter.runs", key="run", sections=[task])
    if not document["system_prompt"]:
        return Prompt(template, _Task(document["prompt"]))
    first = MarkdownSection[_Instructions](title="Instructions", key="instructions", template="$text")
    template = PromptTemplate(ns="outfitter.runs", key="run", sections=[first, task])
    return Prompt(template, _Instructions(document["system_prompt"]), _Task(document["prompt"]))


def _adapter(document: Document) -> Adapter:
    kind, model = document["executor"]["type"], document["executor"]["model"]
    if not model:
        raise Invalid(f"the executor '{kind}' names no model", hint='"executor": {"type": …, "model": "…"}')
    return _MAKERS[kind](model, document["mcp"])


def _servers(mcp: Document) -> list[MCPServer]:
    headers = {"Authorization": Secret(f"Bearer {mcp['token']}")}
    return [MCPServer.http(alias, url, headers=headers) for alias, url in mcp["servers"].items()]


def _openai(model: str, mcp: Document) -> Adapter:
    return _named("OpenAIAdapter", "openai")(model, mcp_servers=_servers(mcp))


def _litellm(model: str, mcp: Document) -> Adapter:
    return _named("LiteLLMAdapter", "litellm")(model, mcp_servers=_servers(mcp))


def _claude(model: str, mcp: Document) -> Adapter:
    config = _named("ClaudeAgentSDKClientConfig", "claude")(route="gateway", **_route(mcp))
    return _named("ClaudeAgentSDKAdapter", "claude")(model, client_config=config)


def _copilot(model: str, mcp: Document) -> Adapter:
    config = _named("CopilotClientConfig", "copilot")(provider=_provider(), **_route(mcp))
    return _named("CopilotAdapter", "copilot")(model, client_config=config, route="gateway")


def _provider() -> Mapping[str, Any] | None:
    """Whose model Copilot asks, by the variables of its own program; None is GitHub."""
    place = os.environ.get("COPILOT_PROVIDER_BASE_URL")
    if not place:
        return None
    names = {"type": "TYPE", "api_key": "API_KEY", "wire_api": "WIRE_API"}
    said = {field: os.environ.get(f"COPILOT_PROVIDER_{name}") for field, name in names.items()}
    return {"type": "openai", "base_url": place} | {field: value for field, value in said.items() if value}


def _route(mcp: Document) -> dict[str, Any]:
    """The gateway for an SDK that connects by itself; it knows the servers by their names."""
    route = _named("GatewayRoute", "claude")(mcp["url"], mcp["token"])
    return {"gateway": route, "mcp_servers": [MCPServer.http(alias, url) for alias, url in mcp["servers"].items()]}


def _named(name: str, extra: str) -> Callable[..., Any]:
    try:
        found: Callable[..., Any] = getattr(importlib.import_module("outfitter.adapters"), name)
    except (AttributeError, ImportError):
        hint = f"pip install 'outfitter[{extra}]'"
        raise Unavailable(f"this installation has no {name}", hint=hint) from None
    return found


_MAKERS: Mapping[str, Callable[[str, Document], Adapter]] = {
    "claude-code": _claude,
    "copilot": _copilot,
    "litellm": _litellm,
    "openai": _openai,
}

if __name__ == "__main__":
    sys.exit(main())
