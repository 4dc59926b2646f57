"""Where Copilot's program runs: its path, its folders, its variables. What was made for it is gone at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from outfitter.adapters.copilot.config import NAME, CopilotClientConfig
from outfitter.errors import Unavailable

_KEPT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "XDG_CACHE_HOME"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "USERPROFILE"),
)
_LOGINS = ("GH_TOKEN", "GITHUB_TOKEN", "COPILOT_GITHUB_TOKEN", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS")
_PATH_VARIABLE = "COPILOT_CLI_PATH"


@dataclass(frozen=True, slots=True)
class Place:
    """The program, its folders and its variables."""

    program: str
    cwd: str
    home: str | None
    env: Mapping[str, str] = field(repr=False)


@asynccontextmanager
async def private_place(config: CopilotClientConfig) -> AsyncGenerator[Place]:
    """A place for one evaluation."""
    program = _find_program(config)
    folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="outfitter-copilot-")))
    try:
        for made in ("work", "home"):
            (folder / made).mkdir(mode=0o700)
        # Whoever asks GitHub is logged in where Copilot usually keeps it.
        home = config.home or (None if config.provider is None else folder / "home")
        yield Place(
            program, str(config.cwd or folder / "work"), None if home is None else str(home), _variables(config)
        )
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


def _find_program(config: CopilotClientConfig) -> str:
    given = config.cli_path or (config.env or os.environ).get(_PATH_VARIABLE)
    found = shutil.which(str(given)) if given else None
    if found is None:
        hint = f"npm install @github/copilot, then CopilotClientConfig(cli_path=…) or {_PATH_VARIABLE}"
        raise Unavailable("the program of Copilot is not there", where=NAME, hint=hint)
    return found


def _variables(config: CopilotClientConfig) -> dict[str, str]:
    names = (*_KEPT, *(() if config.provider is not None else _LOGINS))
    given = {name: os.environ[name] for name in names if name in os.environ} if config.env is None else config.env
    return {"COPILOT_AUTO_UPDATE": "false", **given}
