"""HOW IT IS WRITTEN: catalog files, squad files, client configs, cassettes. Text in, values out; no file is opened.

The configs of other programs are many, and most processes read none: they are loaded when one is.
"""

from typing import TYPE_CHECKING

from outfitter.formats.agents import (
    prompt_file_of,
    read_agent,
    read_capability,
    read_run,
    write_agent,
    write_capability,
)
from outfitter.formats.cassette import (
    Announced,
    Cassette,
    CassetteEntry,
    CassetteHeader,
    Exchange,
    read_cassette,
    write_cassette_line,
)
from outfitter.formats.document import read_document
from outfitter.formats.executors import write_executor
from outfitter.formats.governing import read_override, write_budgets, write_override
from outfitter.formats.migrate import Migration, Move, migrate
from outfitter.formats.problems import read_problem
from outfitter.formats.servers import read_entry, write_entry
from outfitter.formats.squad import SquadFile, read_squad, read_squad_file, write_squad, write_squad_server
from outfitter.formats.text import MAX_BYTES, Syntax, line_of, lines_of, parse_text, pointer, render_text

if TYPE_CHECKING:
    from outfitter.formats.clients import (
        Client,
        ClientFile,
        ImportedServer,
        find_credentials,
        guess_client,
        is_sensitive,
        mask_marked,
        read_client,
        write_client,
    )

__all__ = [
    "MAX_BYTES",
    "Announced",
    "Cassette",
    "CassetteEntry",
    "CassetteHeader",
    "Client",
    "ClientFile",
    "Exchange",
    "ImportedServer",
    "Migration",
    "Move",
    "SquadFile",
    "Syntax",
    "find_credentials",
    "guess_client",
    "is_sensitive",
    "line_of",
    "lines_of",
    "mask_marked",
    "migrate",
    "parse_text",
    "pointer",
    "prompt_file_of",
    "read_agent",
    "read_capability",
    "read_cassette",
    "read_client",
    "read_document",
    "read_entry",
    "read_override",
    "read_problem",
    "read_run",
    "read_squad",
    "read_squad_file",
    "render_text",
    "write_agent",
    "write_budgets",
    "write_capability",
    "write_cassette_line",
    "write_client",
    "write_entry",
    "write_executor",
    "write_override",
    "write_squad",
    "write_squad_server",
]


def __getattr__(name: str) -> object:
    """Load what reads the configs of other programs on first use."""
    if name not in __all__:
        raise AttributeError(f"module 'outfitter.formats' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module("outfitter.formats.clients"), name)
    globals()[name] = value
    return value
