"""Which names are allowed, and what to say when one is not.

One rule for servers and aliases everywhere, one for agents and capabilities. How tools are *shown* to a model is
``catalog.naming``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from functools import lru_cache

from outfitter.errors import InvalidName

SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
RESERVED_NAME = "wink"
_QUOTE_LIMIT = 80
_LIST_LIMIT = 10


def quote(text: str) -> str:
    """The text as it may stand in a message: escaped, and cut when long."""
    shown = ascii(text)
    return shown if len(shown) <= _QUOTE_LIMIT else f"{shown[:_QUOTE_LIMIT]}… ({len(text)} characters)"


def check_server_name(name: str, *, what: str = "server name", where: str = "") -> str:
    """The name itself if a server or alias may have it; InvalidName otherwise."""
    fault = _server_name_fault(name)
    if fault is not None:
        raise InvalidName(f"{what} {fault[0]}", where=where, hint=fault[1])
    return name


@lru_cache(maxsize=4096)
def _server_name_fault(name: str) -> tuple[str, str] | None:
    if SERVER_NAME.fullmatch(name) is None:
        hint = "use lower-case letters, digits, '_' and '-', start with a letter or digit, at most 64 characters"
        return f"{quote(name)} is not valid", hint
    if name == RESERVED_NAME or name.startswith(f"{RESERVED_NAME}-"):
        hint = "'wink' and 'wink-*' belong to the in-process server of bridged tools; choose another name"
        return f"'{name}' is reserved", hint
    return None


def check_agent_name(name: str, *, what: str = "agent name", where: str = "") -> str:
    """The name itself if an agent or capability may have it; InvalidName otherwise."""
    if AGENT_NAME.fullmatch(name) is None:
        message = f"invalid {what} {quote(name)}"
        hint = "use letters, digits, '_' and '-', start with a letter or digit, at most 64 characters"
        raise InvalidName(message, where=where, hint=hint)
    return name


def suggest(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known name, or lists what is known."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return "none are defined"
    shown = ", ".join(names[:_LIST_LIMIT])
    return f"known: {shown}{', …' if len(names) > _LIST_LIMIT else ''}"
