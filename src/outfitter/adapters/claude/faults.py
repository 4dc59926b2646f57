"""What went wrong with Claude Code or with its provider, as Outfitter tells it. No text holds the key."""

from __future__ import annotations

import re
from collections.abc import Iterable

from claude_agent_sdk import ClaudeSDKError, CLINotFoundError, ProcessError, ResultMessage

from outfitter.adapters.faults import not_reached, refused
from outfitter.basics import MASK, quote
from outfitter.errors import OutfitterError, Unavailable

_OWN_WORDS = re.compile(r"^API Error:? ?(\d{3})? ?")
_LAST_LINES = 5


def of_result(result: ResultMessage, *, where: str, keys: Iterable[str]) -> OutfitterError:
    """The error of an evaluation that Claude Code gave up."""
    said = result.result or "; ".join(result.errors or ()) or result.subtype
    if result.api_error_status is not None:
        return refused(result.api_error_status, _OWN_WORDS.sub("", said), where=where, keys=keys)
    if "onnection" in said or "ECONN" in said:
        return not_reached(where)
    return Unavailable(f"Claude Code gave up: {quote(_masked(said, keys))}", where=where)


def is_foreign(error: Exception) -> bool:
    """Whether the SDK raised it: it has errors of its own, and raises bare exceptions too."""
    return isinstance(error, ClaudeSDKError) or type(error) is Exception


def of_program(error: Exception, *, last_words: Iterable[str], where: str, keys: Iterable[str]) -> OutfitterError:
    """The error of a program that does not start, or ended."""
    if isinstance(error, CLINotFoundError):
        hint = "install Claude Code, or give ClaudeAgentSDKClientConfig(cli_path=…)"
        return Unavailable("the program of Claude Code is not there", where=where, hint=hint)
    code = f" with code {error.exit_code}" if isinstance(error, ProcessError) and error.exit_code is not None else ""
    words = _masked(" ".join(list(last_words)[-_LAST_LINES:]), keys)
    return Unavailable(f"Claude Code ended{code}" + (f": {quote(words)}" if words else ""), where=where)


def _masked(said: str, keys: Iterable[str]) -> str:
    for key in filter(None, keys):
        said = said.replace(key, MASK)
    return said
