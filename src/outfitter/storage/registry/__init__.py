"""The team's registry in a database: SQLite in a file, PostgreSQL when a team outgrows one machine.

The only place that knows SQLAlchemy and Alembic. Everybody else comes through ``outfitter.storage``, which loads this
when it is first used. It keeps documents, history, runs, tokens and events; it does not judge what they say. Values and
keys can be had without the libraries of a database, which take a while to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from outfitter.storage.registry.database import Database, open_database
    from outfitter.storage.registry.events import Events
    from outfitter.storage.registry.executing import Ending, Executing, Taking, Telling
    from outfitter.storage.registry.keys import KeyRing
    from outfitter.storage.registry.pruning import Pruning
    from outfitter.storage.registry.registry import Registry
    from outfitter.storage.registry.runners import Runners, Speaker
    from outfitter.storage.registry.runs import Runs, TellRun
    from outfitter.storage.registry.tokens import ApiTokens
    from outfitter.storage.registry.values import (
        ENDED,
        KINDS,
        Action,
        Change,
        Delete,
        Entry,
        EventRecord,
        Kind,
        Past,
        Put,
        RunEvent,
        RunnerRecord,
        RunRecord,
        RunState,
        SessionRecord,
        TokenRecord,
        User,
    )
    from outfitter.storage.registry.writing import Writing

__all__ = [
    "ENDED",
    "KINDS",
    "Action",
    "ApiTokens",
    "Change",
    "Database",
    "Delete",
    "Ending",
    "Entry",
    "EventRecord",
    "Events",
    "Executing",
    "KeyRing",
    "Kind",
    "Past",
    "Pruning",
    "Put",
    "Registry",
    "RunEvent",
    "RunRecord",
    "RunState",
    "RunnerRecord",
    "Runners",
    "Runs",
    "SessionRecord",
    "Speaker",
    "Taking",
    "TellRun",
    "Telling",
    "TokenRecord",
    "User",
    "Writing",
    "open_database",
]

_MODULES = {
    "ApiTokens": "tokens",
    "Database": "database",
    "Ending": "executing",
    "Events": "events",
    "Executing": "executing",
    "KeyRing": "keys",
    "Pruning": "pruning",
    "Registry": "registry",
    "Runners": "runners",
    "Runs": "runs",
    "Speaker": "runners",
    "Taking": "executing",
    "TellRun": "runs",
    "Telling": "executing",
    "Writing": "writing",
    "open_database": "database",
}


def __getattr__(name: str) -> object:
    """Load the part that a name is in when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'outfitter.storage.registry' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"outfitter.storage.registry.{_MODULES.get(name, 'values')}"), name)
    globals()[name] = value
    return value
