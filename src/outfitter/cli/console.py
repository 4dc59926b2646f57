"""What every command shares: the catalog it works on, how it prints, how it says JSON.

Text from files is shown with control characters made visible, so that no description can move the cursor.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.shell_completion import CompletionItem

from outfitter.app import Settings, home_at
from outfitter.catalog import Catalog
from outfitter.errors import OutfitterError
from outfitter.storage import CatalogFolder

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 10_000
F = TypeVar("F", bound=Callable[..., object])


def settings() -> Settings:
    """The settings of this call: ``--catalog``, then the environment, then the defaults."""
    chosen = click.get_current_context().find_root().obj
    return Settings.read(os.environ, catalog=chosen if isinstance(chosen, Path) else None)


def folder() -> CatalogFolder:
    """The catalog folder of this call."""
    return CatalogFolder(settings().catalog)


def load() -> Catalog:
    """The catalog of this call: that of the folder, or of the squad file in it."""
    home = home_at(settings().catalog)
    return folder().load() if home is None else home.load()


def environment() -> Mapping[str, str]:
    """The variables that servers are armed with: those of a squad file's folder too, where one is meant."""
    home = home_at(settings().catalog)
    return os.environ if home is None else home.environment(os.environ)


def json_option(command: F) -> F:
    """Give a command ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")(command)


def print_json(value: object) -> None:
    """Print JSON values."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def make_console() -> Console:
    """A console that colours a terminal and leaves long lines whole in a pipe."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else _PIPE_WIDTH)


def visible(text: str) -> str:
    """The text with everything a terminal would obey written out."""
    return "".join(ch if ch.isprintable() or ch == "\n" else ascii(ch)[1:-1] for ch in text)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, or a line that says there is nothing."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not rows:
        click.echo("(none)")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    make_console().print(table)


def complete_names(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Shell completion from the catalog; silent when there is none."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        chosen = ctx.find_root().params.get("catalog")
        try:
            catalog = CatalogFolder(Settings.read(os.environ, catalog=chosen).catalog).load()
        except OutfitterError:
            return []
        names: Mapping[str, object] = getattr(catalog, kind)
        return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]

    return complete
