"""How ``enabled`` and ``visibility`` are asked: with nothing, with the parameters, with the session, as they wish.

The signature is read once, when the template is made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from outfitter.session import Session

T = TypeVar("T")
_SESSION = "session"


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    """A function that decides about a section, and what it wants to know."""

    function: Callable[..., T]
    wants_params: bool
    wants_session: bool

    def ask(self, params: object, session: Session | None) -> T:
        """What the function says."""
        given = (params,) if self.wants_params else ()
        return self.function(*given, session=session) if self.wants_session else self.function(*given)


def read_choice(function: Callable[..., T]) -> Choice[T]:
    """How the function is to be asked; one whose signature cannot be read gets the parameters."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return Choice(function, wants_params=True, wants_session=False)
    positional = [parameter for parameter in parameters if _is_positional(parameter) and parameter.name != _SESSION]
    wants_session = any(parameter.name == _SESSION for parameter in parameters)
    return Choice(function, wants_params=bool(positional), wants_session=wants_session)


def _is_positional(parameter: inspect.Parameter) -> bool:
    kinds: tuple[Any, ...] = (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
    return parameter.kind in kinds
