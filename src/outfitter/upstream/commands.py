"""Which command lines are refused whatever they do: code given as an argument, and secrets that everybody could read.

A program that runs what its arguments say cannot be approved by name, and arguments show in process listings. Pure;
``launch`` asks before it prepares a start.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from outfitter.basics import looks_sensitive
from outfitter.resolution import Variable, parse_template

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "ash", "busybox", "cmd", "powershell", "pwsh"})
_WRAPPERS = frozenset({"env", "xargs", "sudo", "su", "doas", "nohup", "setsid", "nice", "timeout", "script", "eval"})
_CODE_FLAGS = {
    "python": frozenset({"-c"}),
    "pypy": frozenset({"-c"}),
    "node": frozenset({"-e", "--eval", "-p", "--print", "-r", "--require", "--import"}),
    "bun": frozenset({"-e", "--eval", "-p", "--print", "-r", "--preload"}),
    "deno": frozenset({"eval"}),
    "perl": frozenset({"-e", "-E"}),
    "ruby": frozenset({"-e"}),
    "php": frozenset({"-r"}),
    "npx": frozenset({"-c", "--call"}),
    "npm": frozenset({"-c", "--call"}),
    "uvx": frozenset({"--from", "--with"}),
}
_VERSION = re.compile(r"[\d.]+$")
_EXTENSION = re.compile(r"\.(exe|cmd|bat)$", re.IGNORECASE)


def inline_code_fault(command: str, args: Sequence[str]) -> str | None:
    """Why the command line could run anything; None when it names what it runs."""
    name = _VERSION.sub("", _EXTENSION.sub("", PurePath(command).name.lower()))
    if name in _SHELLS:
        return f"'{name}' is a shell, which runs whatever its arguments say"
    if name in _WRAPPERS:
        return f"'{name}' starts another program, which is the one to name"
    flags = _CODE_FLAGS.get(name, frozenset())
    for arg in args:
        flag = arg.partition("=")[0]
        if flag in flags:
            return f"'{name} {flag}' runs what the next argument says"
    return None


def secret_argument(args: Sequence[str]) -> str | None:
    """The first variable that looks like a secret and would stand in the arguments; None when there is none."""
    return next((name for arg in args for name in secret_variables(arg)), None)


def secret_variables(arg: str) -> tuple[str, ...]:
    """The variables of one argument that look like secrets."""
    parts = parse_template(arg)
    return tuple(part.name for part in parts if isinstance(part, Variable) and looks_sensitive(part.name))
