"""How do I test my own agents? Scriptable MCP servers, well-behaved or not, on every transport and in both eras.

    script = Script(faults=(Hang(When(name="echo", times=1)),))
    server = stdio_server(script)                    # an MCPServer that starts it as a process
    async with serve_http(script) as serving:        # or on loopback: serving.url, serving.sse_url, serving.hits
        ...

``script`` says what a server is, ``faults`` how it misbehaves. ``behaviour`` and ``tools`` write what it answers as
steps, ``conversation`` carries them out, ``stdio_server`` and ``http_server`` are the wires.

    with ScriptedModel(model_calls("git_status"), ModelSays("all clean")) as model:    # a provider on loopback
        OpenAIAdapter("any", client_config=OpenAIClientConfig(base_url=model.url, api_key="any"))

    recorded_server(server, file), replayed_server(file)                 # keep what a real one says, and play it
    with FaultProxy(server, FaultRates.parse("drop=5%,seed=7")) as proxy: ...    # the same behind a bad connection
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
    from outfitter.testing.cassettes.masking import Masker, words_of_environment
    from outfitter.testing.cassettes.matching import Playback, entry_in_words
    from outfitter.testing.cassettes.playing import open_replayer, replay_http, replay_lines
    from outfitter.testing.cassettes.replaying import Replayer
    from outfitter.testing.cassettes.running import (
        LiveServer,
        fallback_server,
        live_server,
        proxy_lines,
        record_lines,
    )
    from outfitter.testing.cassettes.writing import CassetteFile, Existing, load_cassette
    from outfitter.testing.fault_rates import Dice, FaultRates, FaultReport, Strike
    from outfitter.testing.http_server import HttpServing
    from outfitter.testing.model_endpoint import ScriptedModel
    from outfitter.testing.model_request import ModelRequest
    from outfitter.testing.stand_ins import FaultProxy, recorded_server, replayed_server

_FILES = {
    "cassettes.masking": ("Masker", "words_of_environment"),
    "cassettes.matching": ("Playback", "entry_in_words"),
    "cassettes.playing": ("open_replayer", "replay_http", "replay_lines"),
    "cassettes.replaying": ("Replayer",),
    "cassettes.running": ("LiveServer", "fallback_server", "live_server", "proxy_lines", "record_lines"),
    "cassettes.writing": ("CassetteFile", "Existing", "load_cassette"),
    "fault_rates": ("Dice", "FaultRates", "FaultReport", "Strike"),
    "model_endpoint": ("ModelRequest", "ScriptedModel"),
    "stand_ins": ("FaultProxy", "recorded_server", "replayed_server"),
}  # fmt: skip

__all__ = [
    "BUILT_IN_TOOLS",
    "SLOPPY_TOOLS",
    "Banner",
    "CassetteFile",
    "Crash",
    "DeadOnArrival",
    "Dice",
    "DuplicateReply",
    "EndlessCursor",
    "Existing",
    "Fault",
    "FaultProxy",
    "FaultRates",
    "FaultReport",
    "Garbage",
    "Hang",
    "Huge",
    "IgnoreTermination",
    "LateReply",
    "ListStorm",
    "LiveServer",
    "Masker",
    "ModelCall",
    "ModelCalls",
    "ModelFails",
    "ModelHangs",
    "ModelRequest",
    "ModelSays",
    "ModelTurn",
    "ModelUsage",
    "Playback",
    "Redirect",
    "Replayer",
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
    "Strike",
    "When",
    "WrongId",
    "entry_in_words",
    "fallback_server",
    "http_server_definition",
    "live_server",
    "load_cassette",
    "model_calls",
    "open_replayer",
    "proxy_lines",
    "record_lines",
    "recorded_server",
    "replay_http",
    "replay_lines",
    "replayed_server",
    "serve_http",
    "stdio_server",
    "words_of_environment",
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
    """Load a name from its file on first use: a scripted server must start quickly, and much of this is heavy."""
    from importlib import import_module

    for file, names in _FILES.items():
        if name in names:
            value: object = getattr(import_module(f"outfitter.testing.{file}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'outfitter.testing' has no attribute '{name}'")
