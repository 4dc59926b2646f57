"""Find a server in a registry that speaks the official API, and add it to a catalog. Nothing is started."""

import json
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PACKAGE = {
    "registryType": "pypi",
    "identifier": "mcp-server-time",
    "version": "2025.9.25",
    "transport": {"type": "stdio"},
    "packageArguments": [{"type": "named", "name": "--local-timezone", "description": "Such as Europe/Berlin",
                          "isRequired": True}],
}  # fmt: skip
TIME = {"name": "io.github.example/time", "description": "What time it is", "version": "1.4.0", "packages": [PACKAGE]}


class Registry(BaseHTTPRequestHandler):
    """A registry with one server; a real one is asked in the same way."""

    def do_GET(self) -> None:
        """Answer with the list, or with the one."""
        is_list = self.path.startswith("/v0.1/servers?")
        body = json.dumps({"servers": [{"server": TIME}]} if is_list else {"server": TIME}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's word
        """Say nothing."""


with tempfile.TemporaryDirectory() as folder, HTTPServer(("127.0.0.1", 0), Registry) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"

    def outfitter(*words: str) -> str:
        """What a command prints."""
        command = ["outfitter", "registry", *words, "--registry", address]
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout

    print(outfitter("search", "time"))
    print(outfitter("add", "io.github.example/time"))
    written = json.loads(Path(folder, "outfitter/mcp-servers/time.json").read_text(encoding="utf-8"))
    assert written["args"][0] == "mcp-server-time==2025.9.25", written
    server.shutdown()
