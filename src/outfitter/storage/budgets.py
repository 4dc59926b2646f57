"""How far each budget is used, for people, and who has begun one anew: the ledger of one catalog and a log beside it.

The log is a line of JSON for every reset. Counting calls is ``gateway.budgets``, on the same ledger.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from outfitter.catalog import Budgets
from outfitter.errors import NotFound, StorageUnavailable
from outfitter.policy import BudgetState, Payer, reset_counts, states_of, tell_moment
from outfitter.storage.ledger import LedgerFile, open_ledger

_MOST_SHOWN = 50


class Reset(msgspec.Struct, frozen=True, omit_defaults=True):
    """A budget that somebody has begun anew, and how far it was used."""

    at: str
    by: str
    agent: str
    budget: str
    used: int
    limit: int
    scope: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True)
class BudgetBook:
    """The budgets of one catalog."""

    ledger: LedgerFile
    log: Path
    clock: Callable[[], float] = time.time

    @classmethod
    def at(cls, path: Path, *, keeps: bool = False) -> BudgetBook:
        """The one of a ledger, which is made when there is none; StorageUnavailable for a damaged one."""
        return cls(open_ledger(path, keeps=keeps), path.with_suffix(".resets"))

    def states(self, payer: Payer, budgets: Budgets) -> tuple[BudgetState, ...]:
        """How far each budget is used now."""
        return states_of(self.ledger, payer, budgets, self.clock())

    def reset(
        self, payer: Payer, budgets: Budgets, *, by: str, budget: str = "", scope: str | None = None
    ) -> tuple[BudgetState, ...]:
        """Begin budgets anew, or all of them: as they were. Each is written down first. NotFound when none is meant."""
        chosen = [
            one
            for one in self.states(payer, budgets)
            if budget in {"", one.budget} and scope in {None, one.scope} and one.used is not None
        ]
        if not chosen:
            hint = "one of a run is named with the run" if budget.endswith("_per_run") else "see: outfitter budgets"
            raise NotFound(f"agent '{payer.agent}' has no such budget", hint=hint)
        at = tell_moment(self.clock())
        lines = [
            msgspec.json.encode(Reset(at, by, payer.agent, one.budget, one.used or 0, one.limit, one.scope, one.run))
            for one in chosen
        ]
        self._write(b"".join(line + b"\n" for line in lines))
        reset_counts(self.ledger, [one.key for one in chosen])
        return tuple(chosen)

    def resets(self, agent: str = "") -> tuple[Reset, ...]:
        """The newest resets, of one agent or of all, newest first."""
        try:
            lines = self.log.read_bytes().splitlines()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageUnavailable(f"cannot be read: {error.strerror}", where=str(self.log)) from None
        found = [one for one in map(_read, reversed(lines)) if one is not None and agent in {"", one.agent}]
        return tuple(found[:_MOST_SHOWN])

    def _write(self, text: bytes) -> None:
        try:
            file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, text)
            finally:
                os.close(file)
        except OSError as error:
            told = f"the reset cannot be written down, and is not done: {error.strerror}"
            raise StorageUnavailable(told, where=str(self.log)) from None

    def close(self) -> None:
        """Let the ledger go."""
        self.ledger.close()


def _read(line: bytes) -> Reset | None:
    try:
        return msgspec.json.decode(line, type=Reset)
    except msgspec.MsgspecError:
        return None  # half a line, of a process that was killed
