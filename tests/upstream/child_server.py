"""A program that speaks JSON lines and does what each request's method says. Tests start it as a child."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, TextIO

SLEEPER = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"


def say(message: dict[str, Any]) -> None:
    write((json.dumps({"jsonrpc": "2.0"} | message) + "\n").encode())


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def start_sleeper(params: dict[str, Any]) -> int:
    """A grandchild that never ends by itself, in this process group or in a session of its own."""
    command = [sys.executable, "-I", "-S", "-c", SLEEPER]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=params.get("escapes", False)).pid


def flood(stream: TextIO, params: dict[str, Any]) -> None:
    piece = params.get("piece", "x" * 65536).encode()
    for _ in range(params["bytes"] // len(piece)):
        stream.buffer.write(piece)
    stream.buffer.flush()


def look(params: dict[str, Any]) -> dict[str, Any]:
    keep = {name: os.environ[name] for name in params["values"] if name in os.environ}
    names = sorted(os.environ)
    return {"names": names, "values": keep, "cwd": str(Path.cwd()), "argv": sys.argv, "pid": os.getpid()}


class Server:
    """One method per request; what it returns is the answer, None is silence."""

    def __init__(self) -> None:
        self.kept: list[tuple[object, dict[str, Any]]] = []

    def echo(self, params: dict[str, Any]) -> dict[str, Any]:
        return params

    def look(self, params: dict[str, Any]) -> dict[str, Any]:
        return look(params)

    def hang(self, params: dict[str, Any], ident: object) -> None:
        self.kept.append((ident, params))

    def answer_kept(self, params: dict[str, Any]) -> dict[str, Any]:
        for ident, kept in reversed(self.kept):
            say({"id": ident, "result": kept})
        self.kept = []
        return params

    def raw(self, params: dict[str, Any]) -> None:
        write(params["text"].encode("latin-1"))

    def raw_and_exit(self, params: dict[str, Any]) -> None:
        self.raw(params)
        os._exit(0)

    def exit(self, params: dict[str, Any]) -> None:
        sys.stderr.write(params.get("words", ""))
        sys.stderr.flush()
        os._exit(params["code"])

    def die(self, params: dict[str, Any]) -> None:
        os.kill(os.getpid(), getattr(signal, params["signal"]))

    def flood_stdout(self, params: dict[str, Any]) -> dict[str, Any]:
        flood(sys.stdout, params)
        return {"done": True}

    def flood_stderr(self, params: dict[str, Any]) -> dict[str, Any]:
        flood(sys.stderr, params)
        return {"done": True}

    def start_sleeper(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"pid": start_sleeper(params)}

    def close_stdout(self, params: dict[str, Any]) -> None:  # noqa: ARG002
        os.close(1)
        signal.pause()

    def close_stdin(self, params: dict[str, Any]) -> None:  # noqa: ARG002
        os.close(0)
        signal.pause()

    def say(self, params: dict[str, Any]) -> dict[str, Any]:
        for message in params["messages"]:
            say(message)
        return {"said": len(params["messages"])}

    def serve(self) -> None:
        while line := sys.stdin.readline():
            message = json.loads(line)
            if "method" not in message:
                say({"method": "notifications/heard", "params": message})
                continue
            act = getattr(self, message["method"])
            extra = (message["id"],) if message["method"] == "hang" else ()
            result = act(message.get("params", {}), *extra)
            if result is not None and "id" in message:
                say({"id": message["id"], "result": result})


def main() -> None:
    if "--stubborn" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--fail" in sys.argv:
        sys.exit("cannot read its configuration")
    if "--banner" in sys.argv:
        write(sys.argv[sys.argv.index("--banner") + 1].encode("latin-1"))
    Server().serve()
    if "--stubborn" in sys.argv:
        while True:
            signal.pause()


main()
