"""How functions become handlers: how one is called, which type its arguments have, plain parameters as one dataclass.

A signature is read once, when the tool is made; a call costs no inspection.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, cast, get_type_hints

from outfitter.errors import InvalidTool

_CONTEXT = "context"
_MUTABLE = (list, dict, set)
_Parameter = inspect.Parameter


@dataclasses.dataclass(frozen=True, slots=True)
class Handler:
    """A function that can be called with parameters and a context, whichever of them it takes."""

    run: Callable[[Any, Any], Any]
    is_async: bool


def handler_of(function: Callable[..., Any], name: str) -> Handler:
    """How the function is called; InvalidTool when a tool cannot call it."""
    parameters = _parameters(function, name)
    wants_context = takes_context(parameters)
    rest = _arguments(parameters)
    if any(parameter.default is _Parameter.empty and _is_single(parameter) for parameter in rest[1:]):
        message = f"tool '{name}': the handler takes {len(rest)} arguments"
        raise InvalidTool(message, hint="write handler(params, *, context), or use Tool.wrap")
    return Handler(_caller(function, rest[0] if rest else None, wants_context=wants_context), _is_async(function))


def _caller(
    function: Callable[..., Any], first: inspect.Parameter | None, *, wants_context: bool
) -> Callable[[Any, Any], Any]:
    """One of the ways to call a function, chosen once."""
    if first is None:
        return (lambda _, context: function(context=context)) if wants_context else (lambda _, __: function())
    if first.kind is _Parameter.KEYWORD_ONLY:
        name = first.name
        if wants_context:
            return lambda params, context: function(**{name: params, _CONTEXT: context})
        return lambda params, _: function(**{name: params})
    if wants_context:
        return lambda params, context: function(params, context=context)
    return lambda params, _: function(params)


def _is_async(function: Callable[..., Any]) -> bool:
    """Also for an object whose ``__call__`` is a coroutine function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _parameters(function: Callable[..., Any], name: str) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        message = f"tool '{name}': the handler does not say what it takes"
        raise InvalidTool(message, hint="give a function: handler(params, *, context)") from None


def _arguments(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    return [each for each in parameters if each.name != _CONTEXT and each.kind is not _Parameter.VAR_KEYWORD]


def _is_single(parameter: inspect.Parameter) -> bool:
    return parameter.kind is not _Parameter.VAR_POSITIONAL


def takes_context(parameters: list[inspect.Parameter]) -> bool:
    """Whether a function with these parameters wants the context."""
    return any(each.name == _CONTEXT or each.kind is _Parameter.VAR_KEYWORD for each in parameters)


def params_type_of(handler: Callable[..., Any], name: str) -> Any:  # noqa: ANN401 - any type
    """The annotated type of the handler's first parameter; None when it takes no arguments."""
    arguments = _arguments(_parameters(handler, name))
    if not arguments:
        return type(None)
    hints = _hints(handler, name)
    if arguments[0].name not in hints:
        message = f"tool '{name}': the handler does not say what its arguments are"
        raise InvalidTool(message, hint="annotate its first parameter, or write Tool[Params, Result](…)")
    return hints[arguments[0].name]


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    """The annotations, with what ``Annotated`` says about them."""
    plain = inspect.unwrap(function)
    described = plain if inspect.isroutine(plain) or inspect.isclass(plain) else type(plain).__call__
    try:
        return get_type_hints(described, include_extras=True)
    except NameError as unknown:
        hint = "define its types where the module can see them, or write Tool[Params, Result](…)"
        raise InvalidTool(f"tool '{name}': {unknown}", hint=hint) from None


def adapt(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself when it takes one dataclass; otherwise a handler that spreads one over its parameters."""
    name = function.__name__
    parameters = _parameters(function, name)
    hints = _hints(function, name)
    plain = [parameter for parameter in parameters if parameter.name != _CONTEXT]
    if len(plain) == 1 and _is_whole(hints.get(plain[0].name)):
        return function
    gathered = _gather(name, plain, hints) if plain else type(None)
    return _spread(function, gathered, wants_context=takes_context(parameters))


def _is_whole(hint: object) -> bool:
    return dataclasses.is_dataclass(hint) or hint is type(None)


def _gather(function: str, parameters: list[inspect.Parameter], hints: dict[str, Any]) -> type:
    fields: list[tuple[str, Any, Any]] = []
    for parameter in parameters:
        nameable = parameter.kind in {_Parameter.POSITIONAL_OR_KEYWORD, _Parameter.KEYWORD_ONLY}
        if not nameable or parameter.name not in hints:
            message = f"'{function}': parameter '{parameter.name}' has no single, annotated type that can be named"
            raise InvalidTool(message, hint="annotate it, or take one dataclass named params")
        fields.append((parameter.name, hints[parameter.name], _field(parameter.default)))
    title = "".join(part.title() for part in function.split("_"))
    return dataclasses.make_dataclass(f"{title}Params", fields, frozen=True, kw_only=True)


def _field(default: object) -> Any:  # noqa: ANN401 - dataclasses.field is typed as its default
    if default is _Parameter.empty:
        return dataclasses.field()
    if isinstance(default, _MUTABLE):
        return dataclasses.field(default_factory=lambda: copy.deepcopy(cast("object", default)))
    return dataclasses.field(default=default)


def _spread(function: Callable[..., Any], gathered: type, *, wants_context: bool) -> Callable[..., Any]:
    names = () if gathered is type(None) else tuple(field.name for field in dataclasses.fields(gathered))

    def arguments(params: object, context: object) -> dict[str, object]:
        given = {name: getattr(params, name) for name in names}
        return {**given, _CONTEXT: context} if wants_context else given

    if _is_async(function):

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
