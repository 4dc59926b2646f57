"""A model provider on loopback that plays a script: a real HTTP server, so that a real SDK can be pointed at it.

It speaks OpenAI's Responses and Chat Completions. It runs in a thread of its own, for blocking and asynchronous code
and for other processes alike. When the script has ended, a further request is refused with HTTP 400, which no SDK
repeats.
"""

from __future__ import annotations

import itertools
import json
import threading
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from outfitter.testing.model_turns import ModelFails, ModelHangs, ModelTurn
from outfitter.testing.model_wires import WIRES, Json

_VERSION = "/v1"
_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request as it reached the provider."""

    path: str
    headers: dict[str, str] = field(repr=False)
    """Under their names in lower case."""
    body: Json

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that the model was offered."""
        offered: list[Json] = self.body.get("tools") or []
        return tuple(str((tool.get("function") or tool).get("name")) for tool in offered)

    @property
    def answers(self) -> tuple[str, ...]:
        """What the model was told about the calls it made, in the order it was told."""
        said: list[Json] = self.body.get("messages") or self.body.get("input") or []
        chat = [str(item.get("content")) for item in said if item.get("role") == "tool"]
        return (*chat, *(str(item.get("output")) for item in said if item.get("type") == "function_call_output"))

    @property
    def text(self) -> str:
        """The whole body as text."""
        return json.dumps(self.body, ensure_ascii=False)


class ScriptedModel:
    """The endpoint. ``url`` is the base URL for an SDK, ``requests`` is what came, in its order."""

    def __init__(self, *turns: ModelTurn) -> None:
        """It listens when its block is entered."""
        self.requests: list[ModelRequest] = []
        self.over = threading.Event()
        self._turns = list(turns)
        self._ids = itertools.count(1)
        self._came = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="scripted-model", daemon=True)

    @property
    def url(self) -> str:
        """Where an SDK finds it."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{_VERSION}"

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Let go whoever still waits, and close."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for(self, count: int) -> bool:
        """Wait until so many requests have come; whether they have."""
        with self._came:
            return self._came.wait_for(lambda: len(self.requests) >= count, _WAIT_SECONDS)

    def next_turn(self, request: ModelRequest) -> ModelTurn:
        """Keep the request and take the turn that answers it."""
        with self._came:
            self.requests.append(request)
            self._came.notify_all()
            return self._turns.pop(0) if self._turns else ModelFails(400, "the script has ended")

    def make_id(self, prefix: str) -> str:
        """An id that nothing else has."""
        return f"{prefix}_{next(self._ids):04d}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: ScriptedModel) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, model))

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer goes out in one piece and at once: otherwise a delayed acknowledgement adds 40 ms to every turn.
    wbufsize = -1
    disable_nagle_algorithm = True

    def __init__(self, model: ScriptedModel, *connection: Any) -> None:  # noqa: ANN401 - what the server hands on
        self.model = model
        super().__init__(*connection)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class gives it
        """Nobody reads a log here."""

    def do_POST(self) -> None:
        """Answer with the next turn of the script."""
        model = self.model
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        path = self.path.partition("?")[0].removeprefix(_VERSION)
        turn = model.next_turn(ModelRequest(path, {name.lower(): value for name, value in self.headers.items()}, body))
        if isinstance(turn, ModelHangs):
            model.over.wait(_WAIT_SECONDS)
            turn = ModelFails(503, "closed")
        if path not in WIRES:
            turn = ModelFails(404, f"no API at {path}")
        if isinstance(turn, ModelFails):
            self._reply(turn.status, {"error": {"type": "scripted", "message": turn.message, "code": None}})
        else:
            self._reply(200, WIRES[path](turn, str(body.get("model")), model.make_id))

    def _reply(self, status: int, data: Json) -> None:
        payload = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)
