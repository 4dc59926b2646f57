"""What exactly is started for a stdio server: program, arguments, environment, folder. Nothing is started here.

``prepare_launch`` turns an armed server into a ``Launch`` or says why it may or can not be started. This is where the
secrets of a stdio server are revealed, because a program can only be given text; ``hidden`` keeps them out of quotes.
``processes`` starts a Launch, ``sandbox`` wraps one.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from outfitter.basics import quote
from outfitter.catalog import PinMode
from outfitter.errors import CommandForbidden, InvalidServer, SpawnFailed
from outfitter.policy import unpinned_package
from outfitter.resolution import ArmedServer, ArmedStdio
from outfitter.upstream.commands import inline_code_fault, secret_argument
from outfitter.upstream.programs import ProgramRegister
from outfitter.upstream.sandbox import Room, Sandbox, wrap_argv

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
INHERITED_ON_WINDOWS = ("SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "USERNAME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")

# Variables that make a program load or run something else than what was approved.
_STEERING = frozenset(
    {
        "PATH", "ENV", "BASH_ENV", "SHELLOPTS", "BASHOPTS", "IFS", "PS4", "PROMPT_COMMAND", "ZDOTDIR",
        "GLIBC_TUNABLES", "GCONV_PATH",
        "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONUSERBASE", "PYTHONBREAKPOINT",
        "PYTHONPLATLIBDIR", "PYTHONWARNINGS",
        "NODE_OPTIONS", "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "NPM_CONFIG_SCRIPT_SHELL",
        "NPM_CONFIG_NODE_OPTIONS",
        "PERL5LIB", "PERL5OPT", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "PHPRC", "PHP_INI_SCAN_DIR",
        "LUA_INIT",
        "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "DOTNET_STARTUP_HOOKS",
        "CORECLR_PROFILER_PATH",
        "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH",
        "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT",
        "COMSPEC", "PATHEXT",
    }
)  # fmt: skip
_STEERING_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_SHORTEST_HIDDEN = 4


@dataclass(frozen=True, slots=True)
class SpawnRules:
    """What a server may be started with."""

    allowed_env: frozenset[str] = frozenset()
    """Variables that are refused unless they are named here, such as PYTHONPATH."""
    roots: tuple[Path, ...] = ()
    """The folders a declared cwd must lie in; none given means anywhere."""
    sandbox: Sandbox = "none"
    readable: tuple[Path, ...] = ()
    """What a sandboxed server may read below the hidden HOME and temporary folders."""
    programs: ProgramRegister | None = None
    """Where the program of each server is recorded, so that another one is noticed."""
    inline_code: bool = False
    """Whether a command line may carry code, as ``sh -c`` does."""
    secret_args: bool = False
    """Whether variables that look like secrets may stand in arguments, where process listings show them."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A program that is ready to be started."""

    server: str
    program: Path
    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    cwd: Path | None
    hidden: tuple[str, ...] = field(repr=False)
    """Texts that no quote of the program's output may show, the longest first."""

    @property
    def where(self) -> str:
        """Which server an error is about."""
        return f"server '{self.server}'"


def prepare_launch(
    server: ArmedServer, rules: SpawnRules | None = None, environment: Mapping[str, str] | None = None
) -> Launch:
    """What to start for a server; CommandForbidden or SpawnFailed says why not."""
    rules = rules or SpawnRules()
    armed, alias = server.transport, server.planned.alias
    where = f"server '{alias}'"
    if not isinstance(armed, ArmedStdio):
        raise InvalidServer("only a stdio server has a program to start", where=where)
    try:
        _check_command_line(server, armed, rules)
        env = clean_environment(armed, os.environ if environment is None else environment, rules.allowed_env)
        cwd = _working_folder(armed, rules.roots)
        program = _find_program(server, armed.command.reveal(), cwd, env.get("PATH", os.defpath))
        if rules.programs is not None:
            definition = server.planned.definition.value
            package = unpinned_package(_written_command(server), definition.args)
            wanted = package if definition.pins is PinMode.APPROVE else None
            rules.programs.check(definition.name, _written_command(server), program, wanted)
        argv = (str(program), *(arg.reveal() for arg in armed.args))
        room = Room(program, cwd, env.get("HOME"), env.get("PATH", os.defpath), rules.readable)
        argv = wrap_argv(_sandbox_of(server, rules), argv, room)
    except (CommandForbidden, SpawnFailed) as error:
        error.where = where
        raise
    return Launch(alias, program, argv, env, cwd, _hidden_texts(server, armed))


