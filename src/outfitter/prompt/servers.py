"""The servers of a prompt: their arguments made from parameters, each name meaning one definition.

Values of parameters are data. Where a definition is armed later, ``${VAR}`` is filled, so a ``${`` that came with a
value is escaped here: it stays literal. Connecting is ``discovery`` or whoever gets the rendered prompt.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from outfitter.catalog import MCPServer
from outfitter.errors import PromptValidationError
from outfitter.prompt.params import field_names

_log = logging.getLogger(__name__)
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"\$\$\{{|\$\$(?P<escaped>{_NAME})|\$(?:(?P<named>{_NAME})|\{{(?P<braced>{_NAME})\}})")
_DUPLICATE = "prompt.render.duplicate_mcp"


def settle_server(server: MCPServer, params: object, where: str) -> MCPServer:
    """The definition with its arguments settled for these parameters."""
    if server.args_factory is not None:
        return server.with_args([_literal(argument) for argument in _ask_factory(server, params, where)])
    if params is None or not any("$" in argument for argument in server.args):
        return server
    args = tuple(_fill(argument, params, field_names(type(params))) for argument in server.args)
    return server if args == server.args else server.with_args(args)


def _ask_factory(server: MCPServer, params: object, where: str) -> list[str]:
    try:
        args: Sequence[object] = () if server.args_factory is None else server.args_factory(params)
    except Exception as error:
        told = f"section '{where}': args_factory of server '{server.name}' failed: {type(error).__name__}: {error}"
        raise PromptValidationError(told) from error
    if isinstance(args, str):
        raise PromptValidationError(
            f"section '{where}': args_factory of server '{server.name}' gave one text",
            hint="give a tuple with one text for each argument",
        )
    return [str(argument) for argument in args]


def _literal(value: str) -> str:
    """The value as it must be written so that arming gives it back unchanged."""
    return value.replace("${", "$${")


def _fill(argument: str, params: object, known: frozenset[str]) -> str:
    filled = ""
    for piece in _pieces(argument, params, known):
        # A dollar sign and a brace from two pieces would become a placeholder that nobody wrote.
        is_seam = filled.endswith("$") and piece.startswith("{")
        filled += f"${piece}" if is_seam else piece
    return filled


def _pieces(argument: str, params: object, known: frozenset[str]) -> Iterator[str]:
    end = 0
    for token in _TOKEN.finditer(argument):
        name = token["escaped"] or token["named"] or token["braced"]
        if name not in known:
            continue
        yield argument[end : token.start()]
        yield f"${name}" if token["escaped"] else _literal(str(getattr(params, name)))
        end = token.end()
    yield argument[end:]


@dataclass(slots=True)
class ServerList:
    """The servers of one rendering in the order they were declared."""

    is_strict: bool
    _found: dict[str, tuple[MCPServer, str]] = field(default_factory=dict[str, tuple[MCPServer, str]])

    def add(self, server: MCPServer, where: str) -> None:
        """Take the server; of two that differ under one name the first counts, or the prompt is refused."""
        first, owner = self._found.setdefault(server.name, (server, where))
        if first == server:
            return
        told = f"server '{server.name}' of section '{where}' differs from the one of section '{owner}'"
        if self.is_strict:
            raise PromptValidationError(told, hint="make them equal, or give one of them another name")
        context = {"mcp_name": server.name, "section": where, "used": owner}
        _log.warning("%s: %s, which is used", _DUPLICATE, told, extra={"event": _DUPLICATE, "context": context})

    def all(self) -> tuple[MCPServer, ...]:
        """The servers, each name once."""
        return tuple(server for server, _ in self._found.values())
