"""Which definition stands in for a server in a test? One that records it, one that replays it, one that spoils it.

Each starts ``outfitter`` with this interpreter, so it can be given to everything that takes an ``MCPServer``. Secrets
travel in the environment, armed by whoever connects: they stand in no command line.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from outfitter.basics import Secret, SecretRef
from outfitter.catalog import EnvValue, MCPServer, StdioTransport, json_text
from outfitter.errors import Invalid, NotFound
from outfitter.testing.fault_rates import FaultRates, FaultReport

_HEADER = "OUTFITTER_HEADER_"


def recorded_server(server: MCPServer, file: Path) -> MCPServer:
    """The same server, with everything that is said kept in a file; each connection adds to it."""
    hides = [part for name in server.env for part in ("--hide", name)]
    return _behind(server, "record", "--out", _literal(file), "--append", *hides)


def replayed_server(file: Path, server: MCPServer | None = None, *, report: Path | None = None) -> MCPServer:
    """What was recorded in a file, as a server; with the name and the filters of ``server``, if that is given."""
    told = () if report is None else ("--report", _literal(report))
    transport = StdioTransport(sys.executable, ("-m", "outfitter", "replay", _literal(file), *told))
    plain = MCPServer("cassette", transport)
    return plain if server is None else replace(server, transport=transport, env={}, args_factory=None)


class FaultProxy:
    """A server with a bad connection, as long as the block lasts.

    ``server`` is what a client is given; ``report`` is what was done to it, once the client is gone.
    """

    def __init__(self, server: MCPServer, rates: FaultRates) -> None:
        self._behind = server
        self._rates = rates
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        """Ready; nothing is started before a client connects."""
        self._folder = tempfile.TemporaryDirectory(prefix="outfitter-faults-")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Forget the report."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    @property
    def _file(self) -> Path:
        if self._folder is None:
            raise Invalid("the proxy is not open", hint="use it in a block: with FaultProxy(server, rates) as proxy")
        return Path(self._folder.name, "report.json")

    @property
    def server(self) -> MCPServer:
        """The same server behind the proxy."""
        return _behind(self._behind, "proxy", "--faults", str(self._rates), "--report", _literal(self._file))

    @property
    def report(self) -> FaultReport:
        """What was done so far by every proxy that has ended."""
        if not self._file.exists():
            raise NotFound("no client of the proxy is gone yet", hint="close the connection, then ask for the report")
        return FaultReport.from_json(self._file.read_text(encoding="utf-8"))


def _behind(server: MCPServer, *typed: str) -> MCPServer:
    """The definition of a command of ours with the server behind it."""
    if server.args_factory is not None:
        message = f"server '{server.name}' makes its arguments from the parameters of a section"
        raise Invalid(message, hint="settle them first: server.with_args(…)")
    if isinstance(server.transport, StdioTransport):
        inner, env = ("--", server.transport.command, *server.transport.args), server.env
    else:
        values = list(server.transport.headers.items())
        env = {f"{_HEADER}{place}": _env_value(value) for place, (_, value) in enumerate(values)}
        named = [f"{name}=$${{{_HEADER}{place}}}" for place, (name, _) in enumerate(values)]
        inner = ("--url", server.transport.url, *(part for text in named for part in ("--header", text)))
    return _with_command(server, ("-m", "outfitter", *typed, *inner), env)


def _with_command(server: MCPServer, args: tuple[str, ...], env: Mapping[str, EnvValue]) -> MCPServer:
    transport = StdioTransport(sys.executable, args, server.cwd)
    return replace(server, transport=transport, env=dict(env))


def _env_value(value: object) -> EnvValue:
    return value if isinstance(value, str | Secret | SecretRef) else json_text(value)  # pyright: ignore[reportArgumentType] - a header holds JSON


def _literal(path: Path) -> str:
    """A path in which nothing is filled in."""
    return str(path.absolute()).replace("${", "$${")