def _sandbox_of(server: ArmedServer, rules: SpawnRules) -> Sandbox:
    """The stricter of what the rules and the server's definition say."""
    return "isolated" if "isolated" in {rules.sandbox, server.planned.definition.value.sandbox} else "none"


def _check_command_line(server: ArmedServer, armed: ArmedStdio, rules: SpawnRules) -> None:
    fault = inline_code_fault(armed.command.reveal(), [arg.reveal() for arg in armed.args])
    if fault is not None and not rules.inline_code:
        raise CommandForbidden(fault, hint="name the program itself, or have an administrator allow inline code")
    name = secret_argument(server.planned.definition.value.args)
    if name is not None and not rules.secret_args:
        message = f"the arguments hold ${{{name}}}, which process listings would show"
        raise CommandForbidden(message, hint="pass it in env")


def clean_environment(armed: ArmedStdio, inherited: Mapping[str, str], allowed: frozenset[str]) -> dict[str, str]:
    """The few variables that every program gets, and the declared ones; CommandForbidden for one that steers it."""
    for name in armed.env:
        if _is_steering(name) and name not in allowed:
            raise CommandForbidden(
                f"the variable {quote(name)} may not be declared: it can make the program run something else",
                hint="leave it out, or have an administrator allow it by name",
            )
    names = (*INHERITED, *(INHERITED_ON_WINDOWS if os.name == "nt" else ()))
    kept = {name: inherited[name] for name in names if name in inherited}
    return kept | {name: secret.reveal() for name, secret in armed.env.items()}


def _is_steering(name: str) -> bool:
    known = name.upper() if os.name == "nt" or name.lower().startswith("npm_config_") else name
    return known in _STEERING or known.startswith(_STEERING_PREFIXES)


def _working_folder(armed: ArmedStdio, roots: Iterable[Path]) -> Path | None:
    if armed.cwd is None:
        return None
    try:
        folder = Path(armed.cwd.reveal()).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise SpawnFailed("its cwd does not exist", hint="create the folder or correct 'cwd'") from None
    if not folder.is_dir():
        raise SpawnFailed("its cwd is not a folder", hint="correct 'cwd'")
    allowed = [root.resolve() for root in roots]
    if allowed and not any(folder.is_relative_to(root) for root in allowed):
        raise CommandForbidden("its cwd lies outside the allowed folders", hint="links are followed before this check")
    return folder


def _find_program(server: ArmedServer, command: str, cwd: Path | None, path: str) -> Path:
    """The absolute path of the program. Links are kept: a virtual environment's python is one."""
    written = quote(_written_command(server))
    if "/" in command or os.sep in command:
        found = Path(os.path.normpath((cwd or Path.cwd()) / command))
        if not found.is_file():
            raise SpawnFailed(f"the program {written} does not exist", hint="correct 'command', or install it")
        if not os.access(found, os.X_OK):
            raise SpawnFailed(f"the program {written} is not executable", hint="make it executable (chmod +x)")
        return found
    # A relative entry of PATH would make the program depend on the folder it is started from.
    folders = [folder for folder in path.split(os.pathsep) if Path(folder).is_absolute()]
    found_there = shutil.which(command, path=os.pathsep.join(folders)) if folders else None
    if found_there is None:
        raise SpawnFailed(
            f"the program {written} is not on PATH", hint="install it, or write its absolute path; no shell is used"
        )
    return Path(found_there)


def _written_command(server: ArmedServer) -> str:
    return server.planned.definition.value.command or ""


def _hidden_texts(server: ArmedServer, armed: ArmedStdio) -> tuple[str, ...]:
    """Every declared variable's value, and whatever was filled into a text, in the forms a program prints them."""
    definition = server.planned.definition.value
    texts: set[str] = set()
    for name, secret in armed.env.items():
        texts |= {secret.reveal(), *_filled_parts(definition.env[name], secret.reveal())}
    for written, secret in zip(definition.args, armed.args, strict=True):
        texts.update(_filled_parts(written, secret.reveal()))
    texts |= {line for text in texts for line in text.splitlines()}
    texts |= {repr(text)[1:-1] for text in texts}
    return tuple(sorted((text for text in texts if len(text) >= _SHORTEST_HIDDEN), key=len, reverse=True))


def _filled_parts(written: object, filled: str) -> tuple[str, ...]:
    """What stands where the placeholders stood; the whole text when that cannot be told."""
    if not isinstance(written, str):
        return (filled,)
    literals = _PLACEHOLDER.split(written)
    if len(literals) == 1:
        return ()
    match = re.fullmatch("(.*?)".join(map(re.escape, literals)), filled, re.DOTALL)
    return (filled,) if match is None else match.groups()
