"""What does a scripted model do? One turn is one of these; how each API writes it is ``model_wires``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The tokens that a turn says it took."""

    input_tokens: int = 11
    output_tokens: int = 7


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One tool that the model calls; arguments that are a text are sent as they are, JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ModelSays:
    """The model answers; ``is_cut`` when it ran out of tokens, ``is_refusal`` when it will not do it."""

    text: str
    usage: ModelUsage = field(default_factory=ModelUsage)
    is_cut: bool = False
    is_refusal: bool = False


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """The model calls tools, all in one turn."""

    calls: tuple[ModelCall, ...]
    text: str = ""
    usage: ModelUsage = field(default_factory=ModelUsage)


@dataclass(frozen=True, slots=True)
class ModelFails:
    """The provider answers with an HTTP error."""

    status: int
    message: str = "scripted error"


@dataclass(frozen=True, slots=True)
class ModelHangs:
    """The provider does not answer until the endpoint is closed."""


ModelTurn: TypeAlias = ModelSays | ModelCalls | ModelFails | ModelHangs


def model_calls(name: str, arguments: Mapping[str, Any] | str | None = None) -> ModelCalls:
    """The turn in which the model calls one tool."""
    return ModelCalls((ModelCall(name, {} if arguments is None else arguments),))
