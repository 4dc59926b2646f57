"""Which registry a command works on: the service that ``--server`` names, or the one of this machine.

A token is read from the environment or from a private file, never from the command line. Where there is no registry,
the catalog folder is meant by commands that only look. Neighbours: ``api_client`` asks, ``app`` opens the database.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from outfitter.app import Settings, has_registry, open_local_api
from outfitter.cli.console import complete_names, folder, settings
from outfitter.errors import Forbidden, Invalid, NotFound, OutfitterError

if TYPE_CHECKING:
    from outfitter.cli.api_client import ApiClient

F = TypeVar("F", bound=Callable[..., object])
_SERVER, _PLAIN = "outfitter.cli.server", "outfitter.cli.plain"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_COMPLETION_SECONDS = 2.0
_FOLDER_NAMES = {"mcp-servers": "servers"}


def place_options(command: F) -> F:
    """Give a command ``--server`` and what belongs to it."""
    server = click.option(
        "--server", metavar="URL", envvar="OUTFITTER_SERVER", expose_value=False, callback=_note(_SERVER),
        is_eager=True, help="Ask the service there, not this machine's registry. The token is in OUTFITTER_TOKEN.",
    )  # fmt: skip
    plain = click.option(
        "--plain-http", is_flag=True, expose_value=False, callback=_note(_PLAIN), is_eager=True,
        help="Send the token to another host without TLS.",
    )  # fmt: skip
    return server(plain(command))


def _note(key: str) -> Callable[[click.Context, click.Parameter, object], object]:
    def note(ctx: click.Context, _param: click.Parameter, value: object) -> object:
        ctx.meta[key] = value
        return value

    return note


def server_url() -> str | None:
    """The service that this command is to ask; None: the registry of this machine."""
    return click.get_current_context().meta.get(_SERVER) or None


def is_about_folder() -> bool:
    """Whether a command that looks is about the catalog folder: it was named, or there is no registry."""
    if server_url() is not None:
        return False
    named = click.get_current_context().find_root().get_parameter_source("catalog") is ParameterSource.COMMANDLINE
    return named or not has_registry(settings())


@contextmanager
def open_client(*, may_create: bool = False) -> Generator[ApiClient]:
    """A client of the chosen registry; NotFound when there is none, unless this command may make the first entry."""
    from outfitter.cli.api_carriers import HttpCarrier
    from outfitter.cli.api_client import ApiClient

    url, token = server_url(), read_token(os.environ)
    if url is not None:
        is_plain_allowed = bool(click.get_current_context().meta.get(_PLAIN))
        yield ApiClient(HttpCarrier.to(url, is_plain_allowed=is_plain_allowed), token)
        return
    chosen = settings()
    _check_registry(chosen, may_create=may_create)
    with local_client(chosen, token) as client:
        yield client


@contextmanager
def local_client(chosen: Settings, token: str | None) -> Generator[ApiClient]:
    """A client of this machine's registry. An error of the block leaves it as it was raised."""
    from anyio.from_thread import start_blocking_portal

    from outfitter.cli.api_carriers import InnerCarrier
    from outfitter.cli.api_client import ApiClient

    with start_blocking_portal() as portal:
        opened = portal.wrap_async_context_manager(open_local_api(chosen))
        app = opened.__enter__()
        try:
            yield ApiClient(InnerCarrier(portal, app), token)
        finally:
            opened.__exit__(None, None, None)


def _check_registry(chosen: Settings, *, may_create: bool) -> None:
    """A registry is not begun beside a catalog folder by accident: the folder would no longer be what counts."""
    if has_registry(chosen):
        return
    place = folder()
    if place.exists():
        hint = f"'outfitter apply -f {place.path}' makes one of its files, --server URL names one elsewhere"
        raise NotFound(f"there is no registry here; the catalog is the folder {place.path}/", hint=hint)
    if not may_create:
        hint = "'outfitter servers add' makes the first entry, --server URL names a registry elsewhere"
        raise NotFound("there is no registry here", hint=hint)


def read_token(environment: Mapping[str, str]) -> str | None:
    """The token of OUTFITTER_TOKEN, or of the private file that OUTFITTER_TOKEN_FILE names; None without both."""
    token, file = environment.get("OUTFITTER_TOKEN", ""), environment.get("OUTFITTER_TOKEN_FILE", "")
    source = "OUTFITTER_TOKEN"
    if not token and file:
        token, source = _read_private(Path(file)), file
    token = token.strip()
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise Invalid("this is no token", where=source)
    return token or None


def _read_private(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            if os.name == "posix" and os.fstat(opened.fileno()).st_mode & _OTHERS:
                raise Forbidden("others may read the file of the token", where=str(file), hint=f"chmod 600 {file}")
            return opened.readline()
    except (OSError, UnicodeError):
        raise NotFound("the file of the token cannot be read", where=str(file)) from None


def complete_entries(kind: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Shell completion from the registry, or from the catalog folder; silent when there is neither."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        chosen = Settings.read(os.environ, catalog=ctx.find_root().params.get("catalog"))
        url = ctx.meta.get(_SERVER) or os.environ.get("OUTFITTER_SERVER")
        if not url and not has_registry(chosen):
            return complete_names(_FOLDER_NAMES.get(kind, kind))(ctx, param, incomplete)
        try:
            names = _names(kind, url, chosen)
        except OutfitterError:
            return []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return complete


def _names(kind: str, url: str | None, chosen: Settings) -> list[str]:
    from dataclasses import replace

    from outfitter.cli.api_carriers import HttpCarrier
    from outfitter.cli.api_client import ApiClient

    token = read_token(os.environ)
    if url:
        carrier = replace(HttpCarrier.to(url), seconds=_COMPLETION_SECONDS)
        return [item["id"] for item in ApiClient(carrier, token).items(f"/{kind}", most=500)]
    with local_client(chosen, token) as client:
        return [item["id"] for item in client.items(f"/{kind}", most=500)]
