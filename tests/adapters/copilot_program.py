"""The real program of Copilot, and variables in which it finds nothing of this machine and nobody's login."""

from __future__ import annotations

import fcntl
import os
import subprocess
from functools import cache

from tests.upstream.real import PLACE, installed

COPILOT_PROGRAM = PLACE / "node" / "node_modules" / "@github" / "copilot-linux-x64" / "copilot"
_CACHE = PLACE / "copilot-cache"


@cache
def copilot_env() -> dict[str, str]:
    """Its variables. It unpacks itself on its first start: once for all tests, and not by two of them at once."""
    program = installed(COPILOT_PROGRAM)
    _CACHE.mkdir(exist_ok=True)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(_CACHE),
        "XDG_CACHE_HOME": str(_CACHE),
        "LANG": "C.UTF-8",
        "NO_PROXY": "127.0.0.1,localhost",
        "COPILOT_AUTO_UPDATE": "false",
    }
    with (PLACE / "copilot.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run([program, "--version"], env=env, check=True, capture_output=True, timeout=240)
    return env
