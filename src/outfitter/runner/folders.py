"""The private folder of a run: files that a client program wants, for its owner only, gone when the run is.

A generated client file holds the addresses of the run's servers and the name of a variable where the token is, not the
token.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import anyio.to_thread

from outfitter.errors import StorageUnavailable
from outfitter.runner.orders import WorkOrder

TOKEN_VARIABLE, CONFIG_VARIABLE, FOLDER_VARIABLE = "OUTFITTER_RUN_TOKEN", "OUTFITTER_MCP_CONFIG", "OUTFITTER_RUN_FOLDER"
TEMPORARY = ("TMPDIR", "TMP", "TEMP")
"""Where a program puts what it needs for a while: gone with the run."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", re.ASCII)


def name_of(run_id: str) -> str:
    """What a file of this run is called; an id may hold anything, a file name may not."""
    return run_id if _PLAIN.fullmatch(run_id) else f"run~{hashlib.sha256(run_id.encode()).hexdigest()[:40]}"


@dataclass(frozen=True, slots=True)
class PrivateFolder:
    """A folder of this run alone, as long as the block lasts."""

    parent: Path
    run_id: str

    def __enter__(self) -> Path:
        """Make it, empty."""
        path = self.parent / name_of(self.run_id)
        try:
            self.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(mode=0o700)
        except OSError as error:
            raise StorageUnavailable(f"no folder can be made for a run: {error.strerror}", where=str(path)) from None
        return path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.parent / name_of(self.run_id), ignore_errors=True)


async def empty_folder(path: Path) -> None:
    """Remove what a runner that was killed has left of its runs' folders; nobody else may use them."""
    await anyio.to_thread.run_sync(lambda: shutil.rmtree(path, ignore_errors=True))


def client_files(order: WorkOrder, folder: Path) -> dict[str, str]:
    """Write what a client program reads, and name it: the variables to start the program with."""
    file = folder / "mcp.json"
    headers = {"Authorization": f"Bearer ${{{TOKEN_VARIABLE}}}"}
    servers = {alias: {"type": "http", "url": url, "headers": headers} for alias, url in order.gateway.servers.items()}
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        json.dump({"mcpServers": servers}, opened, indent=2)
    return {
        TOKEN_VARIABLE: order.gateway.token,
        CONFIG_VARIABLE: str(file),
        FOLDER_VARIABLE: str(folder),
        **dict.fromkeys(TEMPORARY, str(folder)),
    }
