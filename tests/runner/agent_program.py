"""An agent for tests: a program that reads its document and does what the prompt says, one word and its argument.

It is started as a process, as somebody's own agent would be; it knows nothing of Outfitter.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_SLEEPER = "import os, signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "


def say(**event: object) -> None:
    """Tell an event."""
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def tell_document(document: dict[str, Any], _: str) -> object:
    """Everything that is known here."""
    seen = {name: value for name, value in os.environ.items() if name.startswith(("OUTFITTER", "MY_"))}
    config = Path(os.environ["OUTFITTER_MCP_CONFIG"])
    mode = [oct(path.stat().st_mode & 0o777) for path in (config, config.parent)]
    return {
        "document": document,
        "argv": sys.argv[1:],
        "env": seen,
        "mode": mode,
        "config": json.loads(config.read_text()),
    }


def count(_: dict[str, Any], argument: str) -> object:
    """So many events, with a pause after each."""
    number, pause = argument.split()
    for one in range(int(number)):
        say(type="tick", number=one)
        time.sleep(float(pause))
    return int(number)


def spawn(_: dict[str, Any], argument: str) -> object:
    """A child, and a grandchild that has left group and session; all of them stay unless they are ended."""
    child = subprocess.Popen([sys.executable, "-c", f"{_SLEEPER}time.sleep(600)"])
    away = subprocess.Popen(
        [sys.executable, "-c", f"{_SLEEPER}os.fork() and os._exit(0); os.setsid(); time.sleep(600)"],
        start_new_session=True,
    )
    away.wait()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(argument).write_text(f"{os.getpid()} {child.pid}")
    say(type="spawned", pid=os.getpid())
    time.sleep(600)
    return None


def note(document: dict[str, Any], argument: str) -> object:
    """A line in a file for each time it is executed, then a while."""
    file, pause = argument.split()
    with Path(file).open("a") as lines:
        lines.write(document["run_id"] + "\n")
    say(type="noted")
    time.sleep(float(pause))
    say(type="woken")
    return "noted"


def call_tool(document: dict[str, Any], argument: str) -> object:
    """What the echo tool of a server answers at the gateway."""
    version = "2026-07-28"
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": {"name": "agent", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "echo", "arguments": {"text": "hi"}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Authorization": f"Bearer {document['mcp']['token']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "echo",
    }
    url = urlsplit(str(document["mcp"]["servers"][argument]))
    connection = http.client.HTTPConnection(url.netloc, timeout=60)
    connection.request("POST", url.path, json.dumps(body), headers)
    return json.load(connection.getresponse())


def be_bad(_: dict[str, Any], __: str) -> object:
    """Ten megabytes, no UTF-8, and what a terminal obeys."""
    say(type="big", text="x" * 10_000_000)
    say(type="long", text="x" * 500_000)
    say(type="red", text="\x1b[31mred\x00\x07", deep={"more": ["\x1b]0;title\x07"]})
    sys.stdout.buffer.write(b'{"type": "raw", "text": "\xff\xfe"}\n\xff\xfe\x1b[2J plain\n')
    sys.stdout.buffer.write(b'{"type": "not finished\n{"type": 7}\n[1, 2]\n')
    sys.stdout.flush()
    say(type="result", result="y" * 10_000_000 + "\x1b[0m")
    return None


def fail(document: dict[str, Any], _: str) -> object:
    """Exit with an error, and say a secret on the way."""
    sys.stderr.write("z" * 5000 + f"\x1b[31m the token is {document['mcp']['token']} and {os.environ.get('MY_KEY')}\n")
    sys.exit(3)


WORDS: dict[str, Callable[[dict[str, Any], str], object]] = {
    "document": tell_document,
    "count": count,
    "spawn": spawn,
    "note": note,
    "tool": call_tool,
    "bad": be_bad,
    "fail": fail,
}


def main() -> None:
    """Do what the prompt says; one that says nothing known is the result itself."""
    document = json.load(sys.stdin)
    word, _, argument = str(document["prompt"]).partition(" ")
    if word not in WORDS:
        sys.stdout.write(f"plain text\n{document['prompt']}\n")
        return
    result = WORDS[word](document, argument)
    if result is not None:
        say(type="result", result=result)


if __name__ == "__main__":
    main()
