"""A stdio server that writes a line to a file each time it is started; the file and the script are its arguments."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from outfitter.prompt import MCPServer
from outfitter.testing import Script


def counting_server(log: Path, name: str = "counted", script: Script | None = None) -> MCPServer:
    """A definition whose starts can be counted."""
    args = (__file__, str(log), "--script", (script or Script()).to_json())
    return MCPServer.stdio(name, sys.executable, args)


def starts(log: Path) -> int:
    """How often it was started."""
    return len(log.read_text().splitlines()) if log.exists() else 0


if __name__ == "__main__":
    with Path(sys.argv.pop(1)).open("a", encoding="utf-8") as file:
        file.write("started\n")
    runpy.run_module("outfitter.testing.stdio_server", run_name="__main__")
