"""A model provider on loopback that plays a script: a real HTTP server, so that a real SDK can be pointed at it.

It speaks OpenAI's Responses and Chat Completions and Anthropic's Messages, whole or streamed as it is asked. It runs in
a thread of its own, for blocking and asynchronous code and for other processes alike. When the script has ended, a
further request is refused with HTTP 400, which no SDK repeats. Requests that ask the model for nothing (which models
there are, how many tokens a text has) take no turn: they are in ``asides``.
"""

from __future__ import annotations

import itertools
import json
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from outfitter.testing.model_request import ModelRequest
from outfitter.testing.model_streams import write_stream
from outfitter.testing.model_turns import ModelFails, ModelHangs, ModelTurn
from outfitter.testing.model_wires import WIRES, Json

_VERSION = "/v1"
_COUNTING = "/messages/count_tokens"
_MODELS: Json = {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0, "owned_by": "script"}]}
_WAIT_SECONDS = 60.0


class ScriptedModel:
    """The endpoint. ``url`` is the base URL for an SDK, ``requests`` is what the model was asked, in its order."""

    def __init__(self, *turns: ModelTurn) -> None:
        """It listens when its block is entered."""
        self.requests: list[ModelRequest] = []
        self.asides: list[ModelRequest] = []
        self.over = threading.Event()
        self._turns = list(turns)
        self._ids = itertools.count(1)
        self._came = threading.Condition()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="scripted-model", daemon=True)

    @property
    def url(self) -> str:
        """Where an SDK finds it."""
        return f"{self.origin}{_VERSION}"

    @property
    def origin(self) -> str:
        """Where an SDK finds it that adds the version to the path itself, as Anthropic's do."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

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

    def do_HEAD(self) -> None:
        """Say that somebody is there."""
        self._reply(200, "application/json", b"")

    def do_GET(self) -> None:
        """Say which models there are."""
        request = self._request({})
        self._aside(request, _MODELS if request.path.startswith("/models") else None)

    def do_POST(self) -> None:
        """Answer with the next turn of the script."""
        written = self._body()
        request = self._request(json.loads(written or b"{}"))
        if request.path not in WIRES:
            self._aside(request, {"input_tokens": len(written) // 4} if request.path == _COUNTING else None)
            return
        turn = self.model.next_turn(request)
        if isinstance(turn, ModelHangs):
            self.model.over.wait(_WAIT_SECONDS)
            turn = ModelFails(503, "closed")
        if isinstance(turn, ModelFails):
            self._fail(turn)
            return
        answer = WIRES[request.path](turn, str(request.body.get("model")), self.model.make_id)
        if request.body.get("stream"):
            self._reply(200, "text/event-stream", write_stream(request.path, answer))
        else:
            self._say(200, answer)

    def _aside(self, request: ModelRequest, answer: Json | None) -> None:
        self.model.asides.append(request)
        if answer is None:
            self._fail(ModelFails(404, f"no API at {request.path}"))
        else:
            self._say(200, answer)

    def _request(self, body: Json) -> ModelRequest:
        path = self.path.partition("?")[0].removeprefix(_VERSION)
        return ModelRequest(path, {name.lower(): value for name, value in self.headers.items()}, body)

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("transfer-encoding") or ""):
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _fail(self, turn: ModelFails) -> None:
        self._say(turn.status, {"type": "error", "error": {"type": "scripted", "message": turn.message, "code": None}})

    def _say(self, status: int, data: Json) -> None:
        self._reply(status, "application/json", json.dumps(data).encode())

    def _reply(self, status: int, kind: str, payload: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)
