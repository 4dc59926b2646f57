"""The command of the registry's keys: a new one, with everything sealed again."""

from __future__ import annotations

import anyio
import click

from outfitter.app import rotate_keys
from outfitter.cli.console import json_option, print_json, settings


@click.group("keys")
def keys_command() -> None:
    """Look after the keys that seal sensitive literals in the registry's database."""


@keys_command.command("rotate")
@json_option
def rotate_command(as_json: bool) -> None:
    r"""Add a new key, and seal everything again with it; nothing else changes.

    Where several machines share a database, copy the key file to every one of them right after: until then they cannot
    open what is sealed. It keeps the older keys, which copies of the database may still need.

    \b
    Examples:
      outfitter keys rotate
    """
    found = anyio.run(rotate_keys, settings())
    if as_json:
        print_json(found)
    else:
        click.echo(f"Everything is sealed with key {found['key']} of {found['file']}.")
