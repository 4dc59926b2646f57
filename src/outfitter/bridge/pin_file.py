"""Pins for a program of one's own: which definitions were approved, in one file that can stand in a repository.

The same questions as at the gateway (``policy.review``), asked where a server's tools become tools of Python. The file
is JSON that people can read and compare; it is written whole or not at all, under a lock. Beside it the programs of
stdio servers are remembered, so that a planted or replaced one is not started.
"""

from __future__ import annotations

import getpass
import json
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from outfitter.basics import quote, suggest
from outfitter.catalog import MCPServer, PinMode
from outfitter.errors import NotFound, StorageUnavailable
from outfitter.policy import Definition, Held, Pin, PinState, Why, review
from outfitter.upstream import Message, ProgramRegister

_log = logging.getLogger(__name__)
_VERSION = 1


@dataclass(frozen=True, slots=True)
class PinFile:
    """The pins of a program; a server is known by its name."""

    path: Path

    def __init__(self, path: str | Path) -> None:
        """Nothing is read or written before a server is connected."""
        object.__setattr__(self, "path", Path(path))

    @property
    def programs(self) -> ProgramRegister:
        """What the commands of stdio servers meant when they were first started."""
        return ProgramRegister(self.path.with_name(f"{self.path.name}.programs"))

    def look(self, server: MCPServer, listed: Sequence[Message]) -> Mapping[str, Held]:
        """The tools of a server that are held back, by name; what is new is written down."""
        if server.pins is PinMode.OFF or not listed:
            return {}
        definitions = [Definition.of_tool(tool) for tool in listed]
        wary = _wary(server, [one.name for one in definitions])
        found = review(definitions, self.pins(server.name), server.pins, wary)
        if found.news:
            now = _moment()

            def add(pins: tuple[Pin, ...]) -> tuple[Pin, ...]:
                kept = [pin for pin in pins if pin.server == server.name]
                news = review(definitions, kept, server.pins, wary).news
                names = {one.definition.name for one in news if one.state is PinState.PENDING}
                old = [pin for pin in pins if not (_is_open(pin) and pin.server == server.name and pin.name in names)]
                return (*old, *(one.pin(server.name, now) for one in news))

            self._change(add)
            found = review(definitions, self.pins(server.name), server.pins, wary)
        for name, held in found.held.items():
            _log.warning(
                "server '%s': tool %s is held back: %s (see %s)", server.name, quote(name), held.reason, self.path
            )
        return found.held

    def pins(self, server: str | None = None) -> tuple[Pin, ...]:
        """Everything that is kept of one server, or of all."""
        return tuple(pin for pin in self._read() if server in {None, pin.server})

    def approve(self, server: str, tools: Iterable[str] = ()) -> tuple[Pin, ...]:
        """Approve what waits, all of it or these tools; what was approved. NotFound for one that does not wait."""
        return self._decide(server, tuple(tools), PinState.PINNED)

    def reject(self, server: str, tools: Iterable[str] = ()) -> tuple[Pin, ...]:
        """Reject what waits, all of it or these tools; it stays hidden."""
        return self._decide(server, tuple(tools), PinState.REJECTED)

    def _decide(self, server: str, tools: tuple[str, ...], state: PinState) -> tuple[Pin, ...]:
        waits = [pin for pin in self.pins(server) if pin.state is not PinState.PINNED]
        for tool in tools:
            if tool not in {pin.name for pin in waits}:
                hint = suggest(tool, [pin.name for pin in waits])
                raise NotFound(f"no tool '{tool}' of server '{server}' waits", where=str(self.path), hint=hint)
        chosen = {pin for pin in waits if (pin.name in tools if tools else _is_open(pin))}

        def decided(pin: Pin) -> Pin:
            why = Why.APPROVED if state is PinState.PINNED else pin.why
            return replace(pin, state=state, why=why, decided=_moment(), by=getpass.getuser())

        if chosen:
            self._change(lambda pins: tuple(decided(pin) if pin in chosen else pin for pin in pins))
        return tuple(chosen)

    # ── the file ──

    def _read(self) -> tuple[Pin, ...]:
        try:
            told: Any = json.loads(self.path.read_bytes())
            return tuple(_pin(row) for row in told["pins"])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, KeyError, TypeError) as error:
            hint = "restore it; without it, what servers show next is trusted"
            raise StorageUnavailable(f"the pins cannot be read: {error}", where=str(self.path), hint=hint) from None

    def _change(self, change: Callable[[tuple[Pin, ...]], tuple[Pin, ...]]) -> None:
        with self._locked():
            pins = sorted(change(self._read()), key=lambda pin: (pin.server, pin.name, pin.since))
            text = json.dumps({"version": _VERSION, "pins": [_row(pin) for pin in pins]}, indent=2)
            handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            Path(name).replace(self.path)

    @contextmanager
    def _locked(self) -> Generator[None]:
        import fcntl

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path.parent, os.O_RDONLY)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            finally:
                os.close(lock)
        except OSError as error:
            raise StorageUnavailable(f"the pins cannot be written: {error.strerror}", where=str(self.path)) from error


def _wary(server: MCPServer, names: Collection[str]) -> frozenset[str]:
    """The tools that are let in only because nothing excludes them."""
    if not server.tools.exclude:
        return frozenset()
    return frozenset(name for name in names if name not in (server.tools.include or ()))


def _is_open(pin: Pin) -> bool:
    return pin.state is PinState.PENDING


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _row(pin: Pin) -> dict[str, Any]:
    """A pin as it stands in the file: the definition as it is, so that a comparison of the file shows what changed."""
    return {
        "server": pin.server, "tool": pin.name, "state": pin.state.value, "why": pin.why.value, "was": pin.was,
        "since": pin.since, "decided": pin.decided, "by": pin.by, "digest": pin.digest, "definition": pin.definition,
    }  # fmt: skip


def _pin(row: dict[str, Any]) -> Pin:
    one = Definition.of_tool(row["definition"])
    if one.digest != row["digest"]:
        raise ValueError(f"the definition of '{row['tool']}' is not the one that was pinned")
    return Pin(
        row["server"], "tool", row["tool"], one.digest, one.bare, one.text, PinState(row["state"]), Why(row["why"]),
        row["was"], row["since"], row["decided"], row["by"],
    )  # fmt: skip
