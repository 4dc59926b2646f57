"""The command line in this process, on a registry of this machine or on a service: what it prints, how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import anyio

from outfitter.cli import main
from outfitter.coordinator import open_access
from outfitter.storage import KeyRing, SqliteAudit, open_database
from tests.cli.registry_service import ASKED
from tests.cli.terminal import Printed

ROOT = Path(__file__).parents[2]
_MOVING = [
    (re.compile(r"oft_[a-z0-9]+_[A-Za-z0-9_-]{43}"), "TOKEN"),
    (re.compile(r"\b(run|session)-[0-9a-f]{32}"), r"\1-ID"),
    (
        re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)"),
        "",
    ),  # also one that is noted now or a moment later
    (re.compile(r"\b[0-9a-f]{12}\b"), "IDENT"),
    (re.compile(r"[─ ]{2,}"), "  "),
]


def settled(text: str) -> str:
    """The text without what differs from one time to the next."""
    for pattern, word in _MOVING:
        text = pattern.sub(word, text)
    return text


@dataclass(frozen=True, slots=True)
class Shell:
    """A folder to work in, and the registry that its commands are about."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    more: tuple[str, ...] = ()
    """What stands at the end of every command."""

    @property
    def state(self) -> Path:
        """Where this machine's registry is."""
        return self.folder / "state"

    def run(self, *args: str, stdin: str = "", **variables: str) -> Printed:
        """Run ``outfitter`` with these arguments, in this process."""
        out, err = io.StringIO(), io.StringIO()
        code = 0
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder), "OUTFITTER_STATE": str(self.state), "COLUMNS": "200",
            **self.variables, **variables,
        }  # fmt: skip
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch.object(sys, "argv", ["outfitter", *args, *self.more]),
            mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()))),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Printed(code, out.getvalue(), err.getvalue())

    def done(self, *args: str, stdin: str = "", **variables: str) -> str:
        """What a command that succeeds prints."""
        printed = self.run(*args, stdin=stdin, **variables)
        assert printed.code == 0, (args, printed)
        return printed.out

    def with_token(self, token: str | None) -> Shell:
        """The same, as somebody else."""
        kept = {name: value for name, value in self.variables.items() if name != "OUTFITTER_TOKEN"}
        return replace(self, variables=kept if token is None else {**kept, "OUTFITTER_TOKEN": token})

    def write(self, path: str, value: object) -> Path:
        """Write a file: text as it is, anything else as JSON."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return target


def local_shell(folder: Path) -> Shell:
    """A registry of this machine, and the token of its first admin."""
    shell = Shell(folder)
    shell.state.mkdir(parents=True)

    async def first_admin() -> str | None:
        async with (
            open_database(
                f"sqlite:///{shell.state / 'registry.sqlite'}", KeyRing(shell.state / "registry.keys")
            ) as base,
            open_access(base.tokens) as access,
        ):
            return await access.tokens.first_admin()

    return shell.with_token(anyio.run(first_admin))


@contextmanager
def served_shell(folder: Path) -> Generator[Shell]:
    """A registry behind a service in a process of its own, asked with the token of its first admin."""
    state = folder / "served"
    state.mkdir(parents=True)
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cli.registry_service", str(state)],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        try:
            yield Shell(folder, {"OUTFITTER_TOKEN": told["token"]}, ("--server", told["url"]))
        finally:
            _, errors = process.communicate(timeout=30)
            (folder / "service.log").write_text(errors, encoding="utf-8")


def asked_of(shell: Shell) -> list[str]:
    """What the service was asked, as method and path."""
    return (shell.folder / "served" / ASKED).read_text(encoding="utf-8").splitlines()


def record_calls(state: Path, count: int) -> None:
    """Some calls in the audit database of a state folder."""
    store = SqliteAudit(state / "audit.sqlite")
    calls = [
        {
            "call_id": f"c{number}", "started_at": 1_900_000_000.0 + number, "agent": ("a", "b")[number % 2],
            "server": "s", "tool": "echo", "outcome": "denied" if number % 3 == 0 else "done",
        }
        for number in range(count)
    ]  # fmt: skip
    store.take("segment", 0, b"".join(json.dumps(call).encode() + b"\n" for call in calls))
    store.close()
