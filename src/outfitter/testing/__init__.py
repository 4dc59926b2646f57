"""How do I test my own agents? Scriptable MCP servers, well-behaved or not, on every transport and in both eras.

    script = Script(faults=(Hang(When(name="echo", times=1)),))
    server = stdio_server(script)                    # an MCPServer that starts it as a process
    async with serve_http(script) as serving:        # or on loopback: serving.url, serving.sse_url, serving.hits
        ...

``script`` says what a server is, ``faults`` how it misbehaves. ``behaviour`` and ``tools`` write what it answers as
steps, ``conversation`` carries them out, ``stdio_server`` and ``http_server`` are the wires.

    with ScriptedModel(model_calls("git_status"), ModelSays("all clean")) as model:    # a provider on loopback
        OpenAIAdapter("any", client_config=OpenAIClientConfig(base_url=model.url, api_key="any"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outfitter.testing.faults import (
    Banner,
    Crash,
    DeadOnArrival,
    DuplicateReply,
    EndlessCursor,
    Fault,
    Garbage,
    Hang,
    Huge,
    IgnoreTermination,
    LateReply,
    ListStorm,
    Redirect,
    Reset,
    SessionLoss,
    Slow,
    SlowStart,
    Status,
    StderrFlood,
    When,
    WrongId,
)
from outfitter.testing.model_turns import (
    ModelCall,
    ModelCalls,
    ModelFails,
    ModelHangs,
    ModelSays,
    ModelTurn,
    ModelUsage,
    model_calls,
)
from outfitter.testing.script import (
    BUILT_IN_TOOLS,
    SLOPPY_TOOLS,
    Script,
    ScriptedPrompt,
    ScriptedResource,
    ScriptedTool,
)

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from outfitter.catalog import MCPServer
    from outfitter.testing.http_server import HttpServing
    from outfitter.testing.model_endpoint import ScriptedModel
    from outfitter.testing.model_request import ModelRequest

__all__ = [
    "BUILT_IN_TOOLS",
    "SLOPPY_TOOLS",
    "Banner",
    "Crash",
    "DeadOnArrival",
    "DuplicateReply",
    "EndlessCursor",
    "Fault",
    "Garbage",
    "Hang",
    "Huge",
    "IgnoreTermination",
    "LateReply",
    "ListStorm",
    "ModelCall",
    "ModelCalls",
    "ModelFails",
    "ModelHangs",
    "ModelRequest",
    "ModelSays",
    "ModelTurn",
    "ModelUsage",
    "Redirect",
    "Reset",
    "Script",
    "ScriptedModel",
    "ScriptedPrompt",
    "ScriptedResource",
    "ScriptedTool",
    "SessionLoss",
    "Slow",
    "SlowStart",
    "Status",
    "StderrFlood",
    "When",
    "WrongId",
    "http_server_definition",
    "model_calls",
    "serve_http",
    "stdio_server",
]


def stdio_server(script: Script | None = None, *, name: str | None = None) -> MCPServer:
    """A definition that starts the scripted server with this interpreter."""
    import sys

    from outfitter.catalog import MCPServer

    played = script or Script()
    args = ("-m", "outfitter.testing.stdio_server", "--script", played.to_json())
    return MCPServer.stdio(name or played.name, sys.executable, args)


def http_server_definition(name: str, url: str) -> MCPServer:
    """A definition of a scripted server that is served at this URL; one that ends in ``/sse`` is an SSE server."""
    from outfitter.catalog import MCPServer

    return MCPServer.sse(name, url) if url.endswith("/sse") else MCPServer.http(name, url)


def serve_http(script: Script | None = None, *, port: int = 0) -> AbstractAsyncContextManager[HttpServing]:
    """Serve a script on loopback, in this process, while the block runs."""
    from outfitter.testing.http_server import serve_http as serve

    return serve(script, port=port)


def __getattr__(name: str) -> object:
    """Load the scripted model on first use: a scripted server must start quickly, and an HTTP server is heavy."""
    if name not in {"ModelRequest", "ScriptedModel"}:
        raise AttributeError(f"module 'outfitter.testing' has no attribute '{name}'")
    from outfitter.testing import model_endpoint

    return getattr(model_endpoint, name)
