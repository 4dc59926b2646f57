"""How functions become handlers: which type their arguments have, and plain parameters as one dataclass."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, cast, get_type_hints

from outfitter.errors import InvalidTool

_CONTEXT = "context"


def params_type_of(handler: Callable[..., Any], name: str) -> Any:  # noqa: ANN401 - any type
    """The annotated type of the handler's first parameter; None when it takes no arguments."""
    first = _first_parameter(handler)
    if first is None:
        return type(None)
    try:
        hints = get_type_hints(inspect.unwrap(handler))
    except NameError as unknown:
        raise InvalidTool(f"tool '{name}': {unknown}", hint="write Tool[Params, Result](…)") from None
    if first not in hints:
        message = f"tool '{name}': the handler does not say what its arguments are"
        raise InvalidTool(message, hint="annotate its first parameter, or write Tool[Params, Result](…)")
    return hints[first]


def _first_parameter(handler: Callable[..., Any]) -> str | None:
    names = [name for name in inspect.signature(handler).parameters if name != _CONTEXT]
    return names[0] if names else None


def takes_context(handler: Callable[..., Any]) -> bool:
    """Whether the handler wants the context."""
    parameters = inspect.signature(handler).parameters.values()
    return any(parameter.name == _CONTEXT or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def adapt(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself when it takes one dataclass; otherwise a handler that spreads one over its parameters."""
    names = [name for name in inspect.signature(function).parameters if name != _CONTEXT]
    hints = get_type_hints(function)
    if len(names) == 1 and (dataclasses.is_dataclass(hints.get(names[0])) or hints.get(names[0]) is type(None)):
        return function
    gathered = _gather(function, names, hints) if names else type(None)
    return _spread(function, gathered)


def _gather(function: Callable[..., Any], names: list[str], hints: dict[str, Any]) -> type:
    fields: list[tuple[str, Any, Any]] = []
    for name in names:
        parameter = inspect.signature(function).parameters[name]
        if parameter.kind in {parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL} or name not in hints:
            message = f"'{function.__name__}': parameter '{name}' has no single, annotated type"
            raise InvalidTool(message, hint="annotate it, or take one dataclass named params")
        given = parameter.default is not parameter.empty
        fields.append(
            (name, hints[name], dataclasses.field(default=parameter.default) if given else dataclasses.field())
        )
    title = "".join(part.title() for part in function.__name__.split("_"))
    return dataclasses.make_dataclass(f"{title}Params", fields, frozen=True, kw_only=True)


def _spread(function: Callable[..., Any], gathered: type) -> Callable[..., Any]:
    wants_context = takes_context(function)

    def arguments(params: object, context: object) -> dict[str, object]:
        given: dict[str, object] = (
            {}
            if params is None
            else {field.name: getattr(params, field.name) for field in dataclasses.fields(cast("Any", params))}
        )
        return {**given, _CONTEXT: context} if wants_context else given

    if inspect.iscoroutinefunction(function):

        async def spread_async(params: object, *, context: object) -> object:
            return await function(**arguments(params, context))

        spread: Callable[..., Any] = spread_async
    else:

        def spread_sync(params: object, *, context: object) -> object:
            return function(**arguments(params, context))

        spread = spread_sync
    spread.__name__, spread.__doc__ = function.__name__, function.__doc__
    spread.__annotations__ = {"params": gathered}
    return spread
