"""The private place of one evaluation: an empty HOME and working folder, the variables, the program as it is started.

All of it is gone at the end. Values of variables stand in the environment of the program alone; the small script that
starts it names the variables of the host that are left out, and never a value.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from outfitter.adapters.claude.config import ClaudeAgentSDKClientConfig
from outfitter.errors import NeedsAuth, Unavailable

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_KEPT = frozenset(
    {
        "PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_OAUTH_TOKEN",
    }
)  # fmt: skip
_KEPT_PREFIXES = ("ANTHROPIC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_MAX_")
_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_SCRIPT = """#!/bin/sh
echo $$ >"$0.pid"
{unset}exec {program} "$@"
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the program runs, and with which variables."""

    cwd: Path
    home: Path
    program: Path
    env: Mapping[str, str] = field(repr=False)

    @property
    def pid(self) -> int | None:
        """The process of the program; None while there is none."""
        try:
            return int(Path(f"{self.program}.pid").read_text())
        except (OSError, ValueError):
            return None


@asynccontextmanager
async def private_place(config: ClaudeAgentSDKClientConfig) -> AsyncGenerator[Place]:
    """A place for one evaluation; NeedsAuth when nothing says how the program logs in."""
    folder = Path(await anyio.to_thread.run_sync(lambda: tempfile.mkdtemp(prefix="outfitter-claude-")))
    try:
        yield _furnished(folder, config)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


def _furnished(folder: Path, config: ClaudeAgentSDKClientConfig) -> Place:
    home = config.isolation.home or folder / "home"
    cwd = config.cwd or folder / "work"
    for made in (folder / "home", folder / "work"):
        made.mkdir(mode=0o700)
    env = _variables(config, home)
    left_out = () if config.isolation.include_host_env else _left_out(env)
    _check_login(config, env, left_out)
    program = folder / "claude"
    unset = f"unset {' '.join(left_out)}\n" if left_out else ""
    program.write_text(_SCRIPT.format(unset=unset, program=_quoted(_find_program(config))))
    program.chmod(0o700)
    return Place(cwd, home, program, env)


def _variables(config: ClaudeAgentSDKClientConfig, home: Path) -> dict[str, str]:
    env = {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "MAX_STRUCTURED_OUTPUT_RETRIES": "2",
    }
    if shutil.which("bwrap") is not None:
        # Without bubblewrap the program would not start; servers it starts get a clean environment either way.
        env["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"] = "1"
    given = {
        "ANTHROPIC_BASE_URL": config.base_url,
        "ANTHROPIC_API_KEY": config.api_key,
        "CLAUDE_CODE_MAX_RETRIES": None if config.max_retries is None else str(config.max_retries),
    }
    return {**env, **{name: value for name, value in given.items() if value is not None}, **config.isolation.env}


def _left_out(env: Mapping[str, str]) -> tuple[str, ...]:
    """The variables of this process that the program does not get."""
    return tuple(
        name
        for name in sorted(os.environ)
        if name not in env
        and name not in _KEPT
        and not name.startswith(_KEPT_PREFIXES)
        and _IDENTIFIER.fullmatch(name) is not None
    )


def _check_login(config: ClaudeAgentSDKClientConfig, env: Mapping[str, str], left_out: tuple[str, ...]) -> None:
    known = {**os.environ, **env}.keys() - set(left_out)
    is_elsewhere = any(name.startswith("CLAUDE_CODE_USE_") for name in known)
    if config.isolation.home is None and not is_elsewhere and not known.intersection(_LOGINS):
        hint = "set ANTHROPIC_API_KEY, give ClaudeAgentSDKClientConfig(api_key=…), or IsolationConfig(home=…)"
        raise NeedsAuth("there is no API key for the model provider", where="claude", hint=hint)


def _find_program(config: ClaudeAgentSDKClientConfig) -> str:
    import claude_agent_sdk

    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    found = config.cli_path or (bundled if bundled.is_file() else shutil.which("claude"))
    if found is None:
        hint = "install Claude Code, or give ClaudeAgentSDKClientConfig(cli_path=…)"
        raise Unavailable("the program of Claude Code is not there", where="claude", hint=hint)
    return str(found)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
